-- Learned by icscm VERSION from 6,000 samples in 4 environments, at level alpha = 0.05.
--
--     A1 > 0 or A2 > 0 or C1 > 0
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class predicted, the probability of yes, and what decided.
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  CASE
    WHEN CAST(d."A1" AS DOUBLE) > 0 AND CAST(d."A1" AS DOUBLE) <= 9e999
      THEN 'yes'
    WHEN CAST(d."A2" AS DOUBLE) > 0 AND CAST(d."A2" AS DOUBLE) <= 9e999
      THEN 'yes'
    WHEN CAST(d."C1" AS DOUBLE) > 0 AND CAST(d."C1" AS DOUBLE) <= 9e999
      THEN 'yes'
    ELSE 'no'
  END AS prediction,
  CASE
    WHEN CAST(d."A1" AS DOUBLE) > 0 AND CAST(d."A1" AS DOUBLE) <= 9e999
      THEN 4045e0 / 4158e0
    WHEN CAST(d."A2" AS DOUBLE) > 0 AND CAST(d."A2" AS DOUBLE) <= 9e999
      THEN 1121e0 / 1155e0
    WHEN CAST(d."C1" AS DOUBLE) > 0 AND CAST(d."C1" AS DOUBLE) <= 9e999
      THEN 11e0 / 18e0
    ELSE 2e0 / 677e0
  END AS probability,
  CASE
    WHEN CAST(d."A1" AS DOUBLE) > 0 AND CAST(d."A1" AS DOUBLE) <= 9e999
      THEN 'met: A1 > 0'
    WHEN CAST(d."A2" AS DOUBLE) > 0 AND CAST(d."A2" AS DOUBLE) <= 9e999
      THEN 'met: A2 > 0'
    WHEN CAST(d."C1" AS DOUBLE) > 0 AND CAST(d."C1" AS DOUBLE) <= 9e999
      THEN 'met: C1 > 0'
    ELSE 'no rule met'
  END AS decided_by
FROM "data" AS d;
