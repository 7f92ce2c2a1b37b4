"""Profiles of the CPU on a port of their own, taken by py-spy.

py-spy reads the memory of the server's processes from outside, which needs no privilege: it runs
as the same user. Where the kernel asks for more (Yama's ptrace_scope 1: only a process above may
read another one), a process can allow it, and every process of a server does.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socket import AF_INET6
from urllib.parse import parse_qs, urlsplit

from serving.settings import Settings

# Not a multiple of what else ticks in a system, which would be seen always or never.
_SAMPLES_PER_SECOND = 99
# More than anybody waits for a profile.
_MOST_SECONDS = 600
# To find the interpreters at the start, and to write the stacks at the end. py-spy may wait for
# ever for one of its own threads (benfred/py-spy#732): what takes longer stands still.
_PATIENCE_SECONDS = 15
# So much longer than the profile takes does Laptime wait, with the server under load.
_WAITED_FOR_SECONDS = 55
# Whether the server is stopped for each sample. Otherwise it goes on while its memory is read: that
# costs it less, samples may be torn, and seldom nothing is found of which it is Python at all.
_TRIES = (False, False, True)
_NOT_FOUND = "No python processes found"
_STOOD_STILL = "py-spy did not end"
_COUNT = re.compile(r"[1-9][0-9]{0,11}", re.ASCII)
# A name such as `get`, `<lambda>` or `A.get`, and the file where py-spy knows it.
_FUNCTION = re.compile(r"[\w<>.]+( \([^()]+\))?")
_PR_SET_PTRACER = 0x59616D61
_PR_SET_PTRACER_ANY = ctypes.c_ulong(-1)


class ProfileError(Exception):
    """py-spy could not take a profile; the message is what it said."""


def allow_profile(settings: Settings) -> None:
    """Let py-spy read this process if profiles may be asked for; to be called in each process."""
    if settings.profile_port is not None:
        # Fails where there is no Yama, and then nothing is needed.
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _PR_SET_PTRACER_ANY, 0, 0, 0)


def serve_profiles(settings: Settings) -> None:
    """Serve profiles of this process and those below it, where the settings have a port for it.

    A thread waits for who asks; it takes nothing from the server until somebody does.
    """
    if settings.profile_port is not None:
        allow_profile(settings)
        server = (_ServerOnIPv6 if ":" in settings.host else HTTPServer)(
            (settings.host, settings.profile_port), _Handler
        )
        threading.Thread(target=server.serve_forever, name="profile", daemon=True).start()


def folded_stacks(pid: int, seconds: int) -> str:
    """Return where the CPU was in a process and those below it, from now on for so long.

    A line for each stack: its functions from the outermost one on, and its number of samples.

    Raises:
        ProfileError: the process cannot be read.
    """
    latest = time.monotonic() + _WAITED_FOR_SECONDS - _PATIENCE_SECONDS
    with tempfile.TemporaryDirectory(prefix="profile-") as folder:
        output = Path(folder) / "stacks"
        for stopping in _TRIES:
            said = _record(pid, seconds, output, stopping)
            # Its exit code is not asked for: gunicorn may have collected it.
            if output.exists():
                return "".join(_whole_stacks(output.read_text("utf-8", errors="replace")))
            again = _NOT_FOUND in said or _STOOD_STILL in said
            if not again or time.monotonic() > latest:
                break
        raise ProfileError(said or "py-spy wrote nothing")


def _record(pid: int, seconds: int, output: Path, stopping: bool) -> str:
    """Have py-spy write its stacks, and return what it said."""
    command = [
        *("py-spy", "record", "--pid", str(pid), "--subprocesses"),
        *("--function", "--format", "raw", "--output", str(output)),
        *("--rate", str(_SAMPLES_PER_SECOND), "--duration", str(seconds)),
        *([] if stopping else ["--nonblocking"]),
    ]
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds + _PATIENCE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        output.unlink(missing_ok=True)  # it may have been ended while it wrote
        return f"{_STOOD_STILL} within {seconds + _PATIENCE_SECONDS} s"
    except (OSError, subprocess.SubprocessError) as error:
        raise ProfileError(str(error)) from error
    return done.stdout.strip()


def _whole_stacks(folded: str) -> Iterator[str]:
    """Yield the lines without the frames that name a process: all workers do the same.

    A sample that was torn, since the server went on while its memory was read, has names of
    anything, with line feeds too: lines that are no stack of functions are left out.
    """
    for line in folded.split("\n"):
        stack, _, count = line.rpartition(" ")
        # process 7:"command line";…: that line may have anything in it, quotes and line feeds too,
        # while the name of a function has no quotes.
        stack = stack.rpartition('";')[2]
        if _COUNT.fullmatch(count) and all(map(_is_function, stack.split(";"))):
            yield f"{stack} {count}\n"


def _is_function(frame: str) -> bool:
    return frame.isprintable() and _FUNCTION.fullmatch(frame) is not None


class _ServerOnIPv6(HTTPServer):
    address_family = AF_INET6


class _Handler(BaseHTTPRequestHandler):
    """`GET /profile?seconds=N`; one after the other."""

    timeout = 30

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        seconds = parse_qs(url.query).get("seconds", [""])[0]
        if url.path != "/profile":
            self._answer(HTTPStatus.NOT_FOUND, "ask for /profile?seconds=N")
        elif (
            not seconds.isascii() or not seconds.isdigit() or not 1 <= int(seconds) <= _MOST_SECONDS
        ):
            self._answer(HTTPStatus.BAD_REQUEST, f"seconds must be 1 to {_MOST_SECONDS}")
        else:
            try:
                folded = folded_stacks(os.getpid(), int(seconds))
            except ProfileError as error:
                self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
            else:
                self._answer(HTTPStatus.OK, folded)

    def _answer(self, status: HTTPStatus, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Write no access log."""
