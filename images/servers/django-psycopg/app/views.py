"""What the paths answer."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

from app.recipes import find_user, pick_recipe


def random_recipe(request: HttpRequest) -> HttpResponse:
    """A random recipe of the session's user."""
    if not settings.HAS_DATABASE:
        return HttpResponse("DATABASE_URL is not set", status=503)
    session_key = request.COOKIES.get("sessionid")
    user_id = find_user(session_key) if session_key is not None else None
    if user_id is None:
        return HttpResponse(status=401)
    recipe = pick_recipe(user_id)
    return JsonResponse(recipe) if recipe else HttpResponse(status=404)


def healthz(request: HttpRequest) -> HttpResponse:
    """Answers as soon as requests are served."""
    return JsonResponse({"status": "ok"})
