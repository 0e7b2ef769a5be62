-- Learned by icscm VERSION from 2,000 samples in 4 environments.
--
--     all: 62.5% of 2,000
--       code > 0: 83.4% of 1,060
--         age > 60: 91.3% of 601
--           dose > 0.21: 94.4% of 485 -> positive
--           dose <= 0.21: 78.4% of 116 -> positive
--         age <= 60: 73.0% of 459 -> positive
--       code <= 0: 38.9% of 940
--         age > 60: 61.2% of 381 -> positive
--         age <= 60: 23.8% of 559 -> negative
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class predicted, the probability of True, and what decided.
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  CASE
    WHEN CAST(d."code" AS DOUBLE) <= 0 OR d."code" IS NULL OR CAST(d."code" AS DOUBLE) > 9e999
      THEN CASE
        WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
          THEN CAST(1 AS BOOLEAN)
        ELSE CAST(0 AS BOOLEAN)
      END
    WHEN CAST(d."age" AS DOUBLE) <= 60 OR d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN CAST(1 AS BOOLEAN)
    WHEN CAST(d."dose" AS DOUBLE) > 0.21e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
      THEN CAST(1 AS BOOLEAN)
    ELSE CAST(1 AS BOOLEAN)
  END AS prediction,
  CASE
    WHEN CAST(d."code" AS DOUBLE) <= 0 OR d."code" IS NULL OR CAST(d."code" AS DOUBLE) > 9e999
      THEN CASE
        WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
          THEN 234e0 / 383e0
        ELSE 134e0 / 561e0
      END
    WHEN CAST(d."age" AS DOUBLE) <= 60 OR d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN 336e0 / 461e0
    WHEN CAST(d."dose" AS DOUBLE) > 0.21e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
      THEN 459e0 / 487e0
    ELSE 92e0 / 118e0
  END AS probability,
  CASE
    WHEN CAST(d."code" AS DOUBLE) <= 0 OR d."code" IS NULL OR CAST(d."code" AS DOUBLE) > 9e999
      THEN CASE
        WHEN CAST(d."age" AS DOUBLE) > 60 AND CAST(d."age" AS DOUBLE) <= 9e999
          THEN 'code <= 0 and age > 60'
        ELSE 'code <= 0 and age <= 60'
      END
    WHEN CAST(d."age" AS DOUBLE) <= 60 OR d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN 'code > 0 and age <= 60'
    WHEN CAST(d."dose" AS DOUBLE) > 0.21e0 AND CAST(d."dose" AS DOUBLE) <= 9e999
      THEN 'code > 0 and age > 60 and dose > 0.21'
    ELSE 'code > 0 and age > 60 and dose <= 0.21'
  END AS decided_by
FROM "data" AS d;
