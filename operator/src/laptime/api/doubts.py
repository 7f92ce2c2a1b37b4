"""The closed list of what can be said against figures: the words, what each bears on, what to do.

Rules of validity take their words from here, so that each can be known again in what was stored. A
doubt that can only have made a figure look worse than the server is does not question that a bound
was kept, and one that can only have flattered it does not question that it was missed. So a gate
can pass where a hypervisor takes time, and cannot pass on a figure that may be too good. Words that
are not in the list bear on every figure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Flag, auto
from functools import cached_property
from string import Formatter
from typing import Any, NewType

from laptime.api.metrics import Metric
from laptime.api.written import number, share

Said = NewType("Said", str)
"""What a doubt of the list says, with its figures."""

_FIGURE = re.compile(r"\{[^}]*\}")
_NO_NAME = "trial"
"""The field of the trial that another one is compared with: no difference between two reasons."""
_WITH_FIGURES = "mostly"
"""The field that has figures among its words."""
_OF_OLDER_VERSIONS = re.compile(r"'[^']*'|[\d.,]+")
_NUMBER = r"[-+\d.,e]+%?"
_OF_THE_FIRST = "; these figures are of the first"
_REPEATED = rf"( \(in \d+ of \d+ repetitions?({_OF_THE_FIRST})?\))?"
_SHARE = re.compile(rf" \(in (\d{{1,9}}) of (\d{{1,9}}) repetitions?({_OF_THE_FIRST})?\)$")
_DRIFT = re.compile(r" s were (\d{1,9})% ")
_LIMIT_OF_CPU = re.compile(r"(?:^| and )(\d+(?:\.\d+)?m?) of CPU\b")
_WRITTEN = {"number": number, "share": share}


class _Writing(Formatter):
    """What `str.format` does, and figures as people read them."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        written = _WRITTEN.get(format_spec)
        return super().format_field(value, format_spec) if written is None else written(value)


_WRITING = _Writing()


class Bearing(Flag):
    """In which direction a figure may be off."""

    NONE = 0
    LOOKS_WORSE = auto()
    """The server may be better than the figure: what kept a bound keeps it for sure."""
    LOOKS_BETTER = auto()
    """The server may be worse than the figure: what missed a bound misses it for sure."""
    EITHER = LOOKS_WORSE | LOOKS_BETTER


@dataclass(frozen=True)
class Doubt:
    """One kind of doubt."""

    text: str
    """What it says, with its figures in braces as `str.format` has them; `number` and `share` are
    figures as the report has them."""
    advice: str
    """What to do (Markdown)."""
    throughput: Bearing = Bearing.EITHER
    latency: Bearing = Bearing.EITHER
    """Of percentiles over all requests, and of the mean of the right answers."""
    errors: Bearing = Bearing.EITHER

    @property
    def kind(self) -> str:
        """Its words, with `…` for each figure and name."""
        return _FIGURE.sub("…", self.text)

    def says(self, **figures: Any) -> Said:
        """Return its words with these figures."""
        return Said(_WRITING.format(self.text, **figures))

    def said(self, reason: str) -> bool:
        """Return whether a reason is this doubt, whatever its figures are."""
        return self._pattern.fullmatch(reason) is not None

    def about(self, reason: str) -> tuple[str, ...] | None:
        """Return what a reason of this kind is about, without its figures; None: it is no such."""
        found = self._pattern.fullmatch(reason)
        if found is None:
            return None
        names = {name: said for name, said in found.groupdict().items() if name != _NO_NAME}
        if _WITH_FIGURES in names:
            names[_WITH_FIGURES] = re.sub(r"\d+", "0", names[_WITH_FIGURES])
        return (self.kind, *(names[one] for one in sorted(names)))

    def bears_on(self, metric: Metric) -> Bearing:
        """Return how it bears on a figure."""
        if metric is Metric.REQUESTS_PER_SECOND:
            return self.throughput
        return self.latency if metric.is_latency else self.errors

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        # A figure is a number; a name may be anything, also the words of another doubt.
        between, names = [""], list[str]()
        for literal, field, how, _ in Formatter().parse(self.text):
            between[-1] += re.escape(literal)
            if field is not None and how:
                between[-1] += _NUMBER
            elif field is not None:
                names.append(field)
                between.append("")
        # Of several names each ends where what follows it first stands. To try all other places as
        # well would find nothing more, and take days for a long text of a stranger.
        parts = [
            f"(?>(?P<{name}>.*?){follows})"
            for name, follows in zip(names[:-1], between[1:-1], strict=True)
        ]
        last = f"(?P<{names[-1]}>.*){between[-1]}" if names else ""
        return re.compile(between[0] + "".join(parts) + last + _REPEATED, re.DOTALL)


