-- Learned by icscm VERSION from 1,264 samples for each tree in 4 environments.
--
--     forest of 5 trees with 4 leaves each
--     trees that use a feature: age (5), dose (5)
--     calibrated: log odds = 0.02 + 1.00 * uncalibrated log odds
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class predicted, the probability of True, and what decided.
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
-- The functions exp and ln are needed: SQLite has them since 3.35, if built with its math functions.
SELECT
  d.*,
  CASE WHEN ((CASE
      WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN CASE
          WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
            THEN 265e0 / 299e0
          ELSE 238e0 / 328e0
        END
      WHEN CAST(d."dose" AS DOUBLE) > 0.44e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 184e0 / 349e0
      ELSE 108e0 / 296e0
    END)
    + (CASE
      WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN CASE
          WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
            THEN 269e0 / 307e0
          ELSE 237e0 / 328e0
        END
      WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 167e0 / 306e0
      ELSE 122e0 / 331e0
    END)
    + (CASE
      WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN CASE
          WHEN CAST(d."dose" AS DOUBLE) > 0.17e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
            THEN 409e0 / 494e0
          ELSE 70e0 / 112e0
        END
      WHEN CAST(d."dose" AS DOUBLE) > 0.52e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 180e0 / 322e0
      ELSE 126e0 / 344e0
    END)
    + (CASE
      WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN CASE
          WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
            THEN 253e0 / 296e0
          ELSE 242e0 / 339e0
        END
      WHEN CAST(d."dose" AS DOUBLE) > 0.54e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 167e0 / 281e0
      ELSE 136e0 / 356e0
    END)
    + (CASE
      WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN CASE
          WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
            THEN 266e0 / 304e0
          ELSE 227e0 / 328e0
        END
      WHEN CAST(d."dose" AS DOUBLE) > 0.52e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 159e0 / 281e0
      ELSE 131e0 / 359e0
    END)) / 5e0 >= (8909600299179109e0 / 4503599627370496e0 / 4e0 /* 0.4945821696177915 */) THEN CAST(1 AS BOOLEAN) ELSE CAST(0 AS BOOLEAN) END AS prediction,
  1e0 / (1e0 + exp(1.001561e0 * ln(1e0 / (((CASE
      WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN CASE
          WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
            THEN 265e0 / 299e0
          ELSE 238e0 / 328e0
        END
      WHEN CAST(d."dose" AS DOUBLE) > 0.44e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 184e0 / 349e0
      ELSE 108e0 / 296e0
    END)
    + (CASE
      WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN CASE
          WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
            THEN 269e0 / 307e0
          ELSE 237e0 / 328e0
        END
      WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 167e0 / 306e0
      ELSE 122e0 / 331e0
    END)
    + (CASE
      WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN CASE
          WHEN CAST(d."dose" AS DOUBLE) > 0.17e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
            THEN 409e0 / 494e0
          ELSE 70e0 / 112e0
        END
      WHEN CAST(d."dose" AS DOUBLE) > 0.52e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 180e0 / 322e0
      ELSE 126e0 / 344e0
    END)
    + (CASE
      WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN CASE
          WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
            THEN 253e0 / 296e0
          ELSE 242e0 / 339e0
        END
      WHEN CAST(d."dose" AS DOUBLE) > 0.54e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 167e0 / 281e0
      ELSE 136e0 / 356e0
    END)
    + (CASE
      WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN CASE
          WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
            THEN 266e0 / 304e0
          ELSE 227e0 / 328e0
        END
      WHEN CAST(d."dose" AS DOUBLE) > 0.52e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 159e0 / 281e0
      ELSE 131e0 / 359e0
    END)) / 5e0) - 1e0) - (0.021706e0))) AS probability,
  CAST((CASE
      WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN CASE
          WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
            THEN 1
          ELSE 1
        END
      WHEN CAST(d."dose" AS DOUBLE) > 0.44e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 1
      ELSE 0
    END)
    + (CASE
      WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN CASE
          WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
            THEN 1
          ELSE 1
        END
      WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 1
      ELSE 0
    END)
    + (CASE
      WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN CASE
          WHEN CAST(d."dose" AS DOUBLE) > 0.17e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
            THEN 1
          ELSE 1
        END
      WHEN CAST(d."dose" AS DOUBLE) > 0.52e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 1
      ELSE 0
    END)
    + (CASE
      WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN CASE
          WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
            THEN 1
          ELSE 1
        END
      WHEN CAST(d."dose" AS DOUBLE) > 0.54e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 1
      ELSE 0
    END)
    + (CASE
      WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN CASE
          WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
            THEN 1
          ELSE 1
        END
      WHEN CAST(d."dose" AS DOUBLE) > 0.52e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 1
      ELSE 0
    END) AS VARCHAR) || ' of 5 trees' AS decided_by
FROM "data" AS d;
