-- The work only reads: what has to be the same before each trial is the server's state.
SELECT pg_stat_reset();
SELECT pg_stat_statements_reset();
CHECKPOINT;
-- All rows are in memory again, whatever came between.
SELECT count(*), max(length(name)) FROM recipes;
SELECT count(*), max(length(name)) FROM ingredients;
SELECT count(*), max(length(text)) FROM steps;
SELECT count(*), max(length(title)) FROM sections;
SELECT count(*), max(length(text)) FROM notes;
SELECT count(*), max(length(emoji)) FROM reactions;
SELECT count(*), max(length(action)) FROM timeline_events;