_NONE, _WORSE, _BETTER, _EITHER = (
    Bearing.NONE, Bearing.LOOKS_WORSE, Bearing.LOOKS_BETTER, Bearing.EITHER,
)  # fmt: skip

# Of what came back. Where all of it failed, nothing is known so well as that.
NO_RIGHT_ANSWER = Doubt(
    "no right answer{mostly}",
    "look at the server's log, and at `errorsByKind` of the trials",
    errors=_NONE,
)
NO_REQUEST = Doubt(
    "the script asked nothing by HTTP or gRPC, so there is no throughput and no response time: "
    "its own metrics are all that there is",
    "nothing where that is meant; compare servers by the metrics of the script",
)
ALL_TOO_LATE = Doubt(
    "no answer came within the measured time: {late:d} right ones came after it",
    "measure for several times as long as one request takes (`duration`)",
)
# A request that fails costs a server less, or more, than the work. Percentiles count it as slower
# than all others already, and the bound says how many may fail.
ERRORS = Doubt(
    "{share:share} of the requests had no right answer",
    "look at `errorsByKind` of the trials; a lower load, or a server that answers all of it",
    _EITHER, _NONE, _NONE,
)  # fmt: skip
# What the server asks for is its own doing, and a gate is about what users get.
MORE_STATEMENTS = Doubt(
    "{ran:.3g} statements per right answer instead of {expected:.3g}: the server does more than "
    "the work",
    "look for statements that the work does not need, such as a check of each connection",
    _NONE, _NONE, _NONE,
)  # fmt: skip
FEWER_STATEMENTS = Doubt(
    "{ran:.3g} statements per right answer instead of {expected:.3g}: the server does less than "
    "the work, or remembers it",
    "send the statements for each request; do not cache",
)
OTHER_IMAGE = Doubt(
    "{what} ran {image}, and {before} in trial {trial}: they are not the same",
    "name images by their digests, and do not move a tag while a run goes on",
)
NOT_AS_CHECKED = Doubt(
    "{what} ran {image}, and {before} when its answers were checked: they are not the same",
    "name the image by its digest, or load the same one into all nodes",
)
TAG_UNKNOWN = Doubt(
    "whether the tag of {image} has moved is not known: an older image of that name may have run",
    "`tagUnknown` of the server in the status of the run says why: mend that, or name the image by "
    "its digest",
)
# An index more or less makes it faster or slower, a column that is gone makes it fail.
OTHER_SCHEMA = Doubt(
    "server {server} was measured on another schema of the database than it was checked on: {why}",
    "`topology.postgres.databases: perServer`, which gives each server a database of its own "
    "([a server that migrates its schema](servers.md#a-server-that-migrates-its-schema)); where it "
    "has one, see what it changes there once it is healthy",
)
NO_RATE = Doubt(
    "the objective was met at no rate, not even the lowest one tried",
    "a bound that the server can keep, or a lower `startRate`",
)
# The server may do more than was found; what it was measured at it did.
NO_UPPER_END = Doubt(
    "the objective was met at {rate:number} requests/s, the highest rate tried: the server can do "
    "more",
    "a higher `maxRate`",
    _WORSE, _NONE, _NONE,
)  # fmt: skip
SEARCHED_LATE = Doubt(
    "at {rate:number} requests/s, where the search ended, the generator did not send in time: the "
    "server may do more",
    "more CPU for the generator (`generator.resources`), or a node of its own",
    _WORSE, _NONE, _NONE,
)  # fmt: skip
RESTLESS = Doubt(
    "{steps:d} steps of the search began before the server answered as fast as at first",
    "a longer `step`, after which the server gets more time; see what it still works on when "
    "nobody waits any more",
    _WORSE, _WORSE, _WORSE,
)  # fmt: skip
FAILED = Doubt("failed: {reason}", "the trial's reason says it")

