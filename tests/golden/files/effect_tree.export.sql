-- Learned by icscm VERSION from 2,000 samples in 4 environments.
--
--     all: 62.5% of 2,000
--       age > 60: 79.6% of 982
--         dose > 0.5: 87.8% of 469 -> positive
--         dose <= 0.5: 72.1% of 513 -> positive
--       age <= 60: 46.0% of 1,018
--         dose > 0.5: 56.5% of 496 -> positive
--         dose <= 0.5: 36.0% of 522 -> negative
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
      THEN CASE
        WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999
          THEN NULL
        WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
          THEN CAST(1 AS BOOLEAN)
        ELSE CAST(1 AS BOOLEAN)
      END
    WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
      THEN CAST(1 AS BOOLEAN)
    ELSE CAST(0 AS BOOLEAN)
  END, CASE WHEN CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 0.509e0 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN (8777152908352715e0 / 4503599627370496e0 / 4e0 /* 0.48722986247544203 */) WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (281e0 / 498e0)
    + CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN (2309311400282317e0 / 4503599627370496e0 /* 0.5127701375245579 */) WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (189e0 / 524e0))
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 0.491e0 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN (1176347560509707e0 / 2251799813685248e0 /* 0.5224032586558045 */) WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (371e0 / 515e0)
    + CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN (1075452253175541e0 / 2251799813685248e0 /* 0.4775967413441955 */) WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (413e0 / 471e0)) > 0.5e0 THEN CAST(1 AS BOOLEAN) ELSE CAST(0 AS BOOLEAN) END) AS prediction,
  COALESCE(CASE
    WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
      THEN CASE
        WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999
          THEN NULL
        WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
          THEN 413e0 / 471e0
        ELSE 371e0 / 515e0
      END
    WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
      THEN 281e0 / 498e0
    ELSE 189e0 / 524e0
  END, CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 0.509e0 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN (8777152908352715e0 / 4503599627370496e0 / 4e0 /* 0.48722986247544203 */) WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (281e0 / 498e0)
    + CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN (2309311400282317e0 / 4503599627370496e0 /* 0.5127701375245579 */) WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (189e0 / 524e0))
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 0.491e0 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN (1176347560509707e0 / 2251799813685248e0 /* 0.5224032586558045 */) WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (371e0 / 515e0)
    + CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN (1075452253175541e0 / 2251799813685248e0 /* 0.4775967413441955 */) WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (413e0 / 471e0))) AS probability,
  COALESCE(CASE
    WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
      THEN CASE
        WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999
          THEN NULL
        WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
          THEN 'age > 60 and dose > 0.5'
        ELSE 'age > 60 and dose <= 0.5'
      END
    WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
      THEN 'age <= 60 and dose > 0.5'
    ELSE 'age <= 60 and dose <= 0.5'
  END, SUBSTR(CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN ', age missing' ELSE '' END || CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN ', dose missing' ELSE '' END, 3) || ': ' || 'mean of ' || CAST(CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1)
    + CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (1))
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (1)
    + CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1)) AS VARCHAR) || ' leaves') AS decided_by
FROM "data" AS d;
