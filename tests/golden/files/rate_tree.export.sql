-- Learned by icscm VERSION from 2,800 samples in 4 environments.
--
--     all: 11.8% of 2,800
--       A1 > 0: 32.2% of 847
--         A2 > 0: 96.3% of 271 -> positive
--         A2 <= 0: 2.1% of 576 -> negative
--       A1 <= 0: 2.9% of 1,953 -> negative
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class predicted, the probability of yes, and what decided.
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  CASE
    WHEN CAST(d."A1" AS DOUBLE) <= 0 OR d."A1" IS NULL OR CAST(d."A1" AS DOUBLE) > 9e999
      THEN 'no'
    WHEN CAST(d."A2" AS DOUBLE) > 0 AND CAST(d."A2" AS DOUBLE) <= 9e999
      THEN 'yes'
    ELSE 'no'
  END AS prediction,
  CASE
    WHEN CAST(d."A1" AS DOUBLE) <= 0 OR d."A1" IS NULL OR CAST(d."A1" AS DOUBLE) > 9e999
      THEN 57e0 / 1955e0
    WHEN CAST(d."A2" AS DOUBLE) > 0 AND CAST(d."A2" AS DOUBLE) <= 9e999
      THEN 262e0 / 273e0
    ELSE 13e0 / 578e0
  END AS probability,
  CASE
    WHEN CAST(d."A1" AS DOUBLE) <= 0 OR d."A1" IS NULL OR CAST(d."A1" AS DOUBLE) > 9e999
      THEN 'A1 <= 0'
    WHEN CAST(d."A2" AS DOUBLE) > 0 AND CAST(d."A2" AS DOUBLE) <= 9e999
      THEN 'A1 > 0 and A2 > 0'
    ELSE 'A1 > 0 and A2 <= 0'
  END AS decided_by
FROM "data" AS d;
