"""Asks a server for a profile while it is under load.

Runs as `laptime profile` beside the generator, since only there the server can be reached.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

import httpx
from pydantic import Field, ValidationError

from laptime.api.base import TolerantModel
from laptime.measure.profile_output import ProfileProblem, profile_output
from laptime.measure.stacks import fold_stacks, parse_stacks
from laptime.verification.judge import said
from laptime.verification.verdict import Wrong
from laptime.verification.verify import wait_until_healthy

ENVIRONMENT_VARIABLE = "LAPTIME_PROFILE"
MAX_FOLDED_BYTES = 400_000
"""It is stored in a ConfigMap, which holds 1 MiB at most, beside its picture."""

_MAX_ANSWER_BYTES = 64 * 1024 * 1024
# A server that is busy and short of CPU takes long to write its stacks.
_ANSWER_SECONDS = 60.0
_CONTRACT = "docs/servers.md says how an image of your own can offer one"


class ProfileTask(TolerantModel):
    """What is to be asked for."""

    server: str = Field(description="Such as http://demo-server-axum:8080.")
    health_path: str = Field("/healthz", description="What it answers 200 when it serves.")
    profiles: str = Field(description="Such as http://demo-server-axum:6060.")
    wait_seconds: float = Field(description="How long the server may take to be healthy.")
    warmup_seconds: float = Field(description="How long the load is no good yet.")
    seconds: int = Field(description="How long the CPU is sampled.", ge=1)


def main(environment: Mapping[str, str] = os.environ) -> int:
    """Take the profile that the environment asks for, print it or why not, return the exit code.

    0 when the server was asked, whatever it said; 2 when the task itself cannot be read.
    """
    try:
        task = ProfileTask.model_validate_json(environment.get(ENVIRONMENT_VARIABLE, ""))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the document"
        message = f"{ENVIRONMENT_VARIABLE}: {place}: {first['msg']}"
        print(profile_output(ProfileProblem("TaskUnreadable", message)), flush=True)
        return 2
    print(profile_output(take_profile(task)), flush=True)
    return 0


def take_profile(
    task: ProfileTask,
    transport: httpx.BaseTransport | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> str | ProfileProblem:
    """Wait until the server is healthy and warm, and return its folded stacks.

    `transport` stands in for the network where there is none.
    """
    # Neither proxies nor certificates of the environment: the server is next door.
    try:
        with httpx.Client(base_url=task.server, trust_env=False, transport=transport) as client:
            wait_until_healthy(client, task.wait_seconds, task.health_path)
        sleep(task.warmup_seconds)
        with httpx.Client(base_url=task.profiles, trust_env=False, transport=transport) as client:
            folded = _ask(client, task.seconds)
    except Wrong as wrong:
        return ProfileProblem(wrong.verdict.reason, wrong.verdict.message)
    except httpx.ConnectError:
        return ProfileProblem(
            "ProfileNotOffered", f"nothing listens on its PROFILE_PORT: {_CONTRACT}"
        )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return ProfileProblem("ProfileFailed", f"GET /profile: {said(error)}")
    if isinstance(folded, ProfileProblem):
        return folded
    try:
        stacks = parse_stacks(folded)
    except ValueError as error:
        return ProfileProblem("ProfileNotUnderstood", f"GET /profile: {error}; {_CONTRACT}")
    if not stacks:
        return ProfileProblem("ProfileEmpty", f"it used no CPU in {task.seconds} s")
    return fold_stacks(stacks, MAX_FOLDED_BYTES)


def _ask(client: httpx.Client, seconds: int) -> str | ProfileProblem:
    """Return what the server answers. Raises httpx.HTTPError when it does not."""
    limits = httpx.Timeout(seconds + _ANSWER_SECONDS)
    body = b""
    url = f"/profile?seconds={seconds}"
    with client.stream("GET", url, timeout=limits) as response:
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > _MAX_ANSWER_BYTES:
                return ProfileProblem(
                    "ProfileTooLarge", f"it has more than {_MAX_ANSWER_BYTES} bytes"
                )
    text = body.decode(errors="replace")
    if response.status_code == 404:
        return ProfileProblem("ProfileNotOffered", f"GET /profile answers 404: {_CONTRACT}")
    if response.status_code != 200:
        said_so = f"GET /profile answers {response.status_code}: {text.strip()[:300]}"
        return ProfileProblem("ProfileFailed", said_so)
    return text
