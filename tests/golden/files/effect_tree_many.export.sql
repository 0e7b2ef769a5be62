-- Learned by icscm VERSION from 4,000 samples in 40 environments.
--
--     all: 29.6% of 4,000
--       mark > 0: 86.9% of 1,283
--         rest > 0: 93.8% of 995
--           smoker > 0: 99.4% of 838 -> positive
--           smoker <= 0: 63.7% of 157 -> positive
--         rest <= 0: 63.2% of 288 -> positive
--       mark <= 0: 2.6% of 2,717 -> negative
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class predicted, the probability of True, and what decided.
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  CASE
    WHEN CAST(d."mark" AS DOUBLE) <= 0 OR d."mark" IS NULL OR CAST(d."mark" AS DOUBLE) > 9e999
      THEN CAST(0 AS BOOLEAN)
    WHEN CAST(d."rest" AS DOUBLE) <= 0 OR d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999
      THEN CAST(1 AS BOOLEAN)
    WHEN CAST(d."smoker" AS DOUBLE) > 0 AND CAST(d."smoker" AS DOUBLE) <= 9e999
      THEN CAST(1 AS BOOLEAN)
    ELSE CAST(1 AS BOOLEAN)
  END AS prediction,
  CASE
    WHEN CAST(d."mark" AS DOUBLE) <= 0 OR d."mark" IS NULL OR CAST(d."mark" AS DOUBLE) > 9e999
      THEN 72e0 / 2719e0
    WHEN CAST(d."rest" AS DOUBLE) <= 0 OR d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999
      THEN 183e0 / 290e0
    WHEN CAST(d."smoker" AS DOUBLE) > 0 AND CAST(d."smoker" AS DOUBLE) <= 9e999
      THEN 834e0 / 840e0
    ELSE 101e0 / 159e0
  END AS probability,
  CASE
    WHEN CAST(d."mark" AS DOUBLE) <= 0 OR d."mark" IS NULL OR CAST(d."mark" AS DOUBLE) > 9e999
      THEN 'mark <= 0'
    WHEN CAST(d."rest" AS DOUBLE) <= 0 OR d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999
      THEN 'mark > 0 and rest <= 0'
    WHEN CAST(d."smoker" AS DOUBLE) > 0 AND CAST(d."smoker" AS DOUBLE) <= 9e999
      THEN 'mark > 0 and rest > 0 and smoker > 0'
    ELSE 'mark > 0 and rest > 0 and smoker <= 0'
  END AS decided_by
FROM "data" AS d;
