"""The page docs/reference/reasons.md, made from the closed lists of reasons and of doubts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from laptime.api.conditions import TRUE_WHEN
from laptime.api.doubts import DOUBTS, Bearing, Doubt
from laptime.api.reasons import SECTIONS
from laptime.cli.reference import GENERATED, table

_BEARINGS = {
    Bearing.NONE: "no",
    Bearing.LOOKS_WORSE: "may look worse",
    Bearing.LOOKS_BETTER: "may look better",
    Bearing.EITHER: "either way",
}
_PAGE = re.compile(r"\]\((?![a-z]+:)(reference/)?")


def reasons_page() -> str:
    """Return the page of every condition, every reason and every doubt, with what to do."""
    return "\n\n".join(part for part in _parts() if part) + "\n"


def _parts() -> Iterator[str]:
    yield GENERATED.format(source="the lists in operator/src/laptime/api (reasons, doubts.py)")
    yield "# Reference: conditions, reasons and doubts"
    yield _from_here(
        "A condition has a status, a reason (one word) and a message that names the thing and says "
        "what to do. The message says more than this page: read it first. Where a server or a "
        "trial fails, the same reasons stand in `status.servers` and `status.results`, and in the "
        "results of the trial. How to look at them: [troubleshooting](troubleshooting.md)."
    )
    yield "## Conditions"
    yield table(("Condition", "True when"), [(f"`{one}`", what) for one, what in TRUE_WHEN.items()])
    for section in SECTIONS:
        yield f"## {section.title}"
        yield _from_here(section.about)
        yield table(
            ("Reason", "What it means", "What to do"),
            [
                (f"`{one.name}`", _from_here(one.meaning), _from_here(one.advice))
                for one in section.reasons
            ],
        )
    yield "## Doubts"
    yield _from_here(
        "What makes figures `doubtful` or `invalid`, in words (`validityReasons`); `…` stands for "
        "figures and names. When each is said: [validity](measurement.md#validity). An objective "
        "is not known when a doubt bears on its figure in the direction that could change the "
        "outcome: one that may look worse than the server is does not question that a bound was "
        "kept, one that may look better does not question that it was missed."
    )
    yield table(
        ("What is said", "Throughput", "Response times", "Errors", "What to do"),
        [_row(one) for one in DOUBTS],
    )


def _row(one: Doubt) -> tuple[str, ...]:
    bears = (_BEARINGS[where] for where in (one.throughput, one.latency, one.errors))
    return (one.kind, *bears, _from_here(one.advice))


def _from_here(text: str) -> str:
    """Return text whose links are as seen from docs/, as seen from docs/reference/."""
    return _PAGE.sub(lambda found: "](" if found[1] else "](../", text)
