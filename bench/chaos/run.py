"""Faults injected into real runs, of many kinds, each at a moment drawn before anything is run.

    make chaos [FAULTS=12] [ONLY=etcd-killed,kubelet-frozen] [PART=1/2]

The plan has each kind of plan.py eight times or more; its seed is the last commit that changed
what is run here (SUBJECT). Each fault has a short run of its own on an embedded cluster
(`laptime-chaos`), with the real operator, whose connection to the API server goes through a proxy.
The n-th write of the run says when the fault comes; how many an undisturbed run has is counted
first. What shows that it was felt is printed, and how long after its end the operator did something
again. Afterwards nothing may be stuck, lost, counted twice, wrong, blamed on a server, or left
behind (judge.py).

What was done on that commit is in journal.jsonl beside this file, which is committed, so that any
machine can go on. Exits with 0 when the whole plan was done and passed, with 1 when anything
failed, and with 75 when nothing did and there is more to do. PART=1/2 beside PART=2/2 does the plan
on two clusters at a time, each with every second fault; both write into one journal.
"""

from __future__ import annotations

import argparse
import json
import os
import ssl
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from chaos import node
from chaos.acts import ACTS, is_over
from chaos.judge import Counted, Facts, problems
from chaos.plan import BY_NAME, Family, Fault, Kind, fault, plan
from chaos.proxy import Proxy
from chaos.record import Entry, Record, standing, table
from chaos.tampering import Killed
from laptime_proof.journal import commit_of
from laptime_proof.runner import NOT_JUDGED_CODE

from laptime.manifests.result import RESULT_KEY
from laptime.measure.generator import GeneratorResult, document_of, parse_generator_output
from laptime.report.archive import stored_in
from laptime_cluster.certificates import certificate_path, key_path
from laptime_cluster.layout import API_ADDRESS, API_PORT

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("LAPTIME_CACHE") or Path.home() / ".cache" / "laptime")
JOURNAL = Path(__file__).with_name("journal.jsonl")
SUBJECT = (
    *("operator", "charts", "crds", "agent", "images", "cluster", "bench/chaos"),
    *(
        f":(top,exclude,glob)**/{name}"
        for name in ("tests/**", "testdata/**", "*_test.go", "*.md", "*.jsonl")
    ),
)
"""What a fault is injected into, and what judges it; without its tests and words."""
PROXY_PORT = 7443
DEADLINE_SECONDS = 300.0
"""So long after a fault's end the run may take."""
LEFT_SECONDS = 60.0
UNDISTURBED = Kind("undisturbed", Family.CLUSTER, "nothing is done to it")
SERVERS = (("axum", "axum-sqlx"), ("sync", "fastapi-sync"))
REPETITIONS = 2
LOAD = "closed"
CONNECTIONS = 4


def manifest(name: str) -> dict[str, Any]:
    """Return the run of a fault."""
    load = {
        "name": LOAD,
        "closed": {"connections": CONNECTIONS, "duration": "1s", "keepAlive": False},
        "warmup": "500ms",
    }
    return {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": name},
        "spec": {
            "scenario": "users",
            "servers": [{"name": one, "preset": preset} for one, preset in SERVERS],
            "topology": {"postgres": {}, "pgbouncer": {}, "haproxy": {}},
            "loads": [load],
            "repetitions": REPETITIONS,
        },
    }


PLANNED = frozenset(
    (name, LOAD, repetition) for name, _ in SERVERS for repetition in range(1, REPETITIONS + 1)
)