# Of what a script says itself.
CHECK_FAILED = Doubt(
    "check '{name}' failed in {failed:,} of {answers:,} answers ({share:share})",
    "mend the check or the server; `checks: inform` if it is not about right answers",
)
MORE_CHECKS_FAILED = Doubt(
    "{count:d} more checks failed as well", "as for the checks that are named"
)
ANSWERS_WRONG = Doubt(
    "{wrong:,} answers failed one check or another ({share:share} of the {answers:,} that the "
    "check that was asked most often had): {names}",
    "as for a check that fails by itself: together they are wrong as often",
)
THROWN = Doubt(
    "{count:,} of {iterations:,} iterations ended with an exception: {message}",
    "mend the script where it says, or the server whose answer it cannot read",
)
NO_WARMUP = Doubt(
    "no warm-up was named, so the start of the script is in the figures: write script.warmup, such "
    "as 10s, or name a scenario warmup",
    "write `script.warmup`, or name a scenario `warmup` ([own script](own-script.md))",
)
ENDED_EARLY = Doubt(
    "a threshold of the script's with abortOnFail ended it before its time",
    "take `abortOnFail` out, or a load that the server can bear",
)
# At the full rate the server would have been slower; how much it would have answered nobody knows.
ITERATIONS_DROPPED = Doubt(
    "k6 dropped {dropped:,} of {due:,} iterations: it had no VU left for them (maxVUs), so the "
    "load was less than the script asks for",
    "more `maxVUs`, or a lower rate",
    _EITHER, _BETTER, _BETTER,
)  # fmt: skip

# Of the generator and the load.
GENERATOR_BUSY = Doubt(
    "the generator used {share:.0%} of its CPU and may have been the limit",
    "more generators (`generator.parallelism`), or more CPU for them: but 16 connections have one "
    "thread, which more CPU makes no faster; a lighter script",
    _WORSE, _WORSE, _WORSE,
)  # fmt: skip
NO_PORT = Doubt(
    "{lost:,d} of {requests:,d} requests had no port to connect from: that is the generator's "
    "limit and not the server's",
    "`keepAlive: true`, or fewer connections; more generators (`generator.parallelism`), each of "
    "which has some 28,000 ports of its own; in a script no `noConnectionReuse`",
    _WORSE, _WORSE, _WORSE,
)  # fmt: skip
GENERATOR_HELD_BACK = Doubt(
    "the generator was held back by a CPU limit in {share:.0%} of time",
    "more CPU in `generator.resources`, or no limit",
    _WORSE, _WORSE, _WORSE,
)  # fmt: skip
GENERATOR_LATE = Doubt(
    "the generator sent 1 of 100 requests {late:.3g} ms late or more, which their response times "
    "include (p99 {p99:.3g} ms)",
    "more generators, a lower rate, or a node of their own for them",
    _NONE, _WORSE, _NONE,
)  # fmt: skip
# As a generator that is late by itself: a server may do more, and answer sooner.
THINKERS = Doubt(
    "users who think keep some {taken:,.0f} of the {users:,d} connections, so that others may have "
    "waited for one: that is the load's limit and not the server's",
    "a higher `maxConnections`, or shorter think times in the scenario",
    _WORSE, _WORSE, _WORSE,
)  # fmt: skip
LITTLES_LAW = Doubt(
    "Little's law does not hold: {connections:d} connections, but throughput times mean response "
    "{time} is {busy:.2f}",
    "report it: the generator did not keep its connections busy",
    _EITHER, _EITHER, _NONE,
)  # fmt: skip
RATE_NOT_HELD = Doubt(
    "the rate was not held: {due:,.1f} requests/s were due instead of {rate:,}",
    "more generators, or a lower rate",
)
# At the full rate the server would have been slower, if it had kept up at all.
SESSIONS_TOO_LONG = Doubt(
    "users of a session think for {behind:.3g} s before a request on average, too long for "
    "{seconds:.3g} s at a rate: the server was asked for less than that at a time",
    "a longer `duration` (`step` of a search or of stairs), shorter think times in the scenario, "
    "or a closed load",
    _BETTER, _BETTER, _BETTER,
)  # fmt: skip
WARMING_UP = Doubt(
    "the first {seconds:d} s were {by:.0%} slower than the rest: make the warm-up longer",
    "make `warmup` longer",
    _WORSE, _WORSE, _WORSE,
)  # fmt: skip
SLOWING_DOWN = Doubt(
    "the first {seconds:d} s were {by:.0%} faster than the rest: server, database or machine "
    "slowed down",
    "look what grows while it is measured: a table, a cache, memory, heat",
    _BETTER, _BETTER, _BETTER,
)  # fmt: skip

