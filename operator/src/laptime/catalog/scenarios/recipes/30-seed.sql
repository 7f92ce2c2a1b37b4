-- 200 users, 40 teams and 2,000 recipes with about 60,000 rows that belong to them. Arithmetic
-- alone says what is where: the rows are the same in every run.
INSERT INTO users (id, name, email)
SELECT
    n,
    (ARRAY['Ada', 'Bruno', 'Chloé', 'Dilan', 'Emeka', 'Freja', 'Goran', 'Hana', 'Ines', 'Jonas'])
        [1 + n % 10]
    || ' '
    || (ARRAY['Albers', 'Bianchi', 'Castro', 'Demir', 'Eriksen', 'Fischer', 'Garcia', 'Hoang',
              'Ivanova', 'Janssen', 'Kowalski']) [1 + n % 11],
    'user' || n || '@example.com'
FROM generate_series(1, 200) AS n;

-- User n has the session `session-n`; those of the users 196 to 200 have expired.
INSERT INTO sessions (session_key, user_id, expires)
SELECT
    'session-' || n,
    n,
    CASE WHEN n > 195 THEN timestamptz '2020-01-01 00:00:00+00'
         ELSE timestamptz '2100-01-01 00:00:00+00' END
FROM generate_series(1, 200) AS n;

INSERT INTO teams (id, name)
SELECT n, 'Kitchen ' || n FROM generate_series(1, 40) AS n;

-- Users 1 to 180 are in two teams each, in every seventh membership no longer active. User 181 is
-- in team 1 but not active, so that there is nothing that this user may see.
INSERT INTO memberships (team_id, user_id, is_active)
SELECT 1 + (n * 3 + k * 17) % 40, n, k = 0 OR n % 7 <> 0
FROM generate_series(1, 180) AS n, generate_series(0, 1) AS k;
INSERT INTO memberships (team_id, user_id, is_active) VALUES (1, 181, false);

-- Recipes 1 to 1,600 belong to teams, 40 to each; the next ones to users 1 to 180 by twos. User
-- 182 is in no team and recipe 2,000 is the only one that this user may see.
INSERT INTO recipes (
    id, name, author, source, time, servings, owner_user_id, owner_team_id, created
)
SELECT
    n,
    (ARRAY['Roasted', 'Quick', 'Slow-cooked', 'Grandmother''s', 'Spicy', 'Crispy', 'Baked'])
        [1 + n % 7]
    || ' '
    || (ARRAY['lentil', 'pumpkin', 'mushroom', 'chickpea', 'tomato', 'spinach', 'leek', 'potato',
              'aubergine', 'cauliflower', 'bean']) [1 + n % 11]
    || ' '
    || (ARRAY['stew', 'pie', 'curry', 'salad', 'gratin']) [1 + n % 5],
    (ARRAY['Melissa Clark', 'Kenji López-Alt', 'Meera Sodha']) [1 + n % 3],
    'cooking.example.com/recipes/' || n,
    (15 + n % 10 * 5) || ' minutes',
    (2 + n % 5) || ' servings',
    CASE WHEN n = 2000 THEN 182 WHEN n > 1600 THEN 1 + (n - 1601) / 2 % 180 END,
    CASE WHEN n <= 1600 THEN 1 + n % 40 END,
    timestamptz '2022-01-01 08:00:00+00' + n * interval '7 hours'
FROM generate_series(1, 2000) AS n;

-- Eight ingredients each, of which the last but one was deleted. Ids run against the positions.
INSERT INTO ingredients (id, recipe_id, quantity, name, description, position, optional, deleted)
SELECT
    r * 8 - k,
    r,
    (2 + (r + k) % 4) || ' ' || (ARRAY['cups', 'tablespoons', 'teaspoons', 'grams', 'pounds'])
        [1 + (r * 3 + k) % 5],
    (ARRAY['olive oil', 'onions', 'garlic', 'lentils', 'crushed tomatoes', 'vegetable broth',
           'cumin seeds', 'smoked paprika', 'lemon juice', 'flat-leaf parsley', 'butter', 'flour',
           'black pepper']) [1 + (r + k * 5) % 13],
    (ARRAY['finely chopped', 'at room temperature', 'plus more for serving', ''])
        [1 + (r + k) % 4],
    'a' || k,
    k = 5,
    CASE WHEN k = 6 THEN timestamptz '2023-05-01 12:00:00+00' END
