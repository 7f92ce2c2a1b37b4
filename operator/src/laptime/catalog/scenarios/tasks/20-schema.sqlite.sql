CREATE TABLE tasks (
    id integer PRIMARY KEY AUTOINCREMENT NOT NULL,
    name text NOT NULL,
    done boolean NOT NULL
);