def main() -> int:
    """Go on with the plan; print what became of it so far."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--faults", type=int, default=10_000, help="how many now; all that are left"
    )
    parser.add_argument("--only", default="", help="kinds, with commas")
    parser.add_argument("--part", default="1/1", help="2/3: of three faults the second one")
    parser.add_argument("--table", action="store_true", help="print what was done so far")
    asked = parser.parse_args()
    commit = commit_of(ROOT, *SUBJECT)
    mine, parts = (int(one) for one in asked.part.split("/"))
    only = {name for name in asked.only.split(",") if name}
    if unknown := only - set(BY_NAME):
        parser.error(f"there is no kind {', '.join(unknown)}; there are: {', '.join(BY_NAME)}")
    record = Record(JOURNAL)
    faults = plan(commit.rstrip("+"))
    # Where files differ from the commit, what was done before was done on something else.
    counts = not commit.endswith("+")
    if counts and not asked.table:
        record.keep_only(commit)
    before = record.entries(commit) if counts else []
    broken = False
    if not asked.table:
        todo = [one for one in faults if not only or one.kind.name in only][mine - 1 :: parts]
        try:
            sitting(commit, todo, asked.faults, record if counts else None, before)
        except node.ClusterBroken as error:
            broken = True
            print(f"this sitting ends: {error}", file=sys.stderr)
    done = record.entries(commit) if counts else before
    found = standing(faults, done)
    for line in table(found):
        print(line)
    if broken or any(one.failed for one in found.values()):
        return 1
    left = sum(not one.done for one in found.values())
    if left:
        print(f"{left} faults of {len(found)} are left: make chaos goes on with them")
        return NOT_JUDGED_CODE
    return 0


def sitting(
    commit: str, faults: list[Fault], most: int, record: Record | None, entries: list[Entry]
) -> None:
    """Inject faults until all are done, or so many were injected; add what became of them.

    `entries` are those of before, and get the new ones, as `record` does where there is one.

    Raises:
        ClusterBroken: the cluster did not come back, or was never well.
    """
    proxy = between()
    injected = 0
    try:
        prepare(proxy)
        writes = undisturbed(proxy)
        for planned in faults:
            while injected < most:
                (mine,) = standing([planned], entries).values()
                if mine.done:
                    break
                seed = commit.rstrip("+")
                drawn = fault(seed, planned.kind, planned.number, tried=len(mine.entries))
                entry = inject(commit, drawn, proxy, writes)
                entries.append(entry)
                if record:
                    record.add(entry)
                injected += 1
    finally:
        proxy.close()


def between() -> Proxy:
    """Return the proxy before the API server, which shows the API server's own certificate."""
    inside = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    inside.load_cert_chain(certificate_path("apiserver"), key_path("apiserver"))
    outside = ssl.create_default_context(cafile=str(certificate_path("ca")))
    return Proxy((API_ADDRESS, PROXY_PORT), (API_ADDRESS, API_PORT), inside, outside)


