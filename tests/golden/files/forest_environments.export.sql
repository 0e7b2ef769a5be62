-- Learned by icscm VERSION from 1,621 samples at most for each tree in 5 environments.
--
--     forest of 4 trees with 1 to 2 leaves each
--     trees that use a feature: lactate (2), age (1)
--     calibrated: log odds = 0.31 + 1.40 * uncalibrated log odds
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class (prediction), the probability of 1, and what decided
-- (decided_by).
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
-- The functions exp and ln are needed: SQLite has them since 3.35, if built with its math functions.
SELECT
  d.*,
  CASE WHEN ((COALESCE(CASE
      WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999
        THEN 282e0 / 523e0
      ELSE 26e0 / 566e0
    END, CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (282e0 / 523e0)
    + CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (26e0 / 566e0)))
    + (COALESCE(342e0 / 1430e0, 342e0 / 1430e0))
    + (COALESCE(CASE
      WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999
        THEN 337e0 / 810e0
      ELSE 26e0 / 730e0
    END, CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (337e0 / 810e0)
    + CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (26e0 / 730e0)))
    + (COALESCE(CASE
      WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
        THEN NULL
      WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN 327e0 / 734e0
      ELSE 49e0 / 891e0
    END, CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (8134817834016541e0 / 4503599627370496e0 / 4e0 /* 0.45157310302282544 */) WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (327e0 / 734e0)
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (2469895168866361e0 / 4503599627370496e0 /* 0.5484268969771746 */) WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (49e0 / 891e0)))) / 4e0 >= (2001008878762137e0 / 4503599627370496e0 /* 0.4443132259362186 */) THEN 1 ELSE 0 END AS prediction,
  1e0 / (1e0 + exp(1.404587e0 * ln(1e0 / (((COALESCE(CASE
      WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999
        THEN 282e0 / 523e0
      ELSE 26e0 / 566e0
    END, CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (282e0 / 523e0)
    + CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (26e0 / 566e0)))
    + (COALESCE(342e0 / 1430e0, 342e0 / 1430e0))
    + (COALESCE(CASE
      WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999
        THEN 337e0 / 810e0
      ELSE 26e0 / 730e0
    END, CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (337e0 / 810e0)
    + CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (26e0 / 730e0)))
    + (COALESCE(CASE
      WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
        THEN NULL
      WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN 327e0 / 734e0
      ELSE 49e0 / 891e0
    END, CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (8134817834016541e0 / 4503599627370496e0 / 4e0 /* 0.45157310302282544 */) WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (327e0 / 734e0)
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (2469895168866361e0 / 4503599627370496e0 /* 0.5484268969771746 */) WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (49e0 / 891e0)))) / 4e0) - 1e0) - (0.314171e0))) AS probability,
  CASE WHEN (CASE
      WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999
        THEN 1
      ELSE 0
    END)
    + (0)
    + (CASE
      WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999
        THEN 0
      ELSE 0
    END)
    + (CASE
      WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
        THEN NULL
      WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN 0
      ELSE 0
    END) IS NULL THEN SUBSTR(CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN ', age missing' ELSE '' END, 3) || ': ' ELSE '' END || CAST((COALESCE(CASE
      WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999
        THEN 1
      ELSE 0
    END, CASE WHEN CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (282e0 / 523e0)
    + CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (26e0 / 566e0) > 0.5e0 THEN 1 ELSE 0 END))
    + (COALESCE(0, CASE WHEN 342e0 / 1430e0 > 0.5e0 THEN 1 ELSE 0 END))
    + (COALESCE(CASE
      WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999
        THEN 0
      ELSE 0
    END, CASE WHEN CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (337e0 / 810e0)
    + CASE WHEN CAST(d."lactate" AS DOUBLE) > 2 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (26e0 / 730e0) > 0.5e0 THEN 1 ELSE 0 END))
    + (COALESCE(CASE
      WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
        THEN NULL
      WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN 0
      ELSE 0
    END, CASE WHEN CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (8134817834016541e0 / 4503599627370496e0 / 4e0 /* 0.45157310302282544 */) WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (327e0 / 734e0)
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (2469895168866361e0 / 4503599627370496e0 /* 0.5484268969771746 */) WHEN CAST(d."age" AS DOUBLE) > 65 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (49e0 / 891e0) > 0.5e0 THEN 1 ELSE 0 END)) AS VARCHAR) || ' of 4 trees above 0.5' AS decided_by
FROM "data" AS d;
