"""The application that all four servers carry. It asks nobody: the server is what differs."""

import json

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

LAST = 1000
TEXT = "thirty characters, more or less"
LONG = json.dumps(
    {"rows": [{"row": row, "text": f"{row:03} {TEXT}"} for row in range(256)]}
).encode()


async def short(request: Request) -> Response:
    """Answer a few bytes."""
    number = request.path_params["number"]
    if not 1 <= number <= LAST:
        return Response(status_code=404)
    return JSONResponse({"id": number, "text": TEXT})


async def long(request: Request) -> Response:
    """Answer 16 KB that are ready."""
    return Response(LONG, media_type="application/json")


async def form(request: Request) -> Response:
    """Read a body and answer what it comes to."""
    sent = await request.json()
    return JSONResponse({"name": sent["name"], "sum": sum(sent["marks"])})


async def healthz(request: Request) -> Response:
    """Answer as soon as requests are served."""
    return Response("ok")


app = Starlette(
    routes=[
        Route("/short/{number:int}", short),
        Route("/long", long),
        Route("/form", form, methods=["POST"]),
        Route("/healthz", healthz),
    ]
)
