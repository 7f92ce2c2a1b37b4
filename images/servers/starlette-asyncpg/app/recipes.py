"""A random recipe of a session's user, with all that belongs to it."""

from collections import defaultdict
from typing import Any

import asyncpg

from app import queries

Document = dict[str, Any]


async def find_user(connection: asyncpg.Connection, session_key: str) -> int | None:
    """The user of a session that has not expired."""
    await connection.execute(queries.SET_TIME_ZONE)
    user_id: int | None = await connection.fetchval(queries.FIND_USER, session_key)
    return user_id


async def pick_recipe(connection: asyncpg.Connection, user_id: int) -> Document | None:
    """Any recipe that the user may see; None when there is none."""
    recipe = await connection.fetchrow(queries.PICK_RECIPE, user_id)
    if recipe is None:
        return None
    ingredients = await connection.fetch(queries.LIST_INGREDIENTS, recipe["id"])
    steps = await connection.fetch(queries.LIST_STEPS, recipe["id"])
    sections = await connection.fetch(queries.LIST_SECTIONS, recipe["id"])
    notes = await connection.fetch(queries.LIST_NOTES, recipe["id"])
    reactions = await connection.fetch(queries.LIST_REACTIONS, [note["id"] for note in notes])
    events = await connection.fetch(queries.LIST_EVENTS, recipe["id"])

    reactions_by_note = defaultdict(list)
    for reaction in reactions:
        reactions_by_note[reaction["note_id"]].append(
            {
                "id": reaction["id"],
                "emoji": reaction["emoji"],
                "created": reaction["created"],
                "author": author(reaction),
            }
        )
    return {
        **recipe,
        "ingredients": [
            *({"type": "ingredient", **ingredient} for ingredient in ingredients),
            *({"type": "section", **section} for section in sections),
        ],
        "steps": [dict(step) for step in steps],
        "timeline": [
            *(
                {
                    "type": "event",
                    "id": event["id"],
                    "action": event["action"],
                    "created": event["created"],
                    "author": author(event),
                }
                for event in events
            ),
            *(
                {
                    "type": "note",
                    "id": note["id"],
                    "text": note["text"],
                    "created": note["created"],
                    "author": author(note),
                    "reactions": reactions_by_note[note["id"]],
                }
                for note in notes
            ),
        ],
    }


def author(row: asyncpg.Record) -> Document:
    """Who wrote what a row holds."""
    return {"id": row["author_id"], "name": row["author_name"]}
