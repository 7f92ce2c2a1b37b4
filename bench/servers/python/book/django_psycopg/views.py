"""What the paths answer."""

from typing import Any

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, JsonResponse

from book.django_psycopg.models import (
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


def random_recipe(request: HttpRequest) -> HttpResponse:
    """A random recipe of the session's user."""
    with connection.cursor() as cursor:
        cursor.execute("SET TIME ZONE 'UTC'")
    session = Session.objects.filter(
        session_key=request.COOKIES.get("sessionid"), expires__gt=Now()
    ).first()
    if session is None:
        return HttpResponse(status=401)
    membership = Membership.objects.filter(
        team_id=OuterRef("owner_team_id"), user_id=session.user_id, is_active=True
    )
    recipe = (
        Recipe.objects.filter(Q(owner_user_id=session.user_id) | Exists(membership))
        .order_by("?")
        .first()
    )
    if recipe is None:
        return HttpResponse(status=404)
    ingredients = positioned(Ingredient.objects.filter(recipe=recipe)).values(
        "id", "quantity", "name", "description", "position", "optional"
    )
    steps = positioned(Step.objects.filter(recipe=recipe)).values("id", "text", "position")
    sections = positioned(Section.objects.filter(recipe=recipe)).values("id", "title", "position")
    notes = list(
        Note.objects.filter(recipe=recipe, deleted__isnull=True)
        .select_related("created_by")
        .order_by("-created")
    )
    reactions: dict[int, list[dict[str, Any]]] = {note.id: [] for note in notes}
    for reaction in (
        Reaction.objects.filter(note__in=notes).select_related("created_by").order_by("created")
    ):
        reactions[reaction.note_id].append(with_author(reaction, emoji=reaction.emoji))
    events = (
        TimelineEvent.objects.filter(recipe=recipe)
        .select_related("created_by")
        .order_by("-created")
    )
    return JsonResponse(
        {
            "id": recipe.id,
            "name": recipe.name,
            "author": recipe.author,
            "source": recipe.source,
            "time": recipe.time,
            "servings": recipe.servings,
            "created": recipe.created.isoformat(),
            "ingredients": [{"type": "ingredient", **row} for row in ingredients]
            + [{"type": "section", **row} for row in sections],
            "steps": list(steps),
            "timeline": [with_author(event, type="event", action=event.action) for event in events]
            + [
                with_author(note, type="note", text=note.text, reactions=reactions[note.id])
                for note in notes
            ],
        }
    )


def positioned(rows: QuerySet) -> QuerySet:
    """What was not deleted, in its order."""
    return rows.filter(deleted__isnull=True).order_by("position")


def with_author(row: Note | Reaction | TimelineEvent, **more: Any) -> dict[str, Any]:
    """A row as it is answered, with its author and its time."""
    author = {"id": row.created_by.id, "name": row.created_by.name}
    return {"id": row.id, "created": row.created.isoformat(), "author": author, **more}


def healthz(request: HttpRequest) -> HttpResponse:
    """Whether requests are served."""
    return JsonResponse({"status": "ok"})
