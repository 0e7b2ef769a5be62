-- Learned by icscm VERSION from 1,768 samples at most for each tree in 5 environments.
--
--     forest of 4 trees with 1 to 2 leaves each
--     trees that use a feature: creatinine (1), age (1)
--     calibrated: log odds = 1.06 + 2.10 * uncalibrated log odds
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class predicted, the probability of 1, and what decided.
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
-- The functions exp and ln are needed: SQLite has them since 3.35, if built with its math functions.
SELECT
  d.*,
  CASE WHEN ((COALESCE(313e0 / 1234e0, 313e0 / 1234e0))
    + (COALESCE(342e0 / 1430e0, 342e0 / 1430e0))
    + (COALESCE(CASE
      WHEN CAST(d."creatinine" AS DOUBLE) > 158 AND CAST(d."creatinine" AS DOUBLE) <= 9e999
        THEN 29e0 / 49e0
      ELSE 318e0 / 1380e0
    END, CASE WHEN CAST(d."creatinine" AS DOUBLE) > 158 AND CAST(d."creatinine" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (29e0 / 49e0)
    + CASE WHEN CAST(d."creatinine" AS DOUBLE) > 158 AND CAST(d."creatinine" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (318e0 / 1380e0)))
    + (COALESCE(CASE
      WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
        THEN NULL
      WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN 325e0 / 751e0
      ELSE 57e0 / 1021e0
    END, CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (7631665431901587e0 / 4503599627370496e0 / 4e0 /* 0.4236425339366516 */) WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (325e0 / 751e0)
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (2595683269395099e0 / 4503599627370496e0 /* 0.5763574660633484 */) WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (57e0 / 1021e0)))) / 4e0 >= (6783958680361713e0 / 4503599627370496e0 / 4e0 /* 0.37658535625216333 */) THEN 1 ELSE 0 END AS prediction,
  1e0 / (1e0 + exp(2.097673e0 * ln(1e0 / (((COALESCE(313e0 / 1234e0, 313e0 / 1234e0))
    + (COALESCE(342e0 / 1430e0, 342e0 / 1430e0))
    + (COALESCE(CASE
      WHEN CAST(d."creatinine" AS DOUBLE) > 158 AND CAST(d."creatinine" AS DOUBLE) <= 9e999
        THEN 29e0 / 49e0
      ELSE 318e0 / 1380e0
    END, CASE WHEN CAST(d."creatinine" AS DOUBLE) > 158 AND CAST(d."creatinine" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (29e0 / 49e0)
    + CASE WHEN CAST(d."creatinine" AS DOUBLE) > 158 AND CAST(d."creatinine" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (318e0 / 1380e0)))
    + (COALESCE(CASE
      WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
        THEN NULL
      WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN 325e0 / 751e0
      ELSE 57e0 / 1021e0
    END, CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (7631665431901587e0 / 4503599627370496e0 / 4e0 /* 0.4236425339366516 */) WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (325e0 / 751e0)
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (2595683269395099e0 / 4503599627370496e0 /* 0.5763574660633484 */) WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (57e0 / 1021e0)))) / 4e0) - 1e0) - (1.057368e0))) AS probability,
  CASE WHEN (0)
    + (0)
    + (CASE
      WHEN CAST(d."creatinine" AS DOUBLE) > 158 AND CAST(d."creatinine" AS DOUBLE) <= 9e999
        THEN 1
      ELSE 0
    END)
    + (CASE
      WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
        THEN NULL
      WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN 0
      ELSE 0
    END) IS NULL THEN SUBSTR(CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN ', age' ELSE '' END, 3) || ' missing: ' ELSE '' END || CAST((COALESCE(0, CASE WHEN 313e0 / 1234e0 > 0.5e0 THEN 1 ELSE 0 END))
    + (COALESCE(0, CASE WHEN 342e0 / 1430e0 > 0.5e0 THEN 1 ELSE 0 END))
    + (COALESCE(CASE
      WHEN CAST(d."creatinine" AS DOUBLE) > 158 AND CAST(d."creatinine" AS DOUBLE) <= 9e999
        THEN 1
      ELSE 0
    END, CASE WHEN CASE WHEN CAST(d."creatinine" AS DOUBLE) > 158 AND CAST(d."creatinine" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (29e0 / 49e0)
    + CASE WHEN CAST(d."creatinine" AS DOUBLE) > 158 AND CAST(d."creatinine" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (318e0 / 1380e0) > 0.5e0 THEN 1 ELSE 0 END))
    + (COALESCE(CASE
      WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
        THEN NULL
      WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN 0
      ELSE 0
    END, CASE WHEN CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (7631665431901587e0 / 4503599627370496e0 / 4e0 /* 0.4236425339366516 */) WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (325e0 / 751e0)
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (2595683269395099e0 / 4503599627370496e0 /* 0.5763574660633484 */) WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (57e0 / 1021e0) > 0.5e0 THEN 1 ELSE 0 END)) AS VARCHAR) || ' of 4 trees' AS decided_by
FROM "data" AS d;
