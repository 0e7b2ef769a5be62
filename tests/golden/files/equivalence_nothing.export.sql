-- Learned by icscm VERSION from 450 samples in 3 environments, at level alpha = 0.05.
--
--     no rule holds in every environment and does better than always negative
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class (prediction), the probability of yes, and what decided
-- (decided_by).
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  'no' AS prediction,
  50e0 / 452e0 AS probability,
  'no rule holds in every environment and does better than always negative' AS decided_by
FROM "data" AS d;