# Of tiers and nodes. A tier has the limit that the run gave it: the figures are those of this
# set-up.
TIER_HELD_BACK = Doubt(
    "{tier} was held back by its CPU limit in {share:.0%} of time: the figures are about it as "
    "much as about the server",
    "give the tier more CPU in `topology`, or none if it is what you ask about",
    _NONE, _NONE, _NONE,
)  # fmt: skip
STOLEN_TIME = Doubt(
    "the hypervisor took {share:.1%} of the CPU time of node {node}",
    "a machine with CPUs of its own, or more repetitions at another time",
    _WORSE, _WORSE, _WORSE,
)  # fmt: skip
# A closed load whose generator stood still gave the server a rest.
STOOD_STILL = Doubt(
    "node {node} stood still for {seconds:.1f} s: nothing was seen to run there",
    "see what froze or paused the machine: a snapshot or a move of a virtual machine, a disk that "
    "does not answer, memory that is used up ([nodes that stand still]"
    "(real-cluster.md#nodes-that-stand-still))",
    _WORSE, _EITHER, _EITHER,
)  # fmt: skip
NEIGHBOURS = Doubt(
    "others used at least {cores:.2g} of the {cpus:d} CPUs of node {node} meanwhile",
    "nodes that are there for benchmarks alone ([placement](real-cluster.md)), or another time",
    _WORSE, _WORSE, _WORSE,
)  # fmt: skip
# What it sends may leave others less to do as well: of rows that it deletes.
STILL_DRIVEN = Doubt(
    "a generator of an earlier trial may have sent requests meanwhile: its node {node} does not "
    "answer",
    "see what has become of the node; where it is gone for good, `kubectl delete node` between "
    "trials takes its pods off the list ([nodes that stand still]"
    "(real-cluster.md#nodes-that-stand-still))",
)
TRACKING_FULL = Doubt(
    "connection tracking of node {node} was {share:.0%} full, {lost:,d} packets dropped",
    "`keepAlive: true`, since each connection keeps its entry for a while after its end; more "
    "nodes, of which each has a table; or a higher `net.netfilter.nf_conntrack_max` on them "
    "([connections](measurement.md#connections))",
    _WORSE, _WORSE, _WORSE,
)  # fmt: skip
TRACKING_LOST = Doubt(
    "connection tracking of node {node} dropped {lost:,d} packets",
    "as where it was full; what else is on the node may have been it as well",
    _WORSE, _WORSE, _WORSE,
)  # fmt: skip
OTHER_NODES = Doubt(
    "{what} ran on {nodes}, and on {before} in trial {trial}: what differs may be the nodes",
    "see why the pod could not be placed where it was before; nodes that are there for benchmarks "
    "alone, or more repetitions",
)
OTHER_MACHINE = Doubt(
    "node {node} has {cpu}, and had {before} in trial {trial}: what differs may be the machine",
    "machines of one kind that stay: a spot or repaired one comes back under its name with other "
    "CPUs",
)

