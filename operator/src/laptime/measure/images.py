"""Whether trials that are compared ran the same bits. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from laptime.api import doubts
from laptime.api.results import TrialResult, Validity

SERVER = "server"
SCRIPT = "script"
"""What the files of a load's script are from, where that is an image."""


def of_the_same_bits(results: Sequence[TrialResult]) -> list[TrialResult]:
    """Return results, invalid where another image ran than in the first trial that says so.

    An image is known by what the kubelet says it runs, not by its tag. A server is compared with
    itself, so is the script of a load, all other parts with those of the whole run. Results of
    older versions say nothing.
    """
    first: dict[tuple[str, str], TrialResult] = {}
    judged = []
    for result in sorted(results, key=lambda one: one.ordinal):
        reasons = []
        for part, image in sorted(result.images.items()):
            whose = {SERVER: result.server, SCRIPT: result.load}
            key = (part, whose.get(part, ""))
            known = first.setdefault(key, result)
            if known.images[part] != image:
                what = f"{part} {whose[part]}" if part in whose else part
                reasons.append(
                    doubts.OTHER_IMAGE.says(
                        what=what, image=image, before=known.images[part], trial=known.trial
                    )
                )
        if reasons and result.figures is not None:
            result = result.model_copy(
                update={
                    "validity": Validity.INVALID,
                    "validity_reasons": [*reasons, *result.validity_reasons],
                }
            )
        judged.append(result)
    return judged
