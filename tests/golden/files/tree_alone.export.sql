-- Learned by icscm VERSION from 2,000 samples.
--
--     all: 62.5% of 2,000
--       code > 0: 83.4% of 1,060 -> positive
--       code <= 0: 38.9% of 940
--         age > 60: 61.2% of 381 -> positive
--         age <= 60: 23.8% of 559 -> negative
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class (prediction), the probability of True, and what decided
-- (decided_by).
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  COALESCE(CASE
    WHEN d."code" IS NULL OR CAST(d."code" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."code" AS DOUBLE) > 0 AND CAST(d."code" AS DOUBLE) <= 9e999
      THEN CAST(1 AS BOOLEAN)
    WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
      THEN CAST(1 AS BOOLEAN)
    ELSE CAST(0 AS BOOLEAN)
  END, CASE WHEN CASE WHEN d."code" IS NULL OR CAST(d."code" AS DOUBLE) > 9e999 THEN 0.47e0 WHEN CAST(d."code" AS DOUBLE) > 0 AND CAST(d."code" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (7301580672460251e0 / 4503599627370496e0 / 4e0 /* 0.4053191489361702 */) WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (234e0 / 383e0)
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (2678204459255433e0 / 4503599627370496e0 /* 0.5946808510638297 */) WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (134e0 / 561e0))
    + CASE WHEN d."code" IS NULL OR CAST(d."code" AS DOUBLE) > 9e999 THEN 0.53e0 WHEN CAST(d."code" AS DOUBLE) > 0 AND CAST(d."code" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (885e0 / 1062e0) > 0.5e0 THEN CAST(1 AS BOOLEAN) ELSE CAST(0 AS BOOLEAN) END) AS prediction,
  COALESCE(CASE
    WHEN d."code" IS NULL OR CAST(d."code" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."code" AS DOUBLE) > 0 AND CAST(d."code" AS DOUBLE) <= 9e999
      THEN 885e0 / 1062e0
    WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
      THEN 234e0 / 383e0
    ELSE 134e0 / 561e0
  END, CASE WHEN d."code" IS NULL OR CAST(d."code" AS DOUBLE) > 9e999 THEN 0.47e0 WHEN CAST(d."code" AS DOUBLE) > 0 AND CAST(d."code" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (7301580672460251e0 / 4503599627370496e0 / 4e0 /* 0.4053191489361702 */) WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (234e0 / 383e0)
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (2678204459255433e0 / 4503599627370496e0 /* 0.5946808510638297 */) WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (134e0 / 561e0))
    + CASE WHEN d."code" IS NULL OR CAST(d."code" AS DOUBLE) > 9e999 THEN 0.53e0 WHEN CAST(d."code" AS DOUBLE) > 0 AND CAST(d."code" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (885e0 / 1062e0)) AS probability,
  COALESCE(CASE
    WHEN d."code" IS NULL OR CAST(d."code" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."code" AS DOUBLE) > 0 AND CAST(d."code" AS DOUBLE) <= 9e999
      THEN 'code > 0'
    WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
      THEN 'code <= 0 and age > 60'
    ELSE 'code <= 0 and age <= 60'
  END, SUBSTR(CASE WHEN d."code" IS NULL OR CAST(d."code" AS DOUBLE) > 9e999 THEN ', code missing' ELSE '' END || CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN ', age missing' ELSE '' END, 3) || ': ' || 'mean of ' || CAST(CASE WHEN d."code" IS NULL OR CAST(d."code" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."code" AS DOUBLE) > 0 AND CAST(d."code" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1)
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (1))
    + CASE WHEN d."code" IS NULL OR CAST(d."code" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."code" AS DOUBLE) > 0 AND CAST(d."code" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1) AS VARCHAR) || ' leaves') AS decided_by
FROM "data" AS d;
