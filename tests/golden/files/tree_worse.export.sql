-- Learned by icscm VERSION from 2,000 samples in 3 environments.
--
--     all: 11.5% of 2,000
--       risk > 0.7: 31.1% of 588 -> negative
--       risk <= 0.7: 3.3% of 1,412 -> negative
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class predicted, the probability of True, and what decided.
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  CASE
    WHEN CAST(d."risk" AS DOUBLE) > 0.7e0 AND CAST(d."risk" AS DOUBLE) <= 9e999
      THEN CAST(0 AS BOOLEAN)
    ELSE CAST(0 AS BOOLEAN)
  END AS prediction,
  CASE
    WHEN CAST(d."risk" AS DOUBLE) > 0.7e0 AND CAST(d."risk" AS DOUBLE) <= 9e999
      THEN 184e0 / 590e0
    ELSE 47e0 / 1414e0
  END AS probability,
  CASE
    WHEN CAST(d."risk" AS DOUBLE) > 0.7e0 AND CAST(d."risk" AS DOUBLE) <= 9e999
      THEN 'risk > 0.7'
    ELSE 'risk <= 0.7'
  END AS decided_by
FROM "data" AS d;