# Of what the cluster made of the pods. Another container may take from the figures, or give to
# them: a proxy keeps connections open, and asks again.
CONTAINER_ADDED = Doubt(
    "the cluster added {containers} to the pod of {what}: what it does there is in the figures",
    "have whatever adds it leave the run's namespace, or these pods, alone ([what clusters add]"
    "(real-cluster.md#what-clusters-add-to-pods))",
)
LIMIT_ADDED = Doubt(
    "the cluster limits {what} to {limits}, and nobody asked for a limit",
    "set `resources` of that part in the run, or have the namespace's LimitRange set no default "
    "([what clusters add](real-cluster.md#what-clusters-add-to-pods))",
    _WORSE, _WORSE, _WORSE,
)  # fmt: skip
OTHER_RESOURCES = Doubt(
    "the cluster gave {what} {has}, and {asked} was asked for",
    "see which admission rule, autoscaler or LimitRange changes `resources` in the namespace",
)
IMAGE_REPLACED = Doubt(
    "the cluster runs {image} for {what}, and {asked} was asked for",
    "name the image as the cluster has it, in the run or in `images` of the chart, or by its "
    "digest",
)

# Of a Service that Laptime did not deploy. What its users get is what was measured: a bound that it
# kept while it was warm it kept. Others can only have taken something away from it.
NOT_FRESH = Doubt(
    "Service {service} was there before: neither its pods nor its data were brought to the same "
    "state before the trial",
    "compare it with servers that Laptime deploys only with that in mind; an `image` has a fresh "
    "pod for each trial",
    _NONE, _NONE, _NONE,
)  # fmt: skip
SHARED = Doubt(
    "whether others used Service {service} at the same time is not known",
    "drive it when nobody else does, or a copy of it",
    _WORSE, _WORSE, _WORSE,
)  # fmt: skip

# Of all repetitions together. The interval, or that there is none, says that it was measured once;
# percentiles look at each repetition's answers.
MEASURED_ONCE = Doubt(
    "measured only once, so nobody knows how far chance goes: no interval",
    "at least 2 `repetitions`, better 5",
    _NONE, _NONE, _NONE,
)  # fmt: skip
FEW_ANSWERS = Doubt(
    "only {answers:d} answers: p99.9 needs at least {needed:d}",
    "a longer load, or more repetitions",
    _NONE, _NONE, _NONE,
)  # fmt: skip
# Percentiles are kept in the result of each trial: only their merged curve is incomplete.
TIMES_MISSING = Doubt(
    "the response times of {missing:d} of {trials:d} trials are missing",
    "a shorter load, fewer names of requests in a script, or a run of fewer trials: what is too "
    "large is not stored, and of one run no more than 128 MiB are kept",
    _NONE, _NONE, _NONE,
)  # fmt: skip
# Each figure is as good as it was measured; what is not known is a difference, which has no figure.
ASKED_AGAIN = Doubt(
    "asked for again (`retry`), and so measured at another time than {others}: how they compare is "
    "not known",
    "measure all of them anew, as a run of another name (`--name`), where their difference counts",
    _NONE, _NONE, _NONE,
)  # fmt: skip
# Those that are left are not a fair sample: why the others are gone may have to do with it. Errors
# are counted of all of them, and what makes one invalid says itself whether it bears on them.
INVALID_REPETITIONS = Doubt(
    "{invalid:d} of {trials:d} repetitions {are} invalid and left out",
    "the reasons of these trials say it",
    errors=_NONE,
)
TRIALS_FAILED = Doubt("{failed:d} of {planned:d} trials failed", "the reason of the row says it")
TRIALS_LOST = Doubt(
    "{failed:d} of {planned:d} trials were lost to {whose}, not to the server",
    "look at what took them ([whose fault it was](measurement.md#whose-fault-it-was))",
)
MORE_DOUBTS = Doubt("{others:d} more doubts, which the trials say", "look at the trials")

