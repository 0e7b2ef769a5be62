-- Learned by icscm VERSION from 1,000 samples in 2 environments, at level alpha = 0.05.
--
--     A3 > 0 and A1 > 0 and A4 > 0 and A2 > 0
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class predicted, the probability of yes, and what decided.
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  CASE
    WHEN CAST(d."A3" AS DOUBLE) <= 0 OR d."A3" IS NULL OR CAST(d."A3" AS DOUBLE) > 9e999
      THEN 'no'
    WHEN CAST(d."A1" AS DOUBLE) <= 0 OR d."A1" IS NULL OR CAST(d."A1" AS DOUBLE) > 9e999
      THEN 'no'
    WHEN CAST(d."A4" AS DOUBLE) <= 0 OR d."A4" IS NULL OR CAST(d."A4" AS DOUBLE) > 9e999
      THEN 'no'
    WHEN CAST(d."A2" AS DOUBLE) <= 0 OR d."A2" IS NULL OR CAST(d."A2" AS DOUBLE) > 9e999
      THEN 'no'
    ELSE 'yes'
  END AS prediction,
  CASE
    WHEN CAST(d."A3" AS DOUBLE) <= 0 OR d."A3" IS NULL OR CAST(d."A3" AS DOUBLE) > 9e999
      THEN 12e0 / 488e0
    WHEN CAST(d."A1" AS DOUBLE) <= 0 OR d."A1" IS NULL OR CAST(d."A1" AS DOUBLE) > 9e999
      THEN 7e0 / 213e0
    WHEN CAST(d."A4" AS DOUBLE) <= 0 OR d."A4" IS NULL OR CAST(d."A4" AS DOUBLE) > 9e999
      THEN 5e0 / 135e0
    WHEN CAST(d."A2" AS DOUBLE) <= 0 OR d."A2" IS NULL OR CAST(d."A2" AS DOUBLE) > 9e999
      THEN 3e0 / 68e0
    ELSE 103e0 / 106e0
  END AS probability,
  CASE
    WHEN CAST(d."A3" AS DOUBLE) <= 0 OR d."A3" IS NULL OR CAST(d."A3" AS DOUBLE) > 9e999
      THEN 'not met: A3 > 0'
    WHEN CAST(d."A1" AS DOUBLE) <= 0 OR d."A1" IS NULL OR CAST(d."A1" AS DOUBLE) > 9e999
      THEN 'not met: A1 > 0'
    WHEN CAST(d."A4" AS DOUBLE) <= 0 OR d."A4" IS NULL OR CAST(d."A4" AS DOUBLE) > 9e999
      THEN 'not met: A4 > 0'
    WHEN CAST(d."A2" AS DOUBLE) <= 0 OR d."A2" IS NULL OR CAST(d."A2" AS DOUBLE) > 9e999
      THEN 'not met: A2 > 0'
    ELSE 'all rules met'
  END AS decided_by
FROM "data" AS d;
