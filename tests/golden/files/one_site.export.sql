-- Learned by icscm VERSION from 1,500 samples in 3 environments, at level alpha = 0.05.
--
--     device <= 0
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class predicted, the probability of True, and what decided.
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  CASE
    WHEN CAST(d."device" AS DOUBLE) > 0 OR d."device" IS NULL
      THEN CAST(0 AS BOOLEAN)
    ELSE CAST(1 AS BOOLEAN)
  END AS prediction,
  CASE
    WHEN CAST(d."device" AS DOUBLE) > 0 OR d."device" IS NULL
      THEN 20e0 / 352e0
    ELSE 818e0 / 1152e0
  END AS probability,
  CASE
    WHEN CAST(d."device" AS DOUBLE) > 0 OR d."device" IS NULL
      THEN 'not met: device <= 0'
    ELSE 'all rules met'
  END AS decided_by
FROM "data" AS d;
