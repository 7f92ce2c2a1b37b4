"""Whether trials that are compared ran the same bits. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from laptime.api import doubts
from laptime.api.images import bits, comparable
from laptime.api.results import TrialResult, Validity
from laptime.plan import in_time

SERVER = "server"
SCRIPT = "script"
"""What the files of a load's script are from, where that is an image."""


def of_the_same_bits(
    results: Sequence[TrialResult], checked: Mapping[str, str] | None = None
) -> list[TrialResult]:
    """Return results, invalid where another image ran than in the first trial that says so.

    Of a server of which it is known what ran when its answers were `checked` (by its name), where
    another one ran than then.

    The first is the first that was measured: a trial that was asked for again is the odd one out,
    and not all that were measured before it. Those that measured nothing are left as they are. An
    image is known by the digest that the kubelet says, not by its name. A server is compared with
    itself, so is the script of a load, all other parts with those of the whole run. Results of
    older versions say nothing.
    """
    first: dict[tuple[str, str], TrialResult] = {}
    judged: dict[str, TrialResult] = {}
    for result in in_time(results):
        reasons = []
        for part, image in sorted(result.images.items()):
            whose = {SERVER: result.server, SCRIPT: result.load}
            right = (checked or {}).get(result.server) if part == SERVER else None
            if right is not None and comparable(right, image):
                if bits(right) != bits(image):
                    what = f"{part} {result.server}"
                    said = doubts.NOT_AS_CHECKED.says(what=what, image=image, before=right)
                    reasons.append(said)
                continue
            key = (part, whose.get(part, ""))
            known = first.setdefault(key, result)
            if bits(known.images[part]) != bits(image):
                what = f"{part} {whose[part]}" if part in whose else part
                # By its name the reader would take it for a later one.
                before = ", which was measured before it" if known.ordinal > result.ordinal else ""
                reasons.append(
                    doubts.OTHER_IMAGE.says(
                        what=what,
                        image=image,
                        before=known.images[part],
                        trial=f"{known.trial}{before}",
                    )
                )
        if reasons:
            result = result.model_copy(
                update={
                    "validity": Validity.INVALID,
                    "validity_reasons": [*reasons, *result.validity_reasons],
                }
            )
        judged[result.trial] = result
    return [judged.get(one.trial, one) for one in sorted(results, key=lambda one: one.ordinal)]