DOUBTS = tuple(one for one in globals().copy().values() if isinstance(one, Doubt))


def doubt(reason: str) -> Doubt | None:
    """Return the doubt that a reason is; None for one of another version."""
    return next((one for one in DOUBTS if one.said(reason)), None)


def in_repetitions(reasons: Sequence[str], repetitions: int) -> Said:
    """Return what some of so many repetitions say, a reason of one kind each, in one."""
    of = f"{len(reasons)} of {repetitions} repetition{'' if repetitions == 1 else 's'}"
    unlike = _OF_THE_FIRST if len(set(reasons)) > 1 else ""
    return Said(f"{reasons[0]} (in {of}{unlike})")


def leaves_end_open(reason: str) -> bool:
    """Return whether a reason says that a search found no rate that the server itself missed."""
    return any(one.said(reason) for one in (NO_UPPER_END, SEARCHED_LATE, THINKERS))


def not_steady(reason: str) -> bool:
    """Return whether a reason says that a trial began slower or faster than it went on."""
    return WARMING_UP.said(reason) or SLOWING_DOWN.said(reason)


def share_of_repetitions(reason: str) -> float:
    """Return in which share (0 to 1) of its repetitions a row says a reason."""
    found = _SHARE.search(reason)
    return int(found[1]) / max(1, int(found[2])) if found else 1.0


def without_share(reason: str) -> str:
    """Return a reason of a row as one of its trials says it."""
    return _SHARE.sub("", reason)


def drift(reason: str) -> float:
    """Return by how much a trial's beginning differed from the rest (a share), by what says so.

    0 of all other reasons.
    """
    found = _DRIFT.search(reason) if not_steady(reason) else None
    return int(found[1]) / 100 if found else 0.0


def added_limit(reason: str, what: str) -> str | None:
    """Return to how much CPU a reason says that the cluster limits a part of a run.

    `what` is how reasons call the part; None: it says no such thing. It is a quantity: `500m`.
    """
    known = LIMIT_ADDED.about(reason)
    if known is None:
        return None
    _, limits, of = known
    found = _LIMIT_OF_CPU.search(limits) if of == what else None
    return found and found[1]


def made_otherwise(reason: str) -> bool:
    """Return whether a reason says that nodes or pods were others than those of other trials.

    Or others than was asked for.
    """
    of_it = OTHER_NODES, OTHER_MACHINE, CONTAINER_ADDED, OTHER_RESOURCES, IMAGE_REPLACED
    return any(one.said(reason) for one in of_it)


def of_the_load(reason: str) -> bool:
    """Return whether a reason says that the generator did not send what a script asked for.

    That is nobody's doing whom a threshold is about. All else its author knows as well as k6 does.
    """
    of_it = ITERATIONS_DROPPED, GENERATOR_BUSY, NO_PORT, GENERATOR_HELD_BACK
    return any(one.said(reason) for one in of_it)


def about(reason: str) -> tuple[str, ...]:
    """Return what a reason is about: the same for those that differ in their figures alone."""
    every = (one.about(reason) for one in DOUBTS)
    known = next((one for one in every if one is not None), None)
    if known is not None:
        return known
    # Nobody knows its names; what is quoted is one.
    quoted = _OF_OLDER_VERSIONS.sub(lambda part: part[0] if "'" in part[0] else "0", reason)
    return (quoted,)


def bearing(reason: str, metric: Metric) -> Bearing:
    """Return how a reason for doubt bears on a figure."""
    found = doubt(reason)
    return Bearing.EITHER if found is None else found.bears_on(metric)
