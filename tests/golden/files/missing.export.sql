-- Learned by icscm VERSION from 3,000 samples in 5 environments, at level alpha = 0.05.
--
--     age > 67 and lactate > 2 (missing: false)
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class predicted, the probability of 1, and what decided.
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  CASE
    WHEN CAST(d."age" AS DOUBLE) <= 67 OR d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN 0
    WHEN CAST(d."lactate" AS DOUBLE) <= 2 OR d."lactate" IS NULL OR CAST(d."lactate" AS DOUBLE) > 9e999
      THEN 0
    ELSE 1
  END AS prediction,
  CASE
    WHEN CAST(d."age" AS DOUBLE) <= 67 OR d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN 132e0 / 1705e0
    WHEN CAST(d."lactate" AS DOUBLE) <= 2 OR d."lactate" IS NULL OR CAST(d."lactate" AS DOUBLE) > 9e999
      THEN 40e0 / 654e0
    ELSE 545e0 / 647e0
  END AS probability,
  CASE
    WHEN CAST(d."age" AS DOUBLE) <= 67 OR d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN 'not met: age > 67'
    WHEN CAST(d."lactate" AS DOUBLE) <= 2 OR d."lactate" IS NULL OR CAST(d."lactate" AS DOUBLE) > 9e999
      THEN 'not met: lactate > 2 (missing: false)'
    ELSE 'all rules met'
  END AS decided_by
FROM "data" AS d;
