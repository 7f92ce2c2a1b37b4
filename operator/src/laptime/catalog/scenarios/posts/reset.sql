-- The work only reads: what has to be the same before each trial is the server's state.
SELECT pg_stat_reset();
SELECT pg_stat_statements_reset();
CHECKPOINT;
-- All rows are in memory again, whatever came between.
SELECT count(*), max(length(body)) FROM posts;
