-- Learned by icscm VERSION from 900 samples in 3 environments.
--
--     no split was found (always positive: 50.8% of 900 samples are positive)
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class (prediction), the probability of 1, and what decided
-- (decided_by).
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  1 AS prediction,
  458e0 / 902e0 AS probability,
  'no split was found (always positive: 50.8% of 900 samples are positive)' AS decided_by
FROM "data" AS d;
