-- Learned by icscm VERSION from 2,500 samples in 5 environments.
--
--     billing_code == R57 or troponin > 49 (missing: false) or troponin <= 4 (missing: false)
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class predicted, the probability of 1, and what decided.
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  CASE
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
  END AS prediction,
  CASE
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
  END AS probability,
  CASE
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
  END AS decided_by
FROM "data" AS d;
