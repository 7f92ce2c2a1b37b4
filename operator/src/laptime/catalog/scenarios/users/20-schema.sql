CREATE TABLE "user" (
    user_id text PRIMARY KEY,
    username text NOT NULL UNIQUE,
    email text NOT NULL UNIQUE
);
