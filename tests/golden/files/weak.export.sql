-- Learned by icscm VERSION from 900 samples in 3 environments, at level alpha = 0.05.
--
--     u <= 0
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class predicted, the probability of 1, and what decided.
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  CASE
    WHEN CAST(d."u" AS DOUBLE) > 0 OR d."u" IS NULL
      THEN 0
    ELSE 1
  END AS prediction,
  CASE
    WHEN CAST(d."u" AS DOUBLE) > 0 OR d."u" IS NULL
      THEN 216e0 / 445e0
    ELSE 243e0 / 459e0
  END AS probability,
  CASE
    WHEN CAST(d."u" AS DOUBLE) > 0 OR d."u" IS NULL
      THEN 'not met: u <= 0'
    ELSE 'all rules met'
  END AS decided_by
FROM "data" AS d;
