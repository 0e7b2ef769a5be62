-- Learned by icscm VERSION from 1,500 samples in 3 environments, at level alpha = 0.05.
--
--     device <= 0
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class (prediction), the probability of True, and what decided
-- (decided_by).
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  COALESCE(CASE
    WHEN d."device" IS NULL OR CAST(d."device" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."device" AS DOUBLE) > 0 AND CAST(d."device" AS DOUBLE) <= 9e999
      THEN CAST(0 AS BOOLEAN)
    ELSE CAST(1 AS BOOLEAN)
  END, CASE WHEN CASE WHEN d."device" IS NULL OR CAST(d."device" AS DOUBLE) > 9e999 THEN (6905519428634761e0 / 4503599627370496e0 / 2e0 /* 0.7666666666666667 */) WHEN CAST(d."device" AS DOUBLE) <= 0 THEN 1 ELSE 0 END * (818e0 / 1152e0)
    + CASE WHEN d."device" IS NULL OR CAST(d."device" AS DOUBLE) > 9e999 THEN (2101679826106231e0 / 4503599627370496e0 / 2e0 /* 0.23333333333333328 */) WHEN CAST(d."device" AS DOUBLE) <= 0 THEN 0 ELSE 1 END * (20e0 / 352e0) > 0.5e0 THEN CAST(1 AS BOOLEAN) ELSE CAST(0 AS BOOLEAN) END) AS prediction,
  COALESCE(CASE
    WHEN d."device" IS NULL OR CAST(d."device" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."device" AS DOUBLE) > 0 AND CAST(d."device" AS DOUBLE) <= 9e999
      THEN 20e0 / 352e0
    ELSE 818e0 / 1152e0
  END, CASE WHEN d."device" IS NULL OR CAST(d."device" AS DOUBLE) > 9e999 THEN (6905519428634761e0 / 4503599627370496e0 / 2e0 /* 0.7666666666666667 */) WHEN CAST(d."device" AS DOUBLE) <= 0 THEN 1 ELSE 0 END * (818e0 / 1152e0)
    + CASE WHEN d."device" IS NULL OR CAST(d."device" AS DOUBLE) > 9e999 THEN (2101679826106231e0 / 4503599627370496e0 / 2e0 /* 0.23333333333333328 */) WHEN CAST(d."device" AS DOUBLE) <= 0 THEN 0 ELSE 1 END * (20e0 / 352e0)) AS probability,
  COALESCE(CASE
    WHEN d."device" IS NULL OR CAST(d."device" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."device" AS DOUBLE) > 0 AND CAST(d."device" AS DOUBLE) <= 9e999
      THEN 'not met: device <= 0'
    ELSE 'all rules met'
  END, SUBSTR(CASE WHEN d."device" IS NULL OR CAST(d."device" AS DOUBLE) > 9e999 THEN ', device missing' ELSE '' END, 3) || ': ' || 'mean of ' || CAST(CASE WHEN d."device" IS NULL OR CAST(d."device" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."device" AS DOUBLE) <= 0 THEN 1 ELSE 0 END * (1)
    + CASE WHEN d."device" IS NULL OR CAST(d."device" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."device" AS DOUBLE) <= 0 THEN 0 ELSE 1 END * (1) AS VARCHAR) || ' leaves') AS decided_by
FROM "data" AS d;
