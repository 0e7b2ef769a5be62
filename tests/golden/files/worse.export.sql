-- Learned by icscm VERSION from 2,000 samples in 3 environments, at level alpha = 0.05.
--
--     risk > 0.7
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class (prediction), the probability of True, and what decided
-- (decided_by).
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  COALESCE(CASE
    WHEN d."risk" IS NULL OR CAST(d."risk" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."risk" AS DOUBLE) <= 0.7e0
      THEN CAST(0 AS BOOLEAN)
    ELSE CAST(1 AS BOOLEAN)
  END, CASE WHEN CASE WHEN d."risk" IS NULL OR CAST(d."risk" AS DOUBLE) > 9e999 THEN 0.706e0 WHEN CAST(d."risk" AS DOUBLE) > 0.7e0 AND CAST(d."risk" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (47e0 / 1414e0)
    + CASE WHEN d."risk" IS NULL OR CAST(d."risk" AS DOUBLE) > 9e999 THEN 0.294e0 WHEN CAST(d."risk" AS DOUBLE) > 0.7e0 AND CAST(d."risk" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (184e0 / 590e0) > 0.5e0 THEN CAST(1 AS BOOLEAN) ELSE CAST(0 AS BOOLEAN) END) AS prediction,
  COALESCE(CASE
    WHEN d."risk" IS NULL OR CAST(d."risk" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."risk" AS DOUBLE) <= 0.7e0
      THEN 47e0 / 1414e0
    ELSE 184e0 / 590e0
  END, CASE WHEN d."risk" IS NULL OR CAST(d."risk" AS DOUBLE) > 9e999 THEN 0.706e0 WHEN CAST(d."risk" AS DOUBLE) > 0.7e0 AND CAST(d."risk" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (47e0 / 1414e0)
    + CASE WHEN d."risk" IS NULL OR CAST(d."risk" AS DOUBLE) > 9e999 THEN 0.294e0 WHEN CAST(d."risk" AS DOUBLE) > 0.7e0 AND CAST(d."risk" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (184e0 / 590e0)) AS probability,
  COALESCE(CASE
    WHEN d."risk" IS NULL OR CAST(d."risk" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."risk" AS DOUBLE) <= 0.7e0
      THEN 'not met: risk > 0.7'
    ELSE 'all rules met'
  END, SUBSTR(CASE WHEN d."risk" IS NULL OR CAST(d."risk" AS DOUBLE) > 9e999 THEN ', risk missing' ELSE '' END, 3) || ': ' || 'mean of ' || CAST(CASE WHEN d."risk" IS NULL OR CAST(d."risk" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."risk" AS DOUBLE) > 0.7e0 AND CAST(d."risk" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (1)
    + CASE WHEN d."risk" IS NULL OR CAST(d."risk" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."risk" AS DOUBLE) > 0.7e0 AND CAST(d."risk" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1) AS VARCHAR) || ' leaves') AS decided_by
FROM "data" AS d;
