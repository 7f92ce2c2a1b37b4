-- The same tasks as in Postgres.
WITH RECURSIVE number (n) AS (
    SELECT 1
    UNION ALL
    SELECT n + 1 FROM number WHERE n < 61000
)
INSERT INTO tasks (id, name, done)
SELECT n, 'task ' || n, n % 3 = 0 FROM number;