def prepare(proxy: Proxy) -> None:
    """Make the namespace of the runs, and have the operator ask the proxy."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    node.ask("POST", "/api/v1/namespaces", {"metadata": {"name": node.NAMESPACE, "labels": labels}})
    env = [
        {"name": "KUBERNETES_SERVICE_HOST", "value": API_ADDRESS},
        {"name": "KUBERNETES_SERVICE_PORT", "value": str(PROXY_PORT)},
    ]
    template = {"spec": {"containers": [{"name": "operator", "env": env}]}}
    node.ask(
        "PATCH",
        f"/apis/apps/v1/namespaces/{node.SYSTEM}/deployments/laptime-operator",
        {"spec": {"template": template}},
        "application/strategic-merge-patch+json",
    )
    node.heal()
    node.wait("the operator's first request", lambda: proxy.seen)


def undisturbed(proxy: Proxy) -> int:
    """Make a run to which nothing is done; return how many writes it needs.

    Raises:
        ClusterBroken: not even that one came through.
    """
    proxy.begin()
    began = time.monotonic()
    with node.generator_logs() as logs:
        start(UNDISTURBED.name)
        facts = facts_of(UNDISTURBED.name, proxy, logs, time.monotonic() + DEADLINE_SECONDS)
    if wrong := problems(UNDISTURBED, facts):
        raise node.ClusterBroken(f"an undisturbed run: {'; '.join(wrong)}")
    print(f"undisturbed: {proxy.writes} writes, {time.monotonic() - began:.0f} s", flush=True)
    return proxy.writes


def start(run: str) -> None:
    """Apply a run."""
    node.ask("POST", node.RUNS, manifest(run))


def inject(commit: str, chosen: Fault, proxy: Proxy, writes: int) -> Entry:
    """Make a run, do the fault to it, and judge it."""
    node.heal()
    proxy.begin()
    run = chosen.name
    write = chosen.write(writes)
    struck = threading.Event()
    at: list[float] = []

    def strike() -> None:
        at.append(time.monotonic())
        struck.set()

    def kill() -> None:
        if pid := node.operator_pid():
            node.kill(pid)
            strike()

    if chosen.kind.name.startswith("killed-"):
        proxy.tamper = Killed(write, kill, after="after" in chosen.kind.name)
    else:
        proxy.when(write, strike)
    began, wall = time.monotonic(), time.time()
    with node.generator_logs() as logs:
        start(run)
        bit = stage = ""
        end = began + DEADLINE_SECONDS
        while not struck.wait(0.5) and time.monotonic() < end and not is_over(run):
            pass
        ended = time.monotonic()
        if struck.is_set():
            stage = proxy.stage
            time.sleep(chosen.delay_seconds)
            over = is_over(run)
            bit = "" if over else ACTS[chosen.kind.name](chosen, proxy, run)
            ended = at[0] if chosen.kind.name.startswith("killed-") else time.monotonic()
        facts = facts_of(run, proxy, logs, time.monotonic() + DEADLINE_SECONDS)
        over_at = time.monotonic()
    wrong = problems(chosen.kind, facts)
    if wrong:
        keep(facts, wrong)
    again = [one.at for one in proxy.seen if one.at > ended and one.status < 300 and one.writes]
    recovery = max(0.0, min(again, default=ended) - ended)
    entry = Entry(
        commit, chosen.kind.name, chosen.number, wall, write, stage, bit, recovery,
        over_at - began, wrong,
    )  # fmt: skip
    said = bit or "DID NOT BITE"
    print(
        f"{run}, write {write} of {writes}, {stage or 'not begun'}: {said}; "
        f"recovered after {recovery:.1f} s, {entry.seconds:.0f} s in all; "
        f"{'; '.join(wrong) if wrong else 'came through'}",
        flush=True,
    )
    return entry


def keep(facts: Facts, wrong: list[str]) -> None:
    """Keep all that is known of a run that did not come through, to be looked at afterwards."""
    file = CACHE / "chaos" / f"{facts.run}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"problems": wrong, **asdict(facts)}, default=sorted, indent=1))


def facts_of(run: str, proxy: Proxy, logs: Any, deadline: float) -> Facts:
    """Wait for the end of a run; return all there is to know of it, once it is deleted."""
    while not is_over(run) and time.monotonic() < deadline:
        time.sleep(0.3)
    ended = is_over(run)
    archive = {f"ConfigMap/{run}-results"}
    left = until_gone(run, archive)
    found = node.ask("GET", f"{node.RUNS}/{run}") or {}
    path = f"/api/v1/namespaces/{node.NAMESPACE}/configmaps?labelSelector=laptime.dev/run={run}"
    stored = stored_in(node.ask("GET", path)["items"])
    results = [
        json.loads(one["data"][RESULT_KEY])
        for one in stored.objects
        if RESULT_KEY in (one.get("data") or {})
    ]
    counted, printed = {}, {}
    for pod, log in logs().items():
        result = parse_generator_output(log)
        if isinstance(result, GeneratorResult):
            phase = result.phases["measured"]
            attempt = pod.rpartition("-")[0]
            counted[attempt] = Counted(phase.requests, sum(phase.errors.values()))
            printed[attempt] = document_of(result)["phases"]
    created = [
        one.name
        for one in proxy.seen
        if one.verb == "create" and one.path.endswith("/jobs") and one.status == 201
        if "-trial-" in one.name
    ]
    node.ask("DELETE", f"{node.RUNS}/{run}")
    return Facts(
        run=run,
        planned=PLANNED,
        connections=CONNECTIONS,
        status=found.get("status") or {},
        ended=ended,
        results=results,
        printed=printed,
        counted=counted,
        created=created,
        left=frozenset(left),
        left_after_deletion=frozenset(until_gone(run, set())),
    )


def until_gone(run: str, but: set[str]) -> set[str]:
    """Wait until nothing is left of a run but this; return what else is left after a minute."""
    end = time.monotonic() + LEFT_SECONDS
    while (left := node.left_of(run) - but) and time.monotonic() < end:
        time.sleep(0.5)
    return left


if __name__ == "__main__":
    sys.exit(main())
