-- Now, so that autovacuum has no reason to start in the middle of a trial.
VACUUM (FREEZE, ANALYZE) posts;
