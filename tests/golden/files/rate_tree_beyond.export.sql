-- Learned by icscm VERSION from 2,000 samples in 4 environments.
--
--     all: 62.5% of 2,000
--       age > 60: 79.6% of 982 -> positive
--       age <= 60: 46.0% of 1,018 -> negative
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class (prediction), the probability of True, and what decided
-- (decided_by).
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  COALESCE(CASE
    WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
      THEN CAST(1 AS BOOLEAN)
    ELSE CAST(0 AS BOOLEAN)
  END, CASE WHEN CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 0.509e0 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (469e0 / 1020e0)
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 0.491e0 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (783e0 / 984e0) > 0.5e0 THEN CAST(1 AS BOOLEAN) ELSE CAST(0 AS BOOLEAN) END) AS prediction,
  COALESCE(CASE
    WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
      THEN 783e0 / 984e0
    ELSE 469e0 / 1020e0
  END, CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 0.509e0 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (469e0 / 1020e0)
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 0.491e0 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (783e0 / 984e0)) AS probability,
  COALESCE(CASE
    WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
      THEN 'age > 60'
    ELSE 'age <= 60'
  END, SUBSTR(CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN ', age missing' ELSE '' END, 3) || ': ' || 'mean of ' || CAST(CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (1)
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1) AS VARCHAR) || ' leaves') AS decided_by
FROM "data" AS d;
