"""Completion as kubectl asks for it.

kubectl asks a program named `kubectl_complete-laptime` for the words that may follow
`kubectl laptime …`; it prints them line by line, and then a directive as Cobra defines it.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
from collections.abc import Sequence

from laptime.cli.completion import VARIABLE
from laptime.cli.main import complete

_FILES_MAY_FOLLOW, _NO_FILES = 0, 4


def kubectl_completions(words: Sequence[str]) -> str:
    """Return what kubectl wants to hear; `words` follow `kubectl laptime`, the last unfinished."""
    line = ["laptime", *words]
    environment = {
        VARIABLE: "complete_bash",
        "COMP_WORDS": "\n".join(shlex.quote(word) for word in line),
        "COMP_CWORD": str(len(line) - 1),
    }
    out = io.StringIO()
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        with contextlib.redirect_stdout(out):
            complete()
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value
    found = [word for word in out.getvalue().splitlines() if word]
    directive = _NO_FILES if found else _FILES_MAY_FOLLOW
    return "\n".join([*found, f":{directive}"])


def main() -> None:
    """Answer kubectl."""
    print(kubectl_completions(sys.argv[1:]))
