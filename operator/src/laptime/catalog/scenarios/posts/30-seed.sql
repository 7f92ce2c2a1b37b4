-- 500 posts of about 1,200 characters. Each is made of the same sentences in another order, by
-- arithmetic alone: the rows are the same in every run, in Postgres and in SQLite.
WITH RECURSIVE sentence (n, words) AS (
    VALUES
        (0, 'The first request after a deploy is never the one that you should measure.'),
        (1, 'We moved the job queue into the database and slept better afterwards.'),
        (2, 'A cache that nobody invalidates is a second source of truth.'),
        (3, 'Most of the time was spent waiting for a connection from the pool.'),
        (4, 'Nobody had looked at the index for two years.'),
        (5, 'The old service still answers, only slower each month.'),
        (6, 'An average hides the requests that people complain about.'),
        (7, 'It took an afternoon to write and a quarter to remove.'),
        (8, 'Reading the manual page twice would have saved the week.'),
        (9, 'The migration ran for eleven minutes and held no lock.'),
        (10, 'Every retry made the queue longer, and every queue made more retries.'),
        (11, 'Our dashboards were green because nobody could reach them.'),
        (12, 'The fix was one line; finding it took three people.'),
        (13, 'A timeout without a deadline is only a longer wait.'),
        (14, 'We now test the restore, not the backup.'),
        (15, 'The graph has two humps, and each of them is a different bug.'),
        (16, 'Deleting the feature made everybody happier, its author included.'),
        (17, 'There is a page about this in the handbook, and it is out of date.'),
        (18, 'Half of the memory belonged to a list that only ever grew.'),
        (19, 'The second data centre had been switched off in spring.'),
        (20, 'What we call real time is about four seconds.'),
        (21, 'In the end the cable was at fault.'),
        (22, 'Ask what the number means before you ask why it changed.')
),
heading (n, words) AS (
    VALUES
        (0, 'Notes on a slow query'),
        (1, 'What the pool was waiting for'),
        (2, 'Why we removed the cache'),
        (3, 'A week with one worker'),
        (4, 'Reading percentiles'),
        (5, 'The index that was not used'),
        (6, 'Moving house without downtime')
),
growing (id, length, words) AS (
    SELECT 1, 1, (SELECT words FROM sentence WHERE n = 1)
    UNION ALL
    SELECT
        CASE WHEN growing.length = 21 THEN growing.id + 1 ELSE growing.id END,
        CASE WHEN growing.length = 21 THEN 1 ELSE growing.length + 1 END,
        CASE
            WHEN growing.length = 21 THEN sentence.words
            ELSE growing.words || ' ' || sentence.words
        END
    FROM growing
    JOIN sentence
        -- 23 is a prime: whatever the step from one sentence to the next, none is there twice.
        ON sentence.n = CASE
            WHEN growing.length = 21 THEN (growing.id + 1) % 23
            ELSE (growing.id + (1 + growing.id / 23 % 22) * growing.length) % 23
        END
    WHERE growing.id < 500 OR growing.length < 21
)
INSERT INTO posts (id, title, body)
SELECT growing.id, heading.words || ', part ' || growing.id, growing.words
FROM growing
JOIN heading ON heading.n = growing.id % 7
WHERE growing.length = 21
ORDER BY growing.id;
