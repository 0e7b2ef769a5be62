-- Learned by icscm VERSION from 2,000 samples in 4 environments.
--
--     all: 62.5% of 2,000
--       age > 60: 79.6% of 982
--         dose > 0.5: 87.8% of 469 -> positive
--         dose <= 0.5: 72.1% of 513 -> positive
--       age <= 60: 46.0% of 1,018
--         dose > 0.5: 56.5% of 496 -> positive
--         dose <= 0.5: 36.0% of 522 -> negative
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class predicted, the probability of True, and what decided.
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  CASE
    WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
      THEN CASE
        WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
          THEN CAST(1 AS BOOLEAN)
        ELSE CAST(1 AS BOOLEAN)
      END
    WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
      THEN CAST(1 AS BOOLEAN)
    ELSE CAST(0 AS BOOLEAN)
  END AS prediction,
  CASE
    WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
      THEN CASE
        WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
          THEN 413e0 / 471e0
        ELSE 371e0 / 515e0
      END
    WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
      THEN 281e0 / 498e0
    ELSE 189e0 / 524e0
  END AS probability,
  CASE
    WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
      THEN CASE
        WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
          THEN 'age > 60 and dose > 0.5'
        ELSE 'age > 60 and dose <= 0.5'
      END
    WHEN CAST(d."dose" AS DOUBLE) > 0.5e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
      THEN 'age <= 60 and dose > 0.5'
    ELSE 'age <= 60 and dose <= 0.5'
  END AS decided_by
FROM "data" AS d;
