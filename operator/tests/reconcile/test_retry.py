"""Failed trials of a run that is over are asked for again; what was measured stays."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from random import Random
from typing import Any

from laptime.api.status import RunStatus
from laptime.reconcile.stages.situation import Situation

from .api_server import ApiServer
from .nodes import Nodes, working
from .test_controller import operating, reason, run_manifest, state, until
from .test_decide import spec_of
from .test_folding import single, stored
from .test_pause import patched
from .world import World

SPEC = spec_of(2, 1, 1, seed=1).to_wire()


def results(server: ApiServer) -> dict[str, dict[str, Any]]:
    """Return what is stored of each server's trial."""
    found = [
        json.loads(one["data"]["result.json"])
        for one in stored(server, "again").objects
        if "result.json" in (one.get("data") or {})
    ]
    assert len(found) == len({one["trial"] for one in found})
    return {one["server"]: one for one in found}


def end_in_results(server: ApiServer) -> tuple[str, str]:
    """Return the state and the reason with which the run ended, as results.json has them."""
    run = json.loads(stored(server, "again").files["results.json"])["run"]
    return run["state"], run["reason"]


def folded(server: ApiServer) -> bool:
    run = server.get("BenchmarkRun", "default", "again") or {}
    storage = (run.get("status") or {}).get("storage") or {}
    return bool(storage.get("folded")) and not single(server, "again")


async def failed_once(server: ApiServer, nodes: Nodes) -> None:
    nodes.failing = {"s1"}
    server.add({**run_manifest("again"), "spec": SPEC})
    await until(lambda: state(server, "again") == "Failed" and folded(server), 20)
    outcomes = {name: one["outcome"] for name, one in results(server).items()}
    assert outcomes == {"s0": "Measured", "s1": "Failed"}
    nodes.failing = set()


async def test_only_the_failed_trials_are_measured_again() -> None:
    server = ApiServer()
    async with operating(server), working(server) as nodes:
        await failed_once(server, nodes)
        measured = results(server)["s0"]
        patched(server, "again", retry=1)
        await until(lambda: state(server, "again") == "Succeeded" and folded(server), 20)
    after = results(server)
    assert after["s0"] == measured
    assert (after["s1"]["outcome"], after["s1"]["retry"]) == ("Measured", 1)
    again = after["s1"]["trial"]
    assert nodes.generators_started.count(again) == 2
    assert len(nodes.generators_started) == 3
    run = server.get("BenchmarkRun", "default", "again") or {}
    assert [row["trials"] for row in run["status"]["results"]] == [1, 1]
    assert json.loads(stored(server, "again").files["results.json"])["rows"][1]["trials"] == 1


async def test_a_run_that_was_restored_from_a_backup_names_the_results_that_are_its_own() -> None:
    """With the status of the run that it was, whose results are nobody's now."""
    server = ApiServer()
    async with operating(server), working(server) as nodes:
        await failed_once(server, nodes)
        before = deepcopy(server.get("BenchmarkRun", "default", "again") or {})
        theirs = before["status"]["resultsConfigMap"]
        kept = deepcopy(server.get("ConfigMap", "default", theirs) or {})
        server.remove("BenchmarkRun", "default", "again")
        del kept["metadata"]["ownerReferences"]
        server.add(kept)
        server.add({**before, "metadata": {"name": "again"}})
        patched(server, "again", retry=1)
        await until(lambda: state(server, "again") == "Succeeded", 20)
    status = (server.get("BenchmarkRun", "default", "again") or {})["status"]
    assert status["resultsConfigMap"] != theirs
    assert [row["failedTrials"] for row in status["results"]] == [0, 0]


async def test_what_is_stored_says_how_a_retried_run_ended_that_measured_nothing_more() -> None:
    server = ApiServer()
    async with operating(server), working(server) as nodes:
        await failed_once(server, nodes)
        assert end_in_results(server)[0] == "Failed"
        patched(server, "again", retry=1)
        await until(lambda: state(server, "again") not in ("Failed", ""), 20)
        patched(server, "again", retry=1, cancel=True)
        await until(lambda: state(server, "again") == "Cancelled" and folded(server), 20)
    assert end_in_results(server) == ("Cancelled", reason(server, "again", "Succeeded"))


async def test_an_operator_that_is_started_anew_in_the_middle_measures_nothing_twice() -> None:
    server = ApiServer()
    async with operating(server), working(server) as nodes:
        await failed_once(server, nodes)
    async with operating(server), working(server) as second:
        patched(server, "again", retry=1)
        await until(lambda: len(single(server, "again")) > 0, 20)
    async with operating(server), working(server) as third:
        await until(lambda: state(server, "again") == "Succeeded", 20)
    assert len(second.generators_started + third.generators_started) == 1
    assert results(server)["s1"]["outcome"] == "Measured"


def test_an_attempt_knows_for_which_retry_it_is() -> None:
    world = World(spec_of(1, 1, 1), Random(1))
    run = replace(world.run, status=RunStatus(retries=2))
    situation = Situation(run, world.observe(), world.context, world.now)
    assert situation.attempt(situation.trials[0]).retry == 2


async def test_a_log_that_breaks_off_in_the_middle_of_a_result_costs_no_attempt() -> None:
    server = ApiServer(breaking_off=True)
    server.add({**run_manifest("again"), "spec": SPEC})
    async with operating(server), working(server) as nodes:
        await until(lambda: state(server, "again") == "Succeeded", 20)
    assert len(nodes.generators_started) == 2
    assert {one["attempt"] for one in results(server).values()} == {1}


async def test_a_run_of_which_nothing_failed_stays_over() -> None:
    server = ApiServer()
    server.add(run_manifest("again"))
    async with operating(server), working(server) as nodes:
        await until(lambda: state(server, "again") == "Succeeded", 20)
        patched(server, "again", retry=1)

        def seen() -> bool:
            run = server.get("BenchmarkRun", "default", "again") or {}
            return bool(run["status"].get("retries") == 1)

        await until(seen)
        assert state(server, "again") == "Succeeded"
        assert reason(server, "again", "Succeeded") == "Completed"
    assert len(nodes.generators_started) == 1
