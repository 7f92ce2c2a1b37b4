CREATE TABLE posts (
    id integer PRIMARY KEY,
    title text NOT NULL,
    body text NOT NULL
);
