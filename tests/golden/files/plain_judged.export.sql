-- Learned by icscm VERSION from 2,500 samples in 5 environments.
--
--     billing_code == R57 or troponin > 49 (missing: false) or troponin <= 4 (missing: false)
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
    WHEN d."billing_code" = 'R57'
      THEN 1
    WHEN CAST(d."troponin" AS DOUBLE) > 141 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 1
    WHEN CAST(d."troponin" AS DOUBLE) > 103 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 1
    WHEN CAST(d."troponin" AS DOUBLE) > 93 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 1
    WHEN CAST(d."troponin" AS DOUBLE) > 64 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 1
    WHEN CAST(d."troponin" AS DOUBLE) > 59 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 1
    WHEN CAST(d."troponin" AS DOUBLE) > 54 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 1
    WHEN CAST(d."troponin" AS DOUBLE) > 49 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 1
    WHEN CAST(d."troponin" AS DOUBLE) <= 3
      THEN 1
    WHEN CAST(d."troponin" AS DOUBLE) <= 4
      THEN 1
    ELSE 0
  END, CASE WHEN CASE WHEN d."billing_code" IS NULL THEN 0.7936e0 WHEN d."billing_code" = 'R57' THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 141 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 103 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 93 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 64 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 59 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 54 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 49 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) <= 3 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) <= 4 THEN 1 ELSE 0 END * (3e0 / 10e0)
    + CASE WHEN CAST(d."troponin" AS DOUBLE) <= 4 THEN 0 ELSE 1 END * (105e0 / 1910e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) <= 3 THEN 1 ELSE 0 END * (7e0 / 16e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 49 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (4e0 / 11e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 54 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (3e0 / 9e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 59 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (2e0 / 5e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 64 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (11e0 / 22e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 93 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (2e0 / 6e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 103 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (3e0 / 8e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 141 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (2e0 / 7e0))
    + CASE WHEN d."billing_code" IS NULL THEN 0.2064e0 WHEN d."billing_code" = 'R57' THEN 1 ELSE 0 END * (454e0 / 518e0) > 0.5e0 THEN 1 ELSE 0 END) AS prediction,
  COALESCE(CASE
    WHEN d."billing_code" IS NULL
      THEN NULL
    WHEN d."billing_code" = 'R57'
      THEN 454e0 / 518e0
    WHEN CAST(d."troponin" AS DOUBLE) > 141 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 2e0 / 7e0
    WHEN CAST(d."troponin" AS DOUBLE) > 103 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 3e0 / 8e0
    WHEN CAST(d."troponin" AS DOUBLE) > 93 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 2e0 / 6e0
    WHEN CAST(d."troponin" AS DOUBLE) > 64 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 11e0 / 22e0
    WHEN CAST(d."troponin" AS DOUBLE) > 59 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 2e0 / 5e0
    WHEN CAST(d."troponin" AS DOUBLE) > 54 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 3e0 / 9e0
    WHEN CAST(d."troponin" AS DOUBLE) > 49 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 4e0 / 11e0
    WHEN CAST(d."troponin" AS DOUBLE) <= 3
      THEN 7e0 / 16e0
    WHEN CAST(d."troponin" AS DOUBLE) <= 4
      THEN 3e0 / 10e0
    ELSE 105e0 / 1910e0
  END, CASE WHEN d."billing_code" IS NULL THEN 0.7936e0 WHEN d."billing_code" = 'R57' THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 141 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 103 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 93 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 64 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 59 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 54 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 49 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) <= 3 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) <= 4 THEN 1 ELSE 0 END * (3e0 / 10e0)
    + CASE WHEN CAST(d."troponin" AS DOUBLE) <= 4 THEN 0 ELSE 1 END * (105e0 / 1910e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) <= 3 THEN 1 ELSE 0 END * (7e0 / 16e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 49 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (4e0 / 11e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 54 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (3e0 / 9e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 59 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (2e0 / 5e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 64 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (11e0 / 22e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 93 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (2e0 / 6e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 103 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (3e0 / 8e0))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 141 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (2e0 / 7e0))
    + CASE WHEN d."billing_code" IS NULL THEN 0.2064e0 WHEN d."billing_code" = 'R57' THEN 1 ELSE 0 END * (454e0 / 518e0)) AS probability,
  COALESCE(CASE
    WHEN d."billing_code" IS NULL
      THEN NULL
    WHEN d."billing_code" = 'R57'
      THEN 'met: billing_code == R57'
    WHEN CAST(d."troponin" AS DOUBLE) > 141 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 'met: troponin > 141 (missing: false)'
    WHEN CAST(d."troponin" AS DOUBLE) > 103 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 'met: troponin > 103 (missing: false)'
    WHEN CAST(d."troponin" AS DOUBLE) > 93 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 'met: troponin > 93 (missing: false)'
    WHEN CAST(d."troponin" AS DOUBLE) > 64 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 'met: troponin > 64 (missing: false)'
    WHEN CAST(d."troponin" AS DOUBLE) > 59 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 'met: troponin > 59 (missing: false)'
    WHEN CAST(d."troponin" AS DOUBLE) > 54 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 'met: troponin > 54 (missing: false)'
    WHEN CAST(d."troponin" AS DOUBLE) > 49 AND CAST(d."troponin" AS DOUBLE) <= 9e999
      THEN 'met: troponin > 49 (missing: false)'
    WHEN CAST(d."troponin" AS DOUBLE) <= 3
      THEN 'met: troponin <= 3 (missing: false)'
    WHEN CAST(d."troponin" AS DOUBLE) <= 4
      THEN 'met: troponin <= 4 (missing: false)'
    ELSE 'no rule met'
  END, SUBSTR(CASE WHEN d."billing_code" IS NULL THEN ', billing_code missing' ELSE '' END, 3) || ': ' || 'mean of ' || CAST(CASE WHEN d."billing_code" IS NULL THEN 1 WHEN d."billing_code" = 'R57' THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 141 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 103 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 93 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 64 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 59 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 54 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) > 49 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) <= 3 THEN 0 ELSE 1 END * (CASE WHEN CAST(d."troponin" AS DOUBLE) <= 4 THEN 1 ELSE 0 END * (1)
    + CASE WHEN CAST(d."troponin" AS DOUBLE) <= 4 THEN 0 ELSE 1 END * (1))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) <= 3 THEN 1 ELSE 0 END * (1))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 49 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 54 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 59 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 64 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 93 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 103 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1))
    + CASE WHEN CAST(d."troponin" AS DOUBLE) > 141 AND CAST(d."troponin" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (1))
    + CASE WHEN d."billing_code" IS NULL THEN 1 WHEN d."billing_code" = 'R57' THEN 1 ELSE 0 END * (1) AS VARCHAR) || ' leaves') AS decided_by
FROM "data" AS d;
