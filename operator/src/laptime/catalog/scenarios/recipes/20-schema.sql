CREATE TABLE users (
    id integer PRIMARY KEY,
    name text NOT NULL,
    email text NOT NULL UNIQUE
);
CREATE TABLE sessions (
    session_key text PRIMARY KEY,
    user_id integer NOT NULL REFERENCES users (id),
    expires timestamptz NOT NULL
);
CREATE TABLE teams (
    id integer PRIMARY KEY,
    name text NOT NULL
);
CREATE TABLE memberships (
    team_id integer NOT NULL REFERENCES teams (id),
    user_id integer NOT NULL REFERENCES users (id),
    is_active boolean NOT NULL,
    PRIMARY KEY (team_id, user_id)
);
CREATE TABLE recipes (
    id integer PRIMARY KEY,
    name text NOT NULL,
    author text NOT NULL,
    source text NOT NULL,
    time text NOT NULL,
    servings text NOT NULL,
    owner_user_id integer REFERENCES users (id),
    owner_team_id integer REFERENCES teams (id),
    created timestamptz NOT NULL,
    CHECK (num_nonnulls(owner_user_id, owner_team_id) = 1)
);
CREATE TABLE ingredients (
    id integer PRIMARY KEY,
    recipe_id integer NOT NULL REFERENCES recipes (id),
    quantity text NOT NULL,
    name text NOT NULL,
    description text NOT NULL,
    position text NOT NULL,
    optional boolean NOT NULL,
    deleted timestamptz
);
CREATE TABLE steps (
    id integer PRIMARY KEY,
    recipe_id integer NOT NULL REFERENCES recipes (id),
    text text NOT NULL,
    position text NOT NULL,
    deleted timestamptz
);
CREATE TABLE sections (
    id integer PRIMARY KEY,
    recipe_id integer NOT NULL REFERENCES recipes (id),
    title text NOT NULL,
    position text NOT NULL,
    deleted timestamptz
);
CREATE TABLE notes (
    id integer PRIMARY KEY,
    recipe_id integer NOT NULL REFERENCES recipes (id),
    text text NOT NULL,
    created_by_id integer NOT NULL REFERENCES users (id),
    created timestamptz NOT NULL,
    deleted timestamptz
);
CREATE TABLE reactions (
    id integer PRIMARY KEY,
    note_id integer NOT NULL REFERENCES notes (id),
    emoji text NOT NULL,
    created_by_id integer NOT NULL REFERENCES users (id),
    created timestamptz NOT NULL
);
CREATE TABLE timeline_events (
    id integer PRIMARY KEY,
    recipe_id integer NOT NULL REFERENCES recipes (id),
    action text NOT NULL,
    created_by_id integer NOT NULL REFERENCES users (id),
    created timestamptz NOT NULL
);