FROM generate_series(1, 2000) AS r, generate_series(0, 7) AS k;

INSERT INTO steps (id, recipe_id, text, position, deleted)
SELECT
    r * 5 - k,
    r,
    (ARRAY[
        'Heat the oil in a large pot over medium heat and cook the onions until they are soft.',
        'Stir in the spices and cook for a minute, until everybody asks what smells so good.',
        'Add the broth, bring it to the boil and let it simmer with the lid half open.',
        'Season with salt, pepper and lemon juice; taste it, and season it again.',
        'Take it off the heat, let it rest for five minutes and serve it with the herbs on top.',
        'Spread everything on a tray and roast it in the oven until the edges are brown.',
        'Meanwhile wash the leaves, dry them well and tear them into pieces.'
    ]) [1 + (r + k * 3) % 7],
    'a' || k,
    CASE WHEN k = 4 AND r % 2 = 0 THEN timestamptz '2023-05-02 12:00:00+00' END
FROM generate_series(1, 2000) AS r, generate_series(0, 4) AS k;

INSERT INTO sections (id, recipe_id, title, position, deleted)
SELECT
    r * 3 - k,
    r,
    (ARRAY['For the sauce', 'For the filling', 'To serve', 'For the dough']) [1 + (r + k) % 4],
    'a' || k * 3 || 'v',
    CASE WHEN k = 1 THEN timestamptz '2023-05-03 12:00:00+00' END
FROM generate_series(1, 2000) AS r, generate_series(0, 2) AS k;

INSERT INTO notes (id, recipe_id, text, created_by_id, created, deleted)
SELECT
    r * 4 - k,
    r,
    (ARRAY[
        'Made it with half of the salt and twice the garlic, which was exactly right.',
        'The children ate it without a word. Next time I double the quantities.',
        'Needs ten minutes longer in our oven; cover it with foil for the last five.',
        'Very good the day after, and even better cold on a slice of bread.',
        'We had no parsley and took coriander: not the same, but not worse either.'
    ]) [1 + (r + k * 2) % 5],
    1 + (r * 7 + k * 13) % 195,
    timestamptz '2023-01-01 18:00:00+00' + (r * 5 + k * 31) * interval '1 hour',
    CASE WHEN k = 2 THEN timestamptz '2023-05-04 12:00:00+00' END
FROM generate_series(1, 2000) AS r, generate_series(0, 3) AS k;

-- Two for each note, the deleted ones included: those must not be in an answer.
INSERT INTO reactions (id, note_id, emoji, created_by_id, created)
SELECT
    note * 2 - k,
    note,
    (ARRAY['❤️', '😆', '👍', '🔥']) [1 + (note + k) % 4],
    1 + (note * 3 + k * 50) % 195,
    timestamptz '2023-09-01 09:00:00+00' + (note * 2 + k) * interval '1 minute'
FROM generate_series(1, 8000) AS note, generate_series(0, 1) AS k;

INSERT INTO timeline_events (id, recipe_id, action, created_by_id, created)
SELECT
    r * 4 - k,
    r,
    (ARRAY['created', 'scheduled', 'set_primary_image', 'archived']) [1 + k],
    1 + (r * 11 + k * 29) % 195,
    timestamptz '2022-06-01 07:30:00+00' + (r * 3 + k * 47) * interval '1 hour'
FROM generate_series(1, 2000) AS r, generate_series(0, 3) AS k;

CREATE INDEX ON memberships (user_id);
CREATE INDEX ON recipes (owner_user_id);
CREATE INDEX ON recipes (owner_team_id);
CREATE INDEX ON ingredients (recipe_id);
CREATE INDEX ON steps (recipe_id);
CREATE INDEX ON sections (recipe_id);
CREATE INDEX ON notes (recipe_id);
CREATE INDEX ON reactions (note_id);
CREATE INDEX ON timeline_events (recipe_id);

-- Now, so that autovacuum has no reason to start in the middle of a trial.
VACUUM (FREEZE, ANALYZE);
