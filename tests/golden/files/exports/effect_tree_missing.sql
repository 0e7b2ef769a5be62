-- Learned by icscm VERSION from 2,500 samples in 5 environments.
--
--     all: 23.4% of 2,500 (predicts by the mean of the environments' rates)
--       lactate > 2 (missing: false): 42.7% of 1,231
--         age > 65: 83.8% of 582 -> positive
--         age <= 65: 5.9% of 649 -> negative
--       lactate <= 2 (missing: true): 4.6% of 1,269 -> negative
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class (prediction), the probability of 1, and what decided
-- (decided_by).
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  COALESCE(CASE
    WHEN CAST(d."lactate" AS DOUBLE) <= 2 OR d."lactate" IS NULL OR CAST(d."lactate" AS DOUBLE) > 9e999
      THEN 0
    WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999
      THEN 1
    ELSE 0
  END, CASE WHEN CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (4748718372320799e0 / 4503599627370496e0 / 2e0 /* 0.5272136474411048 */) WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * ((2512402033000453e0 / 4503599627370496e0 / 8e0 /* 0.06973316460380388 */))
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (4258480882420193e0 / 4503599627370496e0 / 2e0 /* 0.47278635255889523 */) WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * ((3761185231753185e0 / 4503599627370496e0 /* 0.8351508888344983 */)))
    + CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * ((7012806266269505e0 / 4503599627370496e0 / 32e0 /* 0.04866111865029988 */)) > 0.5e0 THEN 1 ELSE 0 END) AS prediction,
  COALESCE(CASE
    WHEN CAST(d."lactate" AS DOUBLE) <= 2 OR d."lactate" IS NULL OR CAST(d."lactate" AS DOUBLE) > 9e999
      THEN (7012806266269505e0 / 4503599627370496e0 / 32e0 /* 0.04866111865029988 */)
    WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999
      THEN (3761185231753185e0 / 4503599627370496e0 /* 0.8351508888344983 */)
    ELSE (2512402033000453e0 / 4503599627370496e0 / 8e0 /* 0.06973316460380388 */)
  END, CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (4748718372320799e0 / 4503599627370496e0 / 2e0 /* 0.5272136474411048 */) WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * ((2512402033000453e0 / 4503599627370496e0 / 8e0 /* 0.06973316460380388 */))
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (4258480882420193e0 / 4503599627370496e0 / 2e0 /* 0.47278635255889523 */) WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * ((3761185231753185e0 / 4503599627370496e0 /* 0.8351508888344983 */)))
    + CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * ((7012806266269505e0 / 4503599627370496e0 / 32e0 /* 0.04866111865029988 */))) AS probability,
  COALESCE(CASE
    WHEN CAST(d."lactate" AS DOUBLE) <= 2 OR d."lactate" IS NULL OR CAST(d."lactate" AS DOUBLE) > 9e999
      THEN 'lactate <= 2 (missing: true)'
    WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999
      THEN 'lactate > 2 (missing: false) and age > 65'
    ELSE 'lactate > 2 (missing: false) and age <= 65'
  END, SUBSTR(CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN ', age missing' ELSE '' END, 3) || ': ' || 'mean of ' || CAST(CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (1)
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1))
    + CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (1) AS VARCHAR) || ' leaves') AS decided_by
FROM "data" AS d;
