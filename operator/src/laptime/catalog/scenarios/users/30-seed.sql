-- 2,000 users. Their ids look random, and are the same in every run: answers can be checked
-- against expected-list.json, and no run is luckier with its data than another.
INSERT INTO "user" (user_id, username, email)
SELECT md5('laptime-user-' || n)::uuid::text, 'user' || n, 'user' || n || '@example.com'
FROM generate_series(1, 2000) AS n;

-- Now, so that autovacuum has no reason to start in the middle of a trial.
VACUUM (FREEZE, ANALYZE) "user";
