-- Learned by icscm VERSION from 2,000 samples in 3 environments, at level alpha = 0.05.
--
--     risk > 0.7
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class predicted, the probability of True, and what decided.
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  CASE
    WHEN CAST(d."risk" AS DOUBLE) <= 0.7e0 OR d."risk" IS NULL OR CAST(d."risk" AS DOUBLE) > 9e999
      THEN CAST(0 AS BOOLEAN)
    ELSE CAST(1 AS BOOLEAN)
  END AS prediction,
  CASE
    WHEN CAST(d."risk" AS DOUBLE) <= 0.7e0 OR d."risk" IS NULL OR CAST(d."risk" AS DOUBLE) > 9e999
      THEN 47e0 / 1414e0
    ELSE 184e0 / 590e0
  END AS probability,
  CASE
    WHEN CAST(d."risk" AS DOUBLE) <= 0.7e0 OR d."risk" IS NULL OR CAST(d."risk" AS DOUBLE) > 9e999
      THEN 'not met: risk > 0.7'
    ELSE 'all rules met'
  END AS decided_by
FROM "data" AS d;
