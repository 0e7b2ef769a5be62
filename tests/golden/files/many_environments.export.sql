-- Learned by icscm VERSION from 4,000 samples in 40 environments, at level alpha = 0.05.
--
--     rest > 0 and smoker > 0
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
    WHEN CAST(d."smoker" AS DOUBLE) <= 0 OR d."smoker" IS NULL OR CAST(d."smoker" AS DOUBLE) > 9e999
      THEN CAST(0 AS BOOLEAN)
    ELSE CAST(1 AS BOOLEAN)
  END AS prediction,
  CASE
    WHEN CAST(d."rest" AS DOUBLE) <= 0 OR d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999
      THEN 191e0 / 1944e0
    WHEN CAST(d."smoker" AS DOUBLE) <= 0 OR d."smoker" IS NULL OR CAST(d."smoker" AS DOUBLE) > 9e999
      THEN 109e0 / 1005e0
    ELSE 889e0 / 1057e0
  END AS probability,
  CASE
    WHEN CAST(d."rest" AS DOUBLE) <= 0 OR d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999
      THEN 'not met: rest > 0'
    WHEN CAST(d."smoker" AS DOUBLE) <= 0 OR d."smoker" IS NULL OR CAST(d."smoker" AS DOUBLE) > 9e999
      THEN 'not met: smoker > 0'
    ELSE 'all rules met'
  END AS decided_by
FROM "data" AS d;
