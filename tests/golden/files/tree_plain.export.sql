-- Learned by icscm VERSION from 2,000 samples in 4 environments.
--
--     all: 62.5% of 2,000
--       code > 0: 83.4% of 1,060
--         age > 60: 91.3% of 601
--           dose > 0.21: 94.4% of 485 -> positive
--           dose <= 0.21: 78.4% of 116 -> positive
--         age <= 60: 73.0% of 459 -> positive
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
    WHEN CAST(d."code" AS DOUBLE) <= 0
      THEN CASE
        WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
          THEN NULL
        WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
          THEN CAST(1 AS BOOLEAN)
        ELSE CAST(0 AS BOOLEAN)
      END
    WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."age" AS DOUBLE) <= 60
      THEN CAST(1 AS BOOLEAN)
    WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."dose" AS DOUBLE) > 0.21e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
      THEN CAST(1 AS BOOLEAN)
    ELSE CAST(1 AS BOOLEAN)
  END, CASE WHEN CASE WHEN d."code" IS NULL OR CAST(d."code" AS DOUBLE) > 9e999 THEN 0.53e0 WHEN CAST(d."code" AS DOUBLE) > 0 AND CAST(d."code" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (5106912030282393e0 / 4503599627370496e0 / 2e0 /* 0.5669811320754717 */) WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN (869247182653873e0 / 4503599627370496e0 /* 0.19301164725457576 */) WHEN CAST(d."dose" AS DOUBLE) > 0.21e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (92e0 / 118e0)
    + CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN (3634352444716623e0 / 4503599627370496e0 /* 0.8069883527454242 */) WHEN CAST(d."dose" AS DOUBLE) > 0.21e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (459e0 / 487e0))
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (3900287224458599e0 / 4503599627370496e0 / 2e0 /* 0.43301886792452826 */) WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (336e0 / 461e0))
    + CASE WHEN d."code" IS NULL OR CAST(d."code" AS DOUBLE) > 9e999 THEN 0.47e0 WHEN CAST(d."code" AS DOUBLE) > 0 AND CAST(d."code" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (7301580672460251e0 / 4503599627370496e0 / 4e0 /* 0.4053191489361702 */) WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (234e0 / 383e0)
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (2678204459255433e0 / 4503599627370496e0 /* 0.5946808510638297 */) WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (134e0 / 561e0)) > 0.5e0 THEN CAST(1 AS BOOLEAN) ELSE CAST(0 AS BOOLEAN) END) AS prediction,
  COALESCE(CASE
    WHEN d."code" IS NULL OR CAST(d."code" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."code" AS DOUBLE) <= 0
      THEN CASE
        WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
          THEN NULL
        WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
          THEN 234e0 / 383e0
        ELSE 134e0 / 561e0
      END
    WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."age" AS DOUBLE) <= 60
      THEN 336e0 / 461e0
    WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."dose" AS DOUBLE) > 0.21e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
      THEN 459e0 / 487e0
    ELSE 92e0 / 118e0
  END, CASE WHEN d."code" IS NULL OR CAST(d."code" AS DOUBLE) > 9e999 THEN 0.53e0 WHEN CAST(d."code" AS DOUBLE) > 0 AND CAST(d."code" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (5106912030282393e0 / 4503599627370496e0 / 2e0 /* 0.5669811320754717 */) WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN (869247182653873e0 / 4503599627370496e0 /* 0.19301164725457576 */) WHEN CAST(d."dose" AS DOUBLE) > 0.21e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (92e0 / 118e0)
    + CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN (3634352444716623e0 / 4503599627370496e0 /* 0.8069883527454242 */) WHEN CAST(d."dose" AS DOUBLE) > 0.21e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (459e0 / 487e0))
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (3900287224458599e0 / 4503599627370496e0 / 2e0 /* 0.43301886792452826 */) WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (336e0 / 461e0))
    + CASE WHEN d."code" IS NULL OR CAST(d."code" AS DOUBLE) > 9e999 THEN 0.47e0 WHEN CAST(d."code" AS DOUBLE) > 0 AND CAST(d."code" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (7301580672460251e0 / 4503599627370496e0 / 4e0 /* 0.4053191489361702 */) WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (234e0 / 383e0)
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (2678204459255433e0 / 4503599627370496e0 /* 0.5946808510638297 */) WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (134e0 / 561e0))) AS probability,
  COALESCE(CASE
    WHEN d."code" IS NULL OR CAST(d."code" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."code" AS DOUBLE) <= 0
      THEN CASE
        WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
          THEN NULL
        WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
          THEN 'code <= 0 and age > 60'
        ELSE 'code <= 0 and age <= 60'
      END
    WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."age" AS DOUBLE) <= 60
      THEN 'code > 0 and age <= 60'
    WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."dose" AS DOUBLE) > 0.21e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
      THEN 'code > 0 and age > 60 and dose > 0.21'
    ELSE 'code > 0 and age > 60 and dose <= 0.21'
  END, SUBSTR(CASE WHEN d."code" IS NULL OR CAST(d."code" AS DOUBLE) > 9e999 THEN ', code missing' ELSE '' END || CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN ', age missing' ELSE '' END || CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN ', dose missing' ELSE '' END, 3) || ': ' || 'mean of ' || CAST(CASE WHEN d."code" IS NULL OR CAST(d."code" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."code" AS DOUBLE) > 0 AND CAST(d."code" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."dose" AS DOUBLE) > 0.21e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (1)
    + CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."dose" AS DOUBLE) > 0.21e0 AND CAST(d."dose" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1))
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (1))
    + CASE WHEN d."code" IS NULL OR CAST(d."code" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."code" AS DOUBLE) > 0 AND CAST(d."code" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1)
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (1)) AS VARCHAR) || ' leaves') AS decided_by
FROM "data" AS d;
