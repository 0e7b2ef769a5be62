-- Learned by icscm VERSION from 1,500 samples in 4 environments.
--
--     score of 2 columns, 0 to 11 points
--     column  value              points
--     age     <= 61                   0
--             > 61                    4
--             missing (average)       3
--     dose    <= 0.03                 2
--             > 0.03 to 0.52          0
--             > 0.52 to 0.97          3
--             > 0.97                  7
--             missing (average)       2
--     total      0      1      2      3      4      5      6      7      8      9
--     risk   35.6%  41.8%  49.6%  58.7%  68.5%  77.7%  85.6%  91.4%  95.2%  97.5%
--     total     10     11
--     risk   98.8%  99.5%
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class (prediction), the probability of True, and what decided
-- (decided_by).
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  CASE WHEN ((CASE
      WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
        THEN 3
      WHEN CAST(d."age" AS DOUBLE) > 61 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN 4
      WHEN CAST(d."age" AS DOUBLE) <= 61
        THEN 0
      ELSE 0
    END)
    + (CASE
      WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999
        THEN 2
      WHEN CAST(d."dose" AS DOUBLE) > 0.97e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 7
      WHEN CAST(d."dose" AS DOUBLE) > 0.52e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 3
      WHEN CAST(d."dose" AS DOUBLE) > 0.03e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 0
      WHEN CAST(d."dose" AS DOUBLE) <= 0.03e0
        THEN 2
      ELSE 0
    END)) >= 3 THEN CAST(1 AS BOOLEAN) ELSE CAST(0 AS BOOLEAN) END AS prediction,
  CASE ((CASE
      WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
        THEN 3
      WHEN CAST(d."age" AS DOUBLE) > 61 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN 4
      WHEN CAST(d."age" AS DOUBLE) <= 61
        THEN 0
      ELSE 0
    END)
    + (CASE
      WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999
        THEN 2
      WHEN CAST(d."dose" AS DOUBLE) > 0.97e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 7
      WHEN CAST(d."dose" AS DOUBLE) > 0.52e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 3
      WHEN CAST(d."dose" AS DOUBLE) > 0.03e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 0
      WHEN CAST(d."dose" AS DOUBLE) <= 0.03e0
        THEN 2
      ELSE 0
    END))
    WHEN 0 THEN (6405193547647767e0 / 4503599627370496e0 / 4e0 /* 0.35555966768895203 */)
    WHEN 1 THEN (7526367537917917e0 / 4503599627370496e0 / 4e0 /* 0.4177973266193911 */)
    WHEN 2 THEN (4467911458358447e0 / 4503599627370496e0 / 2e0 /* 0.4960378173056109 */)
    WHEN 3 THEN (5290834847772069e0 / 4503599627370496e0 / 2e0 /* 0.5874006667485686 */)
    WHEN 4 THEN (6167150192303987e0 / 4503599627370496e0 / 2e0 /* 0.6846912139817348 */)
    WHEN 5 THEN (7002396856406099e0 / 4503599627370496e0 / 2e0 /* 0.7774222217544867 */)
    WHEN 6 THEN (7706435978325183e0 / 4503599627370496e0 / 2e0 /* 0.8555862660936312 */)
    WHEN 7 THEN (1028817776806153e0 / 1125899906842624e0 /* 0.9137737471630851 */)
    WHEN 8 THEN (4289037470718275e0 / 4503599627370496e0 /* 0.9523576306942949 */)
    WHEN 9 THEN (4393116797806065e0 / 4503599627370496e0 /* 0.9754678837583663 */)
    WHEN 10 THEN (8900490260752515e0 / 4503599627370496e0 / 2e0 /* 0.9881529217939405 */)
    WHEN 11 THEN (8958644611557361e0 / 4503599627370496e0 / 2e0 /* 0.9946093517185074 */)
  END AS probability,
  COALESCE(NULLIF(SUBSTR(CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN ', age missing (average)' ELSE '' END || CASE WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999 THEN ', dose missing (average)' ELSE '' END, 3) || ': ', ': '), '') || 'total of ' || CAST(((CASE
      WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
        THEN 3
      WHEN CAST(d."age" AS DOUBLE) > 61 AND CAST(d."age" AS DOUBLE) <= 9e999
        THEN 4
      WHEN CAST(d."age" AS DOUBLE) <= 61
        THEN 0
      ELSE 0
    END)
    + (CASE
      WHEN d."dose" IS NULL OR CAST(d."dose" AS DOUBLE) > 9e999
        THEN 2
      WHEN CAST(d."dose" AS DOUBLE) > 0.97e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 7
      WHEN CAST(d."dose" AS DOUBLE) > 0.52e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 3
      WHEN CAST(d."dose" AS DOUBLE) > 0.03e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
        THEN 0
      WHEN CAST(d."dose" AS DOUBLE) <= 0.03e0
        THEN 2
      ELSE 0
    END)) AS VARCHAR) AS decided_by
FROM "data" AS d;
