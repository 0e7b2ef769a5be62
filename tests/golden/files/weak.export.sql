-- Learned by icscm VERSION from 900 samples in 3 environments, at level alpha = 0.05.
--
--     u <= 0
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class (prediction), the probability of 1, and what decided
-- (decided_by).
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  COALESCE(CASE
    WHEN d."u" IS NULL OR CAST(d."u" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."u" AS DOUBLE) > 0 AND CAST(d."u" AS DOUBLE) <= 9e999
      THEN 0
    ELSE 1
  END, CASE WHEN CASE WHEN d."u" IS NULL OR CAST(d."u" AS DOUBLE) > 9e999 THEN (4573655621574037e0 / 4503599627370496e0 / 2e0 /* 0.5077777777777778 */) WHEN CAST(d."u" AS DOUBLE) <= 0 THEN 1 ELSE 0 END * (243e0 / 459e0)
    + CASE WHEN d."u" IS NULL OR CAST(d."u" AS DOUBLE) > 9e999 THEN (4433543633166955e0 / 4503599627370496e0 / 2e0 /* 0.4922222222222222 */) WHEN CAST(d."u" AS DOUBLE) <= 0 THEN 0 ELSE 1 END * (216e0 / 445e0) > 0.5e0 THEN 1 ELSE 0 END) AS prediction,
  COALESCE(CASE
    WHEN d."u" IS NULL OR CAST(d."u" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."u" AS DOUBLE) > 0 AND CAST(d."u" AS DOUBLE) <= 9e999
      THEN 216e0 / 445e0
    ELSE 243e0 / 459e0
  END, CASE WHEN d."u" IS NULL OR CAST(d."u" AS DOUBLE) > 9e999 THEN (4573655621574037e0 / 4503599627370496e0 / 2e0 /* 0.5077777777777778 */) WHEN CAST(d."u" AS DOUBLE) <= 0 THEN 1 ELSE 0 END * (243e0 / 459e0)
    + CASE WHEN d."u" IS NULL OR CAST(d."u" AS DOUBLE) > 9e999 THEN (4433543633166955e0 / 4503599627370496e0 / 2e0 /* 0.4922222222222222 */) WHEN CAST(d."u" AS DOUBLE) <= 0 THEN 0 ELSE 1 END * (216e0 / 445e0)) AS probability,
  COALESCE(CASE
    WHEN d."u" IS NULL OR CAST(d."u" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."u" AS DOUBLE) > 0 AND CAST(d."u" AS DOUBLE) <= 9e999
      THEN 'not met: u <= 0'
    ELSE 'all rules met'
  END, SUBSTR(CASE WHEN d."u" IS NULL OR CAST(d."u" AS DOUBLE) > 9e999 THEN ', u missing' ELSE '' END, 3) || ': ' || 'mean of ' || CAST(CASE WHEN d."u" IS NULL OR CAST(d."u" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."u" AS DOUBLE) <= 0 THEN 1 ELSE 0 END * (1)
    + CASE WHEN d."u" IS NULL OR CAST(d."u" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."u" AS DOUBLE) <= 0 THEN 0 ELSE 1 END * (1) AS VARCHAR) || ' leaves') AS decided_by
FROM "data" AS d;
