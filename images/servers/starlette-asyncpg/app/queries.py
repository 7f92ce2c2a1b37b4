"""The statements of the `recipes` scenario, in the order in which a request runs them."""

SET_TIME_ZONE = "SET TIME ZONE 'UTC'"

FIND_USER = "SELECT user_id FROM sessions WHERE session_key = $1 AND expires > now()"

PICK_RECIPE = """
SELECT r.id, r.name, r.author, r.source, r.time, r.servings, r.created
FROM recipes r
WHERE r.owner_user_id = $1 OR EXISTS (
    SELECT 1 FROM memberships m
    WHERE m.team_id = r.owner_team_id AND m.user_id = $1 AND m.is_active
)
ORDER BY random() LIMIT 1
"""

LIST_INGREDIENTS = """
SELECT id, quantity, name, description, position, optional
FROM ingredients WHERE recipe_id = $1 AND deleted IS NULL ORDER BY position
"""

LIST_STEPS = """
SELECT id, text, position
FROM steps WHERE recipe_id = $1 AND deleted IS NULL ORDER BY position
"""

LIST_SECTIONS = """
SELECT id, title, position
FROM sections WHERE recipe_id = $1 AND deleted IS NULL ORDER BY position
"""

LIST_NOTES = """
SELECT n.id, n.text, n.created, u.id AS author_id, u.name AS author_name
FROM notes n JOIN users u ON u.id = n.created_by_id
WHERE n.recipe_id = $1 AND n.deleted IS NULL ORDER BY n.created DESC
"""

LIST_REACTIONS = """
SELECT x.id, x.note_id, x.emoji, x.created, u.id AS author_id, u.name AS author_name
FROM reactions x JOIN users u ON u.id = x.created_by_id
WHERE x.note_id = ANY($1) ORDER BY x.created
"""

LIST_EVENTS = """
SELECT e.id, e.action, e.created, u.id AS author_id, u.name AS author_name
FROM timeline_events e JOIN users u ON u.id = e.created_by_id
WHERE e.recipe_id = $1 ORDER BY e.created DESC
"""
