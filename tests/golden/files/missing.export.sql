-- Learned by icscm VERSION from 3,000 samples in 5 environments, at level alpha = 0.05.
--
--     age > 67 and lactate > 2 (missing: false)
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class (prediction), the probability of 1, and what decided
-- (decided_by).
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  COALESCE(CASE
    WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."age" AS DOUBLE) <= 67
      THEN 0
    WHEN CAST(d."lactate" AS DOUBLE) <= 2 OR d."lactate" IS NULL OR CAST(d."lactate" AS DOUBLE) > 9e999
      THEN 0
    ELSE 1
  END, CASE WHEN CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (3894112477799689e0 / 4503599627370496e0 / 2e0 /* 0.43233333333333335 */) WHEN CAST(d."age" AS DOUBLE) > 67 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (545e0 / 647e0)
    + CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (40e0 / 654e0))
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (5113086776941303e0 / 4503599627370496e0 / 2e0 /* 0.5676666666666667 */) WHEN CAST(d."age" AS DOUBLE) > 67 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (132e0 / 1705e0) > 0.5e0 THEN 1 ELSE 0 END) AS prediction,
  COALESCE(CASE
    WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."age" AS DOUBLE) <= 67
      THEN 132e0 / 1705e0
    WHEN CAST(d."lactate" AS DOUBLE) <= 2 OR d."lactate" IS NULL OR CAST(d."lactate" AS DOUBLE) > 9e999
      THEN 40e0 / 654e0
    ELSE 545e0 / 647e0
  END, CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (3894112477799689e0 / 4503599627370496e0 / 2e0 /* 0.43233333333333335 */) WHEN CAST(d."age" AS DOUBLE) > 67 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (545e0 / 647e0)
    + CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (40e0 / 654e0))
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (5113086776941303e0 / 4503599627370496e0 / 2e0 /* 0.5676666666666667 */) WHEN CAST(d."age" AS DOUBLE) > 67 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (132e0 / 1705e0)) AS probability,
  COALESCE(CASE
    WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."age" AS DOUBLE) <= 67
      THEN 'not met: age > 67'
    WHEN CAST(d."lactate" AS DOUBLE) <= 2 OR d."lactate" IS NULL OR CAST(d."lactate" AS DOUBLE) > 9e999
      THEN 'not met: lactate > 2 (missing: false)'
    ELSE 'all rules met'
  END, SUBSTR(CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN ', age missing' ELSE '' END, 3) || ': ' || 'mean of ' || CAST(CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."age" AS DOUBLE) > 67 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1)
    + CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (1))
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."age" AS DOUBLE) > 67 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (1) AS VARCHAR) || ' leaves') AS decided_by
FROM "data" AS d;
