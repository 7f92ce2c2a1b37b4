-- The tasks that trials read, update and delete; reset.sql makes the same ones anew.
INSERT INTO tasks (name, done)
SELECT 'task ' || n, n % 3 = 0 FROM generate_series(1, 61000) AS n;

-- Now, so that autovacuum has no reason to start in the middle of a trial.
VACUUM (FREEZE, ANALYZE) tasks;
