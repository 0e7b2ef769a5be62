-- Learned by icscm VERSION from 4,500 samples in 3 environments, at level alpha = 0.05.
--
--     C1 > 0
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class (prediction), the probability of yes, and what decided
-- (decided_by).
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  COALESCE(CASE
    WHEN d."C1" IS NULL OR CAST(d."C1" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."C1" AS DOUBLE) <= 0
      THEN 'no'
    ELSE 'yes'
  END, CASE WHEN CASE WHEN d."C1" IS NULL OR CAST(d."C1" AS DOUBLE) > 9e999 THEN (7736183359905319e0 / 4503599627370496e0 / 2e0 /* 0.8588888888888889 */) WHEN CAST(d."C1" AS DOUBLE) > 0 AND CAST(d."C1" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (20e0 / 3867e0)
    + CASE WHEN d."C1" IS NULL OR CAST(d."C1" AS DOUBLE) > 9e999 THEN (5084063579342693e0 / 4503599627370496e0 / 8e0 /* 0.1411111111111111 */) WHEN CAST(d."C1" AS DOUBLE) > 0 AND CAST(d."C1" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (538e0 / 637e0) > 0.5e0 THEN 'yes' ELSE 'no' END) AS prediction,
  COALESCE(CASE
    WHEN d."C1" IS NULL OR CAST(d."C1" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."C1" AS DOUBLE) <= 0
      THEN 20e0 / 3867e0
    ELSE 538e0 / 637e0
  END, CASE WHEN d."C1" IS NULL OR CAST(d."C1" AS DOUBLE) > 9e999 THEN (7736183359905319e0 / 4503599627370496e0 / 2e0 /* 0.8588888888888889 */) WHEN CAST(d."C1" AS DOUBLE) > 0 AND CAST(d."C1" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (20e0 / 3867e0)
    + CASE WHEN d."C1" IS NULL OR CAST(d."C1" AS DOUBLE) > 9e999 THEN (5084063579342693e0 / 4503599627370496e0 / 8e0 /* 0.1411111111111111 */) WHEN CAST(d."C1" AS DOUBLE) > 0 AND CAST(d."C1" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (538e0 / 637e0)) AS probability,
  COALESCE(CASE
    WHEN d."C1" IS NULL OR CAST(d."C1" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."C1" AS DOUBLE) <= 0
      THEN 'not met: C1 > 0'
    ELSE 'all rules met'
  END, SUBSTR(CASE WHEN d."C1" IS NULL OR CAST(d."C1" AS DOUBLE) > 9e999 THEN ', C1 missing' ELSE '' END, 3) || ': ' || 'mean of ' || CAST(CASE WHEN d."C1" IS NULL OR CAST(d."C1" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."C1" AS DOUBLE) > 0 AND CAST(d."C1" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (1)
    + CASE WHEN d."C1" IS NULL OR CAST(d."C1" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."C1" AS DOUBLE) > 0 AND CAST(d."C1" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1) AS VARCHAR) || ' leaves') AS decided_by
FROM "data" AS d;
