-- Learned by icscm VERSION from 2,000 samples in 2 environments.
--
--     all: 54.6% of 2,000
--       age > 60: 74.0% of 876
--         dose > 0.5: 82.1% of 420 -> positive
--         dose <= 0.5: 66.4% of 456 -> positive
--       age <= 60: 39.6% of 1,124
--         dose > 0.5: 49.7% of 545 -> negative
--         dose <= 0.5: 30.1% of 579 -> negative
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
      THEN CAST(0 AS BOOLEAN)
    ELSE CAST(0 AS BOOLEAN)
  END, CASE WHEN CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 0.562e0 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN (4639829509337219e0 / 4503599627370496e0 / 2e0 /* 0.5151245551601423 */) WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (175e0 / 581e0)
    + CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN (4367369745403773e0 / 4503599627370496e0 / 2e0 /* 0.48487544483985767 */) WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (272e0 / 547e0))
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 0.438e0 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN (8637040381258485e0 / 4503599627370496e0 / 4e0 /* 0.4794520547945205 */) WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (346e0 / 422e0)
    + CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN (2344339532055875e0 / 4503599627370496e0 /* 0.5205479452054795 */) WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (304e0 / 458e0)) > 0.5e0 THEN CAST(1 AS BOOLEAN) ELSE CAST(0 AS BOOLEAN) END) AS prediction,
  COALESCE(CASE
    WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
      THEN CASE
        WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999
          THEN NULL
        WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
          THEN 346e0 / 422e0
        ELSE 304e0 / 458e0
      END
    WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
      THEN 272e0 / 547e0
    ELSE 175e0 / 581e0
  END, CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 0.562e0 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN (4639829509337219e0 / 4503599627370496e0 / 2e0 /* 0.5151245551601423 */) WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (175e0 / 581e0)
    + CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN (4367369745403773e0 / 4503599627370496e0 / 2e0 /* 0.48487544483985767 */) WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (272e0 / 547e0))
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 0.438e0 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN (8637040381258485e0 / 4503599627370496e0 / 4e0 /* 0.4794520547945205 */) WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (346e0 / 422e0)
    + CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN (2344339532055875e0 / 4503599627370496e0 /* 0.5205479452054795 */) WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (304e0 / 458e0))) AS probability,
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
  END, SUBSTR(CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN ', age missing' ELSE '' END || CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN ', dose missing' ELSE '' END, 3) || ': ' || 'mean of ' || CAST(CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (1)
    + CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1))
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1)
    + CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (1)) AS VARCHAR) || ' leaves') AS decided_by
FROM "data" AS d;
