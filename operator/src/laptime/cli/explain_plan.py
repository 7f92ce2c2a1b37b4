"""What an experiment on a server of a run is to try, and whether it is there already."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laptime.analysis import wording
from laptime.analysis.explained import given_limit, in_vain, limited_by_the_cluster
from laptime.analysis.suspects import TOO_OLD, load_itself, suspects
from laptime.api import API_VERSION, KIND
from laptime.api.causes import Cause
from laptime.api.experiment import (
    ABOUT_ANNOTATION,
    EXPLAINS_LABEL,
    FEWEST_REPETITIONS,
    TIER_CPU,
    Resource,
)
from laptime.api.results import Validity
from laptime.api.spec import CHANGEABLE
from laptime.cli.manifest_file import Manifest
from laptime.cli.mistakes import Mistake, NewerVersion
from laptime.cli.options import Output, name_beside, program_name
from laptime.cli.run_commands import followed, measured
from laptime.plan import plan_trials, remaining_seconds
from laptime.plan.experiments import (
    MOST_CANDIDATES,
    Experiment,
    NothingToTryError,
    TooManyTrialsError,
    candidates,
    changeable,
    experiment,
    tried,
)

if TYPE_CHECKING:
    from laptime.api.results import ResultRow
    from laptime.api.server import Server
    from laptime.api.spec import BenchmarkRunSpec
    from laptime.cli.cluster_access import Cluster
    from laptime.cli.runs import Run

_SUFFIX = "-explain"
_HASHED = 6


class NotTried(Mistake):
    """Nothing that could limit a server can be tried."""


class MeasuredBefore(Mistake):
    """There is an experiment on a server already, with other options than these."""

    def __init__(self, run: Run, *why: str) -> None:
        """Take the experiment, and why these options make none."""
        said = f"{run.name} was measured before: --again deletes it, and measures anew"
        super().__init__("\n".join([said, *why]))
        self.run = run


@dataclass(frozen=True)
class Asked:
    """What somebody wants to be tried of a server."""

    more: Sequence[Resource]
    """Empty: what the run suspects."""
    repetitions: int | None
    again: bool


@dataclass(frozen=True)
class Planned:
    """The experiment on a server of a run."""

    server: str
    name: str
    there: Run | None
    """The run that has its name."""
    to_make: Experiment | None
    """None: it is there."""
    not_tried: Sequence[str] = ()
    """Why some of what is suspected is not in it."""

    @property
    def stands(self) -> Run | None:
        """The experiment where it is there already, over or not."""
        return self.there if self.to_make is None else None

    @property
    def replaces(self) -> str:
        """The uid of the run that may be deleted for it; empty: none may."""
        return self.there.uid if self.there is not None else ""


def planned(
    cluster: Cluster,
    run: Run,
    spec: BenchmarkRunSpec,
    server: str,
    asked: Asked,
    resizes: bool | None,
) -> Planned:
    """Return the experiment on a server of a run that is over, `spec` is that of the run.

    What a cluster `resizes` for all anybody knows (None) is tried where it was asked for.

    Raises:
        NotTried: nothing can be tried.
        MeasuredBefore: there is one that tried something else.
        Mistake: the one that is there goes on, the run of that name is somebody else's, or it
            would have too many trials.
    """
    name = _name(run.name, server)
    before = cluster.run(run.namespace, name)
    stays = before if before is not None and not before.deleting else None
    if stays is not None:
        _no_strangers(cluster, stays, run, server)
        if not (asked.again or asked.more or asked.repetitions):
            return Planned(server, name, stays, None)
    results = run.status.results or []
    tries, loads = list(asked.more), [one.name for one in spec.loads]
    repetitions = asked.repetitions
    left_out: list[str] = []
    if asked.again and before is not None and before.spec and before.explains == run.uid:
        # Somebody may have named what it tried, and its result is deleted.
        repetitions = repetitions or before.spec.repetitions
        if not tries:
            loads = [one.name for one in before.spec.loads]
            tries, left_out = _tried_by(before.spec, spec, server, results)
    goes_on = f"{name} goes on: wait until it is over, or end it with cancel"
    try:
        to_make, not_tried = _experiment(spec, results, server, tries, loads, resizes, repetitions)
    except Mistake as none:
        if stays is None or asked.again:
            raise
        # What it found is not hidden since other options make none.
        if not stays.over:
            raise Mistake(f"{goes_on}\n{none}") from none
        raise MeasuredBefore(stays, str(none)) from none
    if stays is not None and not asked.again and _is(to_make.spec, stays.spec):
        return Planned(server, name, stays, None)
    if stays is not None and not stays.over:
        raise Mistake(goes_on)
    if stays is not None and not asked.again:
        raise MeasuredBefore(stays)
    return Planned(server, name, before, to_make, list(dict.fromkeys([*left_out, *not_tried])))


def _is(wanted: BenchmarkRunSpec, there: BenchmarkRunSpec | None) -> bool:
    """Return whether an experiment is the one that is wanted."""
    return there is not None and all(
        getattr(wanted, one) == getattr(there, one) for one in ("servers", "loads", "repetitions")
    )


def announced(one: Planned) -> list[str]:
    """Return what is to be said of an experiment before it begins."""
    if one.to_make is None:
        if one.stands is not None and not one.stands.over:
            return [f"{one.name} goes on already, and is waited for."]
        return [f"{one.name} is finished already, this is its result; --again measures anew."]
    trials, seconds = cost(one)
    return [
        f"Run {one.name} measures {one.server} beside itself with more under "
        f"{', '.join(load.name for load in one.to_make.spec.loads)}, {trials} trials, "
        f"{about(seconds)}:",
        *(f"  {arm.server.name}: {arm.change}" for arm in one.to_make.arms),
        *([f"  {one.to_make.besides}"] if one.to_make.besides else []),
        *(f"  Not tried: {why}" for why in one.not_tried),
    ]


def cost(one: Planned) -> tuple[int, float]:
    """Return how many trials are to be measured, and how many seconds that takes."""
    if one.to_make is None:
        return 0, 0.0
    trials = plan_trials(one.name, one.to_make.spec, 0)
    return len(trials), remaining_seconds(one.to_make.spec, trials, {})


def about(seconds: float) -> str:
    """Return a time as nobody knows it better beforehand."""
    return f"about {max(1, round(seconds / 60))} min"


def carried_out(cluster: Cluster, run: Run, one: Planned, again: bool, output: Output) -> Run:
    """Make an experiment on a server of a run, show its progress, and return it when it is over.

    One that is there is followed to its end.

    Raises:
        Mistake: it would be refused, or was deleted meanwhile.
    """
    if one.stands is not None:
        return followed(cluster, one.stands, output)
    made = _manifest(run, one)
    return measured(cluster, run.namespace, made, again, output, replaces=one.replaces)


def _manifest(run: Run, one: Planned) -> Manifest:
    # What may be changed of a run that is there is not spelt out: it is nothing that was tried.
    wire = one.to_make.spec.to_wire() if one.to_make is not None else {}
    document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": one.name,
            "labels": {EXPLAINS_LABEL: run.uid},
            "annotations": {ABOUT_ANNOTATION: f"{run.name}/{one.server}"},
        },
        "spec": {key: its for key, its in wire.items() if key not in CHANGEABLE},
    }
    return Manifest(document, ())


def _name(run: str, server: str) -> str:
    """Return the name of the experiment on a server of a run, which no other one has.

    `demo-a` and `b` are put together as `demo` and `a-b` are: then a hash tells them apart.
    """
    both = f"{run}-{server}"
    if both.count("-") > 1:
        both += f"-{hashlib.sha256(f'{run}/{server}'.encode()).hexdigest()[:_HASHED]}"
    return name_beside(both, _SUFFIX)


def _no_strangers(cluster: Cluster, before: Run, run: Run, server: str) -> None:
    """Leave a run alone that has the name of the experiment, and is none on this server.

    One on an earlier run of the same name is meant, too: what it says of itself tells so.
    """
    about = f"{run.name}/{server}"
    ours = before.explains == run.uid and before.about in (None, about)
    if before.explains is None or not (ours or before.about == about):
        raise Mistake(
            f"{before.name} is there already, and is no experiment on {server} of {run.name}: "
            f"delete it, if it is yours:  kubectl delete br {before.name} -n {before.namespace}"
            f"{cluster.chosen}"
        )
    if before.spec is None:
        raise NewerVersion(before.name)


def _tried_by(
    before: BenchmarkRunSpec, spec: BenchmarkRunSpec, name: str, rows: Sequence[ResultRow]
) -> tuple[list[Resource], list[str]]:
    """Return what an experiment on a server of a run tried, and why not all of it is tried again.

    Not workers that the same limit would hold as well: an older version tried these.
    """
    found, server = tried(before), next((one for one in spec.servers if one.name == name), None)
    its_rows = [row for row in rows if row.server == name]
    given = given_limit(name, its_rows)
    if server is None or given is None:
        return found, []
    suspected = [row.limited_by for row in its_rows if row.limited_by is not None]
    causes = [cause for one in suspected for cause in (one.cause, *one.also)]
    held = set(candidates(server, causes)).difference(candidates(server, causes, given))
    left = [one for one in found if one not in held]
    return left, [limited_by_the_cluster(name, given)] if left != found else []


def _experiment(
    spec: BenchmarkRunSpec,
    rows: Sequence[ResultRow],
    name: str,
    more: Sequence[Resource],
    loads: Sequence[str],
    resizes: bool | None,
    repetitions: int | None,
) -> tuple[Experiment, list[str]]:
    """Return the experiment, and why some of what is suspected is not in it.

    What a cluster `resizes` for all anybody knows (None) is tried where it was asked for.

    Raises:
        NotTried: nothing can be tried.
        Mistake: something can, and not as often as that.
    """
    made = repetitions or max(spec.repetitions, FEWEST_REPETITIONS)
    try:
        server = changeable(spec, name)
        its_rows = [row for row in rows if row.server == name]
        vain = {row.load: why for row in its_rows if row.load in loads and (why := in_vain(row))}
        loads = [one for one in loads if one not in vain]
        chosen, not_tried = list(dict.fromkeys(more)), list(vain.values())
        if not loads:
            raise NothingToTryError("; ".join(not_tried))
        asked_in_vain = [f"{one}: {TOO_OLD}" for one in TIER_CPU if one in chosen]
        if asked_in_vain and resizes is False:
            raise NothingToTryError("; ".join(asked_in_vain))
        if not chosen:
            its_rows = [row for row in its_rows if row.load in loads]
            chosen, loads, others = _suspected(spec, server, its_rows, resizes, not_tried)
            not_tried += others
        return experiment(spec, name, chosen, loads, made), not_tried
    except TooManyTrialsError as error:
        raise Mistake(str(error)) from error
    except NothingToTryError as error:
        raise NotTried(f"Nothing to try: {error}") from error


def _suspected(
    spec: BenchmarkRunSpec,
    server: Server,
    rows: Sequence[ResultRow],
    resizes: bool | None,
    vain: Sequence[str],
) -> tuple[list[Resource], list[str], list[str]]:
    """Return what is to be tried, under which loads, those that it may limit, and why not more.

    `vain` says under which loads nothing could be compared, which are not among the rows.
    """
    found = suspects(spec, server, rows, resizes)
    if not any(found.by_load.values()):
        raise NotTried("\n".join([*vain, _nothing(spec, server.name, rows)]))
    not_tried = [one.why for one in found.not_to_be_had]
    chosen, left = list(found.can_be[:MOST_CANDIDATES]), found.can_be[MOST_CANDIDATES:]
    if not chosen:
        raise NothingToTryError("; ".join(not_tried))
    not_tried += [f"{one}: an experiment tries {MOST_CANDIDATES} at most" for one in left]
    loads = [load for load, its in found.by_load.items() if set(its) & set(chosen)]
    return chosen, loads, not_tried


def _nothing(spec: BenchmarkRunSpec, name: str, rows: Sequence[ResultRow]) -> str:
    choices = f"Write --more with what to try: {', '.join(Resource)}"
    found = {row.load: row.limited_by for row in rows if row.limited_by is not None}
    causes = list(dict.fromkeys(one.cause for one in found.values()))
    itself = [(load, one) for load, one in found.items() if one.cause is Cause.OFFERED_LOAD]
    said = [why for load, one in itself if (why := load_itself(spec.load(load), one)) is not None]
    of_load = f"Of {name} itself nothing is suspected: {'; '.join(said)}\n" if said else ""
    known = [one for one in causes if one not in (Cause.UNKNOWN, Cause.OFFERED_LOAD)]
    if known:
        return (
            f"What limited {name} lies outside of it "
            f"({', '.join(wording.cause(one) for one in known)}), and all servers of a run share "
            "that. Change it in the topology, the loads or the nodes of a second run, and compare "
            f"both:  {program_name()} compare BEFORE AFTER\n{of_load}Or: {choices}"
        )
    if of_load:
        return f"{of_load}Or: {choices}"
    if Cause.UNKNOWN in causes:
        return f"What limited {name} is not known. {choices}"
    if causes:
        return f"Nothing limited {name}: all that was sent was answered in time. {choices}"
    invalid = next((one for one in rows if one.validity is Validity.INVALID), None)
    if invalid is not None:
        why = next(iter(invalid.validity_reasons), "no valid trial")
        return f"Nothing is suspected of {name}: its figures are invalid ({why}). {choices}"
    return f"Nothing is suspected of {name}: nobody watched it, or it was not measured. {choices}"
