-- Learned by icscm VERSION from 4,000 samples in 40 environments, at level alpha = 0.05.
--
--     rest > 0 and smoker > 0
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class (prediction), the probability of True, and what decided
-- (decided_by).
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  COALESCE(CASE
    WHEN d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."rest" AS DOUBLE) <= 0
      THEN CAST(0 AS BOOLEAN)
    WHEN d."smoker" IS NULL OR CAST(d."smoker" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."smoker" AS DOUBLE) <= 0
      THEN CAST(0 AS BOOLEAN)
    ELSE CAST(1 AS BOOLEAN)
  END, CASE WHEN CASE WHEN d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999 THEN 0.5145e0 WHEN CAST(d."rest" AS DOUBLE) > 0 AND CAST(d."rest" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."smoker" IS NULL OR CAST(d."smoker" AS DOUBLE) > 9e999 THEN (1154348300990251e0 / 2251799813685248e0 /* 0.5126336248785228 */) WHEN CAST(d."smoker" AS DOUBLE) > 0 AND CAST(d."smoker" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (889e0 / 1057e0)
    + CASE WHEN d."smoker" IS NULL OR CAST(d."smoker" AS DOUBLE) > 9e999 THEN (1097451512694997e0 / 2251799813685248e0 /* 0.4873663751214772 */) WHEN CAST(d."smoker" AS DOUBLE) > 0 AND CAST(d."smoker" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (109e0 / 1005e0))
    + CASE WHEN d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999 THEN (273312202386047e0 / 562949953421312e0 /* 0.48550000000000004 */) WHEN CAST(d."rest" AS DOUBLE) > 0 AND CAST(d."rest" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (191e0 / 1944e0) > 0.5e0 THEN CAST(1 AS BOOLEAN) ELSE CAST(0 AS BOOLEAN) END) AS prediction,
  COALESCE(CASE
    WHEN d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."rest" AS DOUBLE) <= 0
      THEN 191e0 / 1944e0
    WHEN d."smoker" IS NULL OR CAST(d."smoker" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."smoker" AS DOUBLE) <= 0
      THEN 109e0 / 1005e0
    ELSE 889e0 / 1057e0
  END, CASE WHEN d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999 THEN 0.5145e0 WHEN CAST(d."rest" AS DOUBLE) > 0 AND CAST(d."rest" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."smoker" IS NULL OR CAST(d."smoker" AS DOUBLE) > 9e999 THEN (1154348300990251e0 / 2251799813685248e0 /* 0.5126336248785228 */) WHEN CAST(d."smoker" AS DOUBLE) > 0 AND CAST(d."smoker" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (889e0 / 1057e0)
    + CASE WHEN d."smoker" IS NULL OR CAST(d."smoker" AS DOUBLE) > 9e999 THEN (1097451512694997e0 / 2251799813685248e0 /* 0.4873663751214772 */) WHEN CAST(d."smoker" AS DOUBLE) > 0 AND CAST(d."smoker" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (109e0 / 1005e0))
    + CASE WHEN d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999 THEN (273312202386047e0 / 562949953421312e0 /* 0.48550000000000004 */) WHEN CAST(d."rest" AS DOUBLE) > 0 AND CAST(d."rest" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (191e0 / 1944e0)) AS probability,
  COALESCE(CASE
    WHEN d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."rest" AS DOUBLE) <= 0
      THEN 'not met: rest > 0'
    WHEN d."smoker" IS NULL OR CAST(d."smoker" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."smoker" AS DOUBLE) <= 0
      THEN 'not met: smoker > 0'
    ELSE 'all rules met'
  END, SUBSTR(CASE WHEN d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999 THEN ', rest missing' ELSE '' END || CASE WHEN d."smoker" IS NULL OR CAST(d."smoker" AS DOUBLE) > 9e999 THEN ', smoker missing' ELSE '' END, 3) || ': ' || 'mean of ' || CAST(CASE WHEN d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."rest" AS DOUBLE) > 0 AND CAST(d."rest" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."smoker" IS NULL OR CAST(d."smoker" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."smoker" AS DOUBLE) > 0 AND CAST(d."smoker" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1)
    + CASE WHEN d."smoker" IS NULL OR CAST(d."smoker" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."smoker" AS DOUBLE) > 0 AND CAST(d."smoker" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (1))
    + CASE WHEN d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."rest" AS DOUBLE) > 0 AND CAST(d."rest" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (1) AS VARCHAR) || ' leaves') AS decided_by
FROM "data" AS d;
