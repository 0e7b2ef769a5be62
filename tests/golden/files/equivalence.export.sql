-- Learned by icscm VERSION from 4,500 samples in 3 environments, at level alpha = 0.05.
--
--     C1 > 0
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class predicted, the probability of yes, and what decided.
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  CASE
    WHEN CAST(d."C1" AS DOUBLE) <= 0 OR d."C1" IS NULL OR CAST(d."C1" AS DOUBLE) > 9e999
      THEN 'no'
    ELSE 'yes'
  END AS prediction,
  CASE
    WHEN CAST(d."C1" AS DOUBLE) <= 0 OR d."C1" IS NULL OR CAST(d."C1" AS DOUBLE) > 9e999
      THEN 20e0 / 3867e0
    ELSE 538e0 / 637e0
  END AS probability,
  CASE
    WHEN CAST(d."C1" AS DOUBLE) <= 0 OR d."C1" IS NULL OR CAST(d."C1" AS DOUBLE) > 9e999
      THEN 'not met: C1 > 0'
    ELSE 'all rules met'
  END AS decided_by
FROM "data" AS d;
