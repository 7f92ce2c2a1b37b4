"""A random recipe of a session's user, with all that belongs to it."""

from collections import defaultdict
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import connection
from django.db.models import BooleanField, Exists, F, Func, IntegerField, OuterRef, Q, Value
from django.db.models.functions import Now

from app.models import (
    Ingredient,
    Membership,
    Note,
    Reaction,
    Recipe,
    Section,
    Session,
    Step,
    TimelineEvent,
)

Document = dict[str, Any]

AUTHOR = ("created_by_id", "created_by__name")


class EqualsAny(Func):
    """`column = ANY(array)`: one statement for any number of values, where `IN` has many."""

    template = "%(expressions)s)"
    arg_joiner = " = ANY("
    output_field = BooleanField()

    def __init__(self, column: str, values: list[int]):
        super().__init__(F(column), Value(values, output_field=ArrayField(IntegerField())))


def find_user(session_key: str) -> int | None:
    """The user of a session that has not expired."""
    with connection.cursor() as cursor:
        # psycopg's own cursor, which can be told not to prepare it: Postgres counts a prepared SET
        # in its statistics only the first time.
        cursor.cursor.execute("SET TIME ZONE 'UTC'", prepare=False)
    sessions = Session.objects.filter(session_key=session_key, expires__gt=Now())
    return next(iter(sessions.values_list("user_id", flat=True)), None)


def pick_recipe(user_id: int) -> Document | None:
    """Any recipe that the user may see; None when there is none."""
    membership = Membership.objects.filter(
        team_id=OuterRef("owner_team_id"), user_id=user_id, is_active=True
    )
    seen = Recipe.objects.filter(Q(owner_user_id=user_id) | Exists(membership)).order_by("?")
    recipe = seen.values("id", "name", "author", "source", "time", "servings", "created").first()
    if recipe is None:
        return None
    recipe_id = recipe["id"]
    ingredients = list_parts(
        Ingredient, recipe_id, "quantity", "name", "description", "position", "optional"
    )
    steps = list_parts(Step, recipe_id, "text", "position")
    sections = list_parts(Section, recipe_id, "title", "position")
    notes = list_notes(recipe_id)
    events = list_events(recipe_id)
    return {
        **recipe,
        "created": recipe["created"].isoformat(),
        "ingredients": [
            *({"type": "ingredient", **ingredient} for ingredient in ingredients),
            *({"type": "section", **section} for section in sections),
        ],
        "steps": steps,
        "timeline": [*events, *notes],
    }


def list_parts(
    model: type[Ingredient | Step | Section], recipe_id: int, *columns: str
) -> list[Document]:
    """The rows of a recipe that have a position and were not deleted."""
    kept = model.objects.filter(recipe_id=recipe_id, deleted__isnull=True)
    return list(kept.order_by("position").values("id", *columns))


def list_notes(recipe_id: int) -> list[Document]:
    """The notes on a recipe with their reactions."""
    kept = Note.objects.filter(recipe_id=recipe_id, deleted__isnull=True)
    notes = list(kept.order_by("-created").values("id", "text", "created", *AUTHOR))
    reactions = defaultdict(list)
    for reaction in (
        Reaction.objects.filter(EqualsAny("note_id", [note["id"] for note in notes]))
        .order_by("created")
        .values("id", "note_id", "emoji", "created", *AUTHOR)
    ):
        reactions[reaction.pop("note_id")].append(written(reaction))
    return [{"type": "note", **written(note), "reactions": reactions[note["id"]]} for note in notes]


def list_events(recipe_id: int) -> list[Document]:
    """What was done with a recipe."""
    events = TimelineEvent.objects.filter(recipe_id=recipe_id).order_by("-created")
    rows = events.values("id", "action", "created", *AUTHOR)
    return [{"type": "event", **written(row)} for row in rows]


def written(row: Document) -> Document:
    """`row` as it is answered, with its author and its time."""
    author = {"id": row.pop("created_by_id"), "name": row.pop("created_by__name")}
    return {**row, "created": row["created"].isoformat(), "author": author}
