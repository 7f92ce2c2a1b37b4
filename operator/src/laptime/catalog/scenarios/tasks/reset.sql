-- Trials write: each begins with the rows of the seed, under the same ids, and nothing else.
TRUNCATE tasks RESTART IDENTITY;
INSERT INTO tasks (name, done)
SELECT 'task ' || n, n % 3 = 0 FROM generate_series(1, 61000) AS n;
VACUUM (FREEZE, ANALYZE) tasks;
SELECT pg_stat_reset();
SELECT pg_stat_statements_reset();
CHECKPOINT;
