-- Learned by icscm VERSION from 2,500 samples in 5 environments, at level alpha = 0.05.
--
--     billing_code != J18 or troponin is present or lactate > 4.6 (missing: false)
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class (prediction), the probability of 1, and what decided
-- (decided_by).
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  COALESCE(CASE
    WHEN d."billing_code" IS NULL
      THEN NULL
    WHEN d."billing_code" <> 'J18'
      THEN 1
    WHEN CAST(d."troponin" AS DOUBLE) > 27 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 1
    WHEN CAST(d."troponin" AS DOUBLE) <= 6
      THEN 1
    WHEN CAST(d."troponin" AS DOUBLE) <= 9
      THEN 1
    WHEN CAST(d."lactate" AS DOUBLE) > 4.6e0 AND CAST(d."lactate" AS DOUBLE) <= 9e999
      THEN 1
    WHEN CAST(d."troponin" AS DOUBLE) > 20 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 1
    WHEN CAST(d."troponin" AS DOUBLE) > 13 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 1
    WHEN CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 1
    ELSE 0
  END, CASE WHEN CASE WHEN d."billing_code" IS NULL THEN (612489549322387e0 / 4503599627370496e0 / 2e0 /* 0.06799999999999995 */) WHEN d."billing_code" <> 'J18' THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 27 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) <= 6 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) <= 9 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."lactate" AS DOUBLE) > 4.6e0 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 20 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 13 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (4e0 / 6e0)
    + CASE WHEN CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (13e0 / 116e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 13 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (7e0 / 9e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 20 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (5e0 / 7e0))
    + CASE WHEN CAST(d."lactate" AS DOUBLE) > 4.6e0 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (6e0 / 10e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) <= 9 THEN 1 ELSE 0 END * (6e0 / 8e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) <= 6 THEN 1 ELSE 0 END * (9e0 / 11e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 27 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (15e0 / 19e0))
    + CASE WHEN d."billing_code" IS NULL THEN 0.932e0 WHEN d."billing_code" <> 'J18' THEN 1 ELSE 0 END * (1914e0 / 2332e0) > 0.5e0 THEN 1 ELSE 0 END) AS prediction,
  COALESCE(CASE
    WHEN d."billing_code" IS NULL
      THEN NULL
    WHEN d."billing_code" <> 'J18'
      THEN 1914e0 / 2332e0
    WHEN CAST(d."troponin" AS DOUBLE) > 27 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 15e0 / 19e0
    WHEN CAST(d."troponin" AS DOUBLE) <= 6
      THEN 9e0 / 11e0
    WHEN CAST(d."troponin" AS DOUBLE) <= 9
      THEN 6e0 / 8e0
    WHEN CAST(d."lactate" AS DOUBLE) > 4.6e0 AND CAST(d."lactate" AS DOUBLE) <= 9e999
      THEN 6e0 / 10e0
    WHEN CAST(d."troponin" AS DOUBLE) > 20 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 5e0 / 7e0
    WHEN CAST(d."troponin" AS DOUBLE) > 13 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 7e0 / 9e0
    WHEN CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 4e0 / 6e0
    ELSE 13e0 / 116e0
  END, CASE WHEN d."billing_code" IS NULL THEN (612489549322387e0 / 4503599627370496e0 / 2e0 /* 0.06799999999999995 */) WHEN d."billing_code" <> 'J18' THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 27 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) <= 6 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) <= 9 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."lactate" AS DOUBLE) > 4.6e0 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 20 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 13 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (4e0 / 6e0)
    + CASE WHEN CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (13e0 / 116e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 13 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (7e0 / 9e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 20 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (5e0 / 7e0))
    + CASE WHEN CAST(d."lactate" AS DOUBLE) > 4.6e0 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (6e0 / 10e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) <= 9 THEN 1 ELSE 0 END * (6e0 / 8e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) <= 6 THEN 1 ELSE 0 END * (9e0 / 11e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 27 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (15e0 / 19e0))
    + CASE WHEN d."billing_code" IS NULL THEN 0.932e0 WHEN d."billing_code" <> 'J18' THEN 1 ELSE 0 END * (1914e0 / 2332e0)) AS probability,
  COALESCE(CASE
    WHEN d."billing_code" IS NULL
      THEN NULL
    WHEN d."billing_code" <> 'J18'
      THEN 'met: billing_code != J18'
    WHEN CAST(d."troponin" AS DOUBLE) > 27 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 'met: troponin > 27 (missing: false)'
    WHEN CAST(d."troponin" AS DOUBLE) <= 6
      THEN 'met: troponin <= 6 (missing: false)'
    WHEN CAST(d."troponin" AS DOUBLE) <= 9
      THEN 'met: troponin <= 9 (missing: false)'
    WHEN CAST(d."lactate" AS DOUBLE) > 4.6e0 AND CAST(d."lactate" AS DOUBLE) <= 9e999
      THEN 'met: lactate > 4.6 (missing: false)'
    WHEN CAST(d."troponin" AS DOUBLE) > 20 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 'met: troponin > 20 (missing: false)'
    WHEN CAST(d."troponin" AS DOUBLE) > 13 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 'met: troponin > 13 (missing: false)'
    WHEN CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 'met: troponin is present'
    ELSE 'no rule met'
  END, SUBSTR(CASE WHEN d."billing_code" IS NULL THEN ', billing_code missing' ELSE '' END, 3) || ': ' || 'mean of ' || CAST(CASE WHEN d."billing_code" IS NULL THEN 1 WHEN d."billing_code" <> 'J18' THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 27 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) <= 6 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) <= 9 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."lactate" AS DOUBLE) > 4.6e0 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 20 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 13 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1)
    + CASE WHEN CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (1))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 13 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 20 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1))
    + CASE WHEN CAST(d."lactate" AS DOUBLE) > 4.6e0 AND CAST(d."lactate" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) <= 9 THEN 1 ELSE 0 END * (1))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) <= 6 THEN 1 ELSE 0 END * (1))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 27 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1))
    + CASE WHEN d."billing_code" IS NULL THEN 1 WHEN d."billing_code" <> 'J18' THEN 1 ELSE 0 END * (1) AS VARCHAR) || ' leaves') AS decided_by
FROM "data" AS d;
