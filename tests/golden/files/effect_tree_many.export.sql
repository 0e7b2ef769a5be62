-- Learned by icscm VERSION from 4,000 samples in 40 environments.
--
--     all: 29.6% of 4,000
--       rest > 0: 48.4% of 2,058
--         smoker > 0: 84.2% of 1,055 -> positive
--         smoker <= 0: 10.8% of 1,003
--           noise > 0.47: 11.3% of 542 -> negative
--           noise <= 0.47: 10.2% of 461 -> negative
--       rest <= 0: 9.8% of 1,942 -> negative
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class predicted, the probability of True, and what decided.
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  CASE
    WHEN CAST(d."rest" AS DOUBLE) <= 0 OR d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999
      THEN CAST(0 AS BOOLEAN)
    WHEN CAST(d."smoker" AS DOUBLE) > 0 AND CAST(d."smoker" AS DOUBLE) <= 9e999
      THEN CAST(1 AS BOOLEAN)
    WHEN CAST(d."noise" AS DOUBLE) > 0.47e0 AND CAST(d."noise" AS DOUBLE) <= 9e999
      THEN CAST(0 AS BOOLEAN)
    ELSE CAST(0 AS BOOLEAN)
  END AS prediction,
  CASE
    WHEN CAST(d."rest" AS DOUBLE) <= 0 OR d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999
      THEN 191e0 / 1944e0
    WHEN CAST(d."smoker" AS DOUBLE) > 0 AND CAST(d."smoker" AS DOUBLE) <= 9e999
      THEN 889e0 / 1057e0
    WHEN CAST(d."noise" AS DOUBLE) > 0.47e0 AND CAST(d."noise" AS DOUBLE) <= 9e999
      THEN 62e0 / 544e0
    ELSE 48e0 / 463e0
  END AS probability,
  CASE
    WHEN CAST(d."rest" AS DOUBLE) <= 0 OR d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999
      THEN 'rest <= 0'
    WHEN CAST(d."smoker" AS DOUBLE) > 0 AND CAST(d."smoker" AS DOUBLE) <= 9e999
      THEN 'rest > 0 and smoker > 0'
    WHEN CAST(d."noise" AS DOUBLE) > 0.47e0 AND CAST(d."noise" AS DOUBLE) <= 9e999
      THEN 'rest > 0 and smoker <= 0 and noise > 0.47'
    ELSE 'rest > 0 and smoker <= 0 and noise <= 0.47'
  END AS decided_by
FROM "data" AS d;
