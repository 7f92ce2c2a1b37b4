"""What to type after an experiment: what limits then, and what it left open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from laptime.analysis import wording
from laptime.analysis.explained import Explained, Finding
from laptime.analysis.suspects import suspects
from laptime.api.causes import Cause
from laptime.api.spec import MAX_REPETITIONS, MAX_TRIALS, BenchmarkRunSpec
from laptime.cli.options import program_name
from laptime.plan.experiments import MOST_CANDIDATES

if TYPE_CHECKING:
    from laptime.api.experiment import Resource
    from laptime.cli.runs import Run

_MORE = 4
"""How many times as many repetitions are asked for where that many decided nothing."""


def goes_on(
    run: Run,
    over: Run,
    found: Sequence[Explained],
    left: Sequence[Resource],
    resizes: bool | None,
    there: str,
) -> list[str]:
    """Return what to type to go on where an experiment left something open; empty: nothing.

    `left` is what the run suspects beside what was tried, `resizes` whether the cluster changes the
    CPU of pods that run (None: nobody knows). Nothing, too, where it is about an earlier run: in
    this one all may be otherwise.
    """
    spec = over.spec
    if spec is None or run.spec is None or over.explains != run.uid:
        return []
    lines = list(_then(over, spec, found, resizes, there))
    begins = f"{program_name()} explain {run.name} --server {spec.baseline_name} --again"
    undecided = {one.load for one in found if one.finding is Finding.UNDECIDED}
    searches = [one.name for one in spec.loads if one.saturation and one.name in undecided]
    if searches:
        lines.append(
            f"Undecided under {', '.join(searches)}: repetitions do not narrow what a search "
            "leaves open between the highest rate that was met and the lowest that was missed; "
            "explain a run with a closed load, whose answers are counted"
        )
    if undecided.difference(searches):
        most = min(MAX_REPETITIONS, MAX_TRIALS // (len(spec.servers) * len(spec.loads)))
        more = min(_MORE * spec.repetitions, most)
        if more > spec.repetitions:
            lines.append(
                "Undecided: more repetitions make intervals narrower, four times as many half as "
                f"wide:  {begins} --repetitions {more}{there}"
            )
        else:
            lines.append(
                "Undecided, with as many repetitions as there may be: longer trials (duration, "
                "requests) vary less"
            )
    if left:
        tries = left[:MOST_CANDIDATES]
        asked = "".join(f" --more {one}" for one in tries)
        # What is named is tried under all loads, as often as before.
        arms = 1 + len(tries) + (len(tries) > 1)
        most = MAX_TRIALS // (arms * len(run.spec.loads))
        if spec.repetitions > most:
            asked += f" --repetitions {most}"
        lines.append(
            f"Suspected too, and not in this experiment: {', '.join(left)}:  {begins}{asked}{there}"
        )
    # Of one that failed there may be no report to keep.
    if over.status.results_config_map is not None and any(begins in one for one in lines):
        kept = f"{program_name()} report {over.name}{there} -f {over.name}.json"
        lines.append(f"--again deletes this experiment; to keep it:  {kept}")
    return lines


def _then(
    over: Run, spec: BenchmarkRunSpec, found: Sequence[Explained], resizes: bool | None, there: str
) -> Iterator[str]:
    """Yield what limits with more of what was confirmed, and how to try that or why nobody can.

    Of several arms under a load the one that gained most goes on: the experiment is a run itself.
    """
    best: dict[str, Explained] = {}
    for one in found:
        if one.finding is Finding.CONFIRMED and one.gain is not None:
            before = best.get(one.load)
            if before is None or before.gain is None or one.gain.value > before.gain.value:
                best[one.load] = one
    for arm in dict.fromkeys(one.arm for one in best.values()):
        rows = [
            row
            for row in over.status.results or []
            if row.server == arm and row.load in best and best[row.load].arm == arm
        ]
        # Of the others nobody knows what limits then.
        known = {
            row.load: row.limited_by.cause
            for row in rows
            if row.limited_by is not None and row.limited_by.cause is not Cause.UNKNOWN
        }
        suspected = suspects(spec, spec.server(arm), rows, resizes)
        causes = dict.fromkeys(known.values())
        said = (
            f"Then limited by {', '.join(map(wording.cause, causes))} (suspected, {arm} under "
            f"{', '.join(known)}):"
            if known
            else f"What limits {arm} then is not known, and this is nearly full:"
        )
        if suspected.can_be:
            yield f"{said}  {program_name()} explain {over.name} --server {arm}{there}"
        elif suspected.not_to_be_had:
            yield f"{said} {'; '.join(one.why for one in suspected.not_to_be_had)}"
