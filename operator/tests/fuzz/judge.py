"""What becomes of a generated spec: refused with a message, or run to its end."""

from __future__ import annotations

import hashlib
import time
import traceback
import warnings
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import ConditionType, State
from laptime.catalog import presets
from laptime.cli.own_schemas import as_taken, violations
from laptime.manifests.context import Network, Target
from laptime.manifests.placement import PlacedPart, Placement
from laptime.reconcile.views import PodView, TargetView
from tests.fuzz.specs import make, spoil
from tests.reconcile.world import IMAGES, World

MOST_TRIALS = 60
_SPOILED_SHARE = 0.3
_LARGE_EVERY = 100
_LARGE_TRIALS = 150
_FIRST_PASSES, _PASSES_OF_A_TRIAL = 1000, 60


@dataclass(frozen=True)
class Case:
    """One spec, which its number and the seed make again."""

    number: int
    spec: dict[str, Any]
    seed: int


@dataclass(frozen=True)
class Outcome:
    """What became of it; an empty `problem` means that it is as it should be."""

    number: int
    refused: str = ""
    state: str = ""
    trials: int = 0
    passes: int = 0
    seconds: float = 0.0
    problem: str = ""


def case(seed: str, number: int) -> Case:
    """Return the case of a number; the same for the same seed."""
    digest = hashlib.sha256(f"{seed}:{number}".encode()).digest()
    own = int.from_bytes(digest[:8])
    random = Random(own)
    large = number % _LARGE_EVERY == _LARGE_EVERY - 1
    spec = make(random, _LARGE_TRIALS if large else random.randint(2, MOST_TRIALS))
    if not large and random.random() < _SPOILED_SHARE:
        spec = spoil(spec, random)
    return Case(number, spec, own)


def manifest_of(one: Case) -> dict[str, Any]:
    """Return the manifest that a person would apply."""
    return {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": f"fuzz-{one.number}"},
        "spec": one.spec,
    }


def judge(one: Case) -> Outcome:
    """Return what becomes of a spec, as the command line and the decision logic have it."""
    began = time.monotonic()
    try:
        outcome = _judge(one)
    except Exception:
        outcome = Outcome(one.number, problem=traceback.format_exc())
    return replace(outcome, seconds=time.monotonic() - began)


def _judge(one: Case) -> Outcome:
    said, checked = violations(manifest_of(one))
    assert checked, "the rules of the schema cannot be evaluated here"
    if said:
        return Outcome(one.number, refused="; ".join(said))
    spec = BenchmarkRunSpec.model_validate(as_taken(manifest_of(one))["spec"])
    random = Random(one.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        return _run(one, spec, random)


def _placement(spec: BenchmarkRunSpec) -> Placement | None:
    """Return a placement of the name that a spec says, which is there."""
    if spec.placement is None:
        return None
    rules = {"nodeSelector": {"laptime": "yes"}, "priorityClassName": "benchmarks"}
    return Placement.from_wire(spec.placement, dict.fromkeys(PlacedPart, rules))


def _run(one: Case, spec: BenchmarkRunSpec, random: Random) -> Outcome:
    world = World(
        spec,
        random,
        faults=random.choice([0.0, 0.0, 0.0, 0.01, 0.05]),
        watched=random.random() < 0.8,
        network=random.choice([None, Network()]),
        # Every preset of the catalogue has an image, as in the chart.
        images=replace(IMAGES, servers={name: name for name in presets()}, delay="delay"),
        placement=_placement(spec),
    )
    world.targets = {
        server.name: TargetView(
            server.service.name,
            "uid/1",
            Target(server.service.port or 80, 8080, {"app": "there"}),
            pods=(PodView("there-1", "", world.now, uid="uid-1", phase="Running", ready=True),),
        )
        for server in world.run.spec.servers
        if server.service is not None
    }
    world.kills = random.choice([0.0, 0.05])
    if any(load.script for load in spec.loads):
        world.script = random.choice([None, {"iterations": 5, "checks": {"a\x1b": {"failed": 1}}}])
    most = len(spec.servers) * len(spec.loads) * spec.most_repetitions
    longest = _FIRST_PASSES + _PASSES_OF_A_TRIAL * most
    while not (world.run.status.state and world.run.status.state.terminal):
        if world.passes >= longest:
            said = f"{world.run.status.progress} {world.run.status.conditions}"
            return Outcome(one.number, problem=f"hangs after {world.passes} passes: {said}")
        world.step()
        world.advance()
        if world.run.status.state is State.SUSPENDED:
            # It stays so until somebody takes it back.
            resumed = world.run.spec.model_copy(update={"suspend": False})
            world.run = replace(world.run, spec=resumed)
    state = world.run.status.state
    succeeded = world.run.status.condition(ConditionType.SUCCEEDED)
    problem = ""
    if succeeded is None or not (succeeded.reason and succeeded.message):
        problem = f"{state} without a word: {succeeded}"
    written = world.results_written
    if len(written) != len(set(written)):
        problem = "a trial was stored twice"
    if world.deployments or world.jobs or world.services or world.policies or world.secret:
        problem = "something is left behind"
    return Outcome(
        one.number, state=str(state), trials=len(written), passes=world.passes, problem=problem
    )
