-- Learned by icscm VERSION from 4,000 samples in 40 environments.
--
--     all: 29.6% of 4,000
--       mark > 0: 86.9% of 1,283
--         rest > 0: 93.8% of 995
--           smoker > 0: 99.4% of 838 -> positive
--           smoker <= 0: 63.7% of 157 -> positive
--         rest <= 0: 63.2% of 288 -> positive
--       mark <= 0: 2.6% of 2,717 -> negative
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class (prediction), the probability of True, and what decided
-- (decided_by).
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  COALESCE(CASE
    WHEN d."mark" IS NULL OR CAST(d."mark" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."mark" AS DOUBLE) <= 0
      THEN CAST(0 AS BOOLEAN)
    WHEN d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."rest" AS DOUBLE) <= 0
      THEN CAST(1 AS BOOLEAN)
    WHEN d."smoker" IS NULL OR CAST(d."smoker" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."smoker" AS DOUBLE) > 0 AND CAST(d."smoker" AS DOUBLE) <= 9e999
      THEN CAST(1 AS BOOLEAN)
    ELSE CAST(1 AS BOOLEAN)
  END, CASE WHEN CASE WHEN d."mark" IS NULL OR CAST(d."mark" AS DOUBLE) > 9e999 THEN 0.32075e0 WHEN CAST(d."mark" AS DOUBLE) > 0 AND CAST(d."mark" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999 THEN (3492659103065973e0 / 4503599627370496e0 /* 0.7755261106780982 */) WHEN CAST(d."rest" AS DOUBLE) > 0 AND CAST(d."rest" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."smoker" IS NULL OR CAST(d."smoker" AS DOUBLE) > 9e999 THEN 0.842211055276382e0 WHEN CAST(d."smoker" AS DOUBLE) > 0 AND CAST(d."smoker" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (834e0 / 840e0)
    + CASE WHEN d."smoker" IS NULL OR CAST(d."smoker" AS DOUBLE) > 9e999 THEN (355309116330235e0 / 2251799813685248e0 /* 0.15778894472361804 */) WHEN CAST(d."smoker" AS DOUBLE) > 0 AND CAST(d."smoker" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (101e0 / 159e0))
    + CASE WHEN d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999 THEN (1010940524304523e0 / 4503599627370496e0 /* 0.22447388932190182 */) WHEN CAST(d."rest" AS DOUBLE) > 0 AND CAST(d."rest" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (183e0 / 290e0))
    + CASE WHEN d."mark" IS NULL OR CAST(d."mark" AS DOUBLE) > 9e999 THEN 0.67925e0 WHEN CAST(d."mark" AS DOUBLE) > 0 AND CAST(d."mark" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (72e0 / 2719e0) > 0.5e0 THEN CAST(1 AS BOOLEAN) ELSE CAST(0 AS BOOLEAN) END) AS prediction,
  COALESCE(CASE
    WHEN d."mark" IS NULL OR CAST(d."mark" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."mark" AS DOUBLE) <= 0
      THEN 72e0 / 2719e0
    WHEN d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."rest" AS DOUBLE) <= 0
      THEN 183e0 / 290e0
    WHEN d."smoker" IS NULL OR CAST(d."smoker" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."smoker" AS DOUBLE) > 0 AND CAST(d."smoker" AS DOUBLE) <= 9e999
      THEN 834e0 / 840e0
    ELSE 101e0 / 159e0
  END, CASE WHEN d."mark" IS NULL OR CAST(d."mark" AS DOUBLE) > 9e999 THEN 0.32075e0 WHEN CAST(d."mark" AS DOUBLE) > 0 AND CAST(d."mark" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999 THEN (3492659103065973e0 / 4503599627370496e0 /* 0.7755261106780982 */) WHEN CAST(d."rest" AS DOUBLE) > 0 AND CAST(d."rest" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."smoker" IS NULL OR CAST(d."smoker" AS DOUBLE) > 9e999 THEN 0.842211055276382e0 WHEN CAST(d."smoker" AS DOUBLE) > 0 AND CAST(d."smoker" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (834e0 / 840e0)
    + CASE WHEN d."smoker" IS NULL OR CAST(d."smoker" AS DOUBLE) > 9e999 THEN (355309116330235e0 / 2251799813685248e0 /* 0.15778894472361804 */) WHEN CAST(d."smoker" AS DOUBLE) > 0 AND CAST(d."smoker" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (101e0 / 159e0))
    + CASE WHEN d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999 THEN (1010940524304523e0 / 4503599627370496e0 /* 0.22447388932190182 */) WHEN CAST(d."rest" AS DOUBLE) > 0 AND CAST(d."rest" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (183e0 / 290e0))
    + CASE WHEN d."mark" IS NULL OR CAST(d."mark" AS DOUBLE) > 9e999 THEN 0.67925e0 WHEN CAST(d."mark" AS DOUBLE) > 0 AND CAST(d."mark" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (72e0 / 2719e0)) AS probability,
  COALESCE(CASE
    WHEN d."mark" IS NULL OR CAST(d."mark" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."mark" AS DOUBLE) <= 0
      THEN 'mark <= 0'
    WHEN d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."rest" AS DOUBLE) <= 0
      THEN 'mark > 0 and rest <= 0'
    WHEN d."smoker" IS NULL OR CAST(d."smoker" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."smoker" AS DOUBLE) > 0 AND CAST(d."smoker" AS DOUBLE) <= 9e999
      THEN 'mark > 0 and rest > 0 and smoker > 0'
    ELSE 'mark > 0 and rest > 0 and smoker <= 0'
  END, SUBSTR(CASE WHEN d."mark" IS NULL OR CAST(d."mark" AS DOUBLE) > 9e999 THEN ', mark missing' ELSE '' END || CASE WHEN d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999 THEN ', rest missing' ELSE '' END || CASE WHEN d."smoker" IS NULL OR CAST(d."smoker" AS DOUBLE) > 9e999 THEN ', smoker missing' ELSE '' END, 3) || ': ' || 'mean of ' || CAST(CASE WHEN d."mark" IS NULL OR CAST(d."mark" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."mark" AS DOUBLE) > 0 AND CAST(d."mark" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."rest" AS DOUBLE) > 0 AND CAST(d."rest" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."smoker" IS NULL OR CAST(d."smoker" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."smoker" AS DOUBLE) > 0 AND CAST(d."smoker" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1)
    + CASE WHEN d."smoker" IS NULL OR CAST(d."smoker" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."smoker" AS DOUBLE) > 0 AND CAST(d."smoker" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (1))
    + CASE WHEN d."rest" IS NULL OR CAST(d."rest" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."rest" AS DOUBLE) > 0 AND CAST(d."rest" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (1))
    + CASE WHEN d."mark" IS NULL OR CAST(d."mark" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."mark" AS DOUBLE) > 0 AND CAST(d."mark" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (1) AS VARCHAR) || ' leaves') AS decided_by
FROM "data" AS d;
