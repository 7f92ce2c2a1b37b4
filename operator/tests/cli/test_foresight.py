"""What `validate --server` says of what a run would find."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from laptime.analysis import wording
from laptime.api.results import TrialLength
from tests.report.sample import SPEC, recorded

from .test_report_commands import Laptime, store

RUNS = "/apis/laptime.dev/v1alpha1/namespaces/team/benchmarkruns"


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    spec: dict[str, Any] = {
        "scenario": SPEC.scenario,
        "servers": [{"name": name, "preset": "axum-sqlx"} for name in ("first", "second", "third")],
        "loads": [
            {"name": "closed", "closed": {"connections": 4, "duration": "6s", "keepAlive": True}}
        ],
        "topology": {"postgres": {}},
        "repetitions": 5,
    }
    file = tmp_path / "run.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "laptime.dev/v1alpha1",
                "kind": "BenchmarkRun",
                "metadata": {"name": "next"},
                "spec": spec,
            }
        )
    )
    return file


def said(laptime: Laptime, file: Path, kubeconfig: Path) -> str:
    code, out, err = laptime("validate", file, "--server", "-n", "team", "--kubeconfig", kubeconfig)
    assert (code, err) == (0, "")
    return " ".join(out.split())


def test_it_says_what_more_repetitions_would_find(
    fake: Any, laptime: Laptime, asked: Path, kubeconfig: Path
) -> None:
    store(fake)
    text = said(laptime, asked, kubeconfig)
    found = re.search(
        r"By the noise of demo \(([\d.]+)% between repetitions\), 5 repetitions find differences "
        r"in throughput four times of five from ([\d.]+)% on \(about \S+\), 10 do from ([\d.]+)% "
        r"on \(about \S+\), 20 do from ([\d.]+)% on \(about \S+\)\.",
        text,
    )
    assert found, text
    noise, few, more, most = map(float, found.groups())
    assert noise > 0
    assert few > more > most > 0


def test_where_no_run_tells_it_says_so(
    fake: Any, laptime: Laptime, asked: Path, kubeconfig: Path
) -> None:
    fake.put(f"{RUNS}/failed", {"spec": SPEC.to_wire(), "status": {"state": "Failed"}})
    fake.put(f"{RUNS}/queued", {"spec": SPEC.to_wire()})
    fake.put(f"{RUNS}/newer", {"spec": SPEC.to_wire(), "status": {"state": "OfANewerVersion"}})
    assert (
        "How small a difference in throughput it would find is not known yet: that is reckoned "
        "from an earlier run of two servers or more, in two repetitions or more, and namespace "
        "team has none among its newest 30."
    ) in said(laptime, asked, kubeconfig)


def changed(file: Path, **spec: Any) -> Path:
    document = yaml.safe_load(file.read_text())
    document["spec"].update(spec)
    file.write_text(yaml.safe_dump(document))
    return file


def test_noise_of_other_work_is_taken_where_there_is_no_other_and_called_that(
    fake: Any, laptime: Laptime, asked: Path, kubeconfig: Path
) -> None:
    store(fake)
    text = said(laptime, changed(asked, placement="isolated"), kubeconfig)
    assert "between repetitions, of other work, pairing or placement)" in text


def test_of_a_single_repetition_it_says_that_it_finds_nothing(
    fake: Any, laptime: Laptime, asked: Path, kubeconfig: Path
) -> None:
    store(fake)
    text = said(laptime, changed(asked, repetitions=1), kubeconfig)
    assert "1 repetition finds no difference in throughput, 3 repetitions find differences" in text


def test_no_more_repetitions_are_named_than_a_run_may_have_trials(
    fake: Any, laptime: Laptime, asked: Path, kubeconfig: Path
) -> None:
    store(fake)
    servers = [{"name": f"s{number}", "preset": "axum-sqlx"} for number in range(20)]
    text = said(laptime, changed(asked, servers=servers, repetitions=40), kubeconfig)
    assert re.search(r", 40 repetitions find .*, 80 do from [^,]*\.$", text), text


def test_of_searches_nothing_is_promised(
    fake: Any, laptime: Laptime, asked: Path, kubeconfig: Path
) -> None:
    store(fake)
    search = {"name": "limit", "saturation": {"p99": "50ms", "errorRate": 0.001}}
    text = said(laptime, changed(asked, loads=[search]), kubeconfig)
    assert text.endswith("Of limit nothing is said: a search, or a script.")
    assert "By the noise" not in text


def test_only_names_are_listed_and_the_newest_runs_read(
    fake: Any, laptime: Laptime, asked: Path, kubeconfig: Path
) -> None:
    for number in range(45):
        created = f"2026-11-{1 + number // 24:02}T{number % 24:02}:00:00Z"
        metadata = {"creationTimestamp": created}
        # The newest one has the name that comes first.
        fake.put(f"{RUNS}/old-{44 - number:02}", {"metadata": metadata, "spec": SPEC.to_wire()})
    said(laptime, asked, kubeconfig)
    lists = [
        (path, accepted)
        for (method, path), accepted in zip(fake.requests, fake.accepted, strict=True)
        if method == "GET" and path.partition("?")[0] == RUNS
    ]
    assert lists
    assert all("PartialObjectMetadataList" in accepted for _, accepted in lists)
    assert all("limit=1000" in path for path, _ in lists)
    read = [path for method, path in fake.requests if method == "GET" and "/old-" in path]
    assert read == [f"{RUNS}/old-{number:02}" for number in range(30)]


def test_who_may_not_list_runs_is_told_the_rest(
    fake: Any,
    laptime: Laptime,
    asked: Path,
    kubeconfig: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = fake.answer

    def refuse(method: str, path: str, body: bytes) -> tuple[int, Any]:
        if method == "GET" and path.partition("?")[0] == RUNS:
            return 403, {"kind": "Status", "message": "benchmarkruns is forbidden"}
        found: tuple[int, Any] = answer(method, path, body)
        return found

    monkeypatch.setattr(fake, "answer", refuse)
    text = said(laptime, asked, kubeconfig)
    assert "It takes 15 trials" in text
    assert "What it would find is not known: " in text
    assert "forbidden" in text


def test_runs_that_cannot_be_read_are_left_out_and_named(
    fake: Any, laptime: Laptime, asked: Path, kubeconfig: Path
) -> None:
    fake.put(f"{RUNS}/newer", {"spec": SPEC.to_wire(), "status": {"state": "Hibernating"}})
    store(fake)
    fake.put("/api/v1/namespaces/team/configmaps/demo-results", {"data": {"results.json": "[]"}})
    text = said(laptime, asked, kubeconfig)
    assert "Results that could not be read: Cannot read the results of demo: " in text


def advised(load: str) -> TrialLength:
    return TrialLength(
        load=load,
        seconds=8,
        repetitions=6,
        instead_of_seconds=10,
        instead_of_repetitions=5,
        time_share=0.7,
    )


def test_what_the_last_run_says_of_the_length_of_trials_is_said_before_the_next(
    fake: Any, laptime: Laptime, asked: Path, kubeconfig: Path
) -> None:
    report, payloads = recorded(small=True)
    load = report.spec.loads[0]
    length = advised(load.name)
    summary = replace(report.summary, trial_lengths=(length,))
    store(fake, recording=(replace(report, summary=summary), payloads))
    servers = [{"name": f"s{number}", "preset": "axum-sqlx"} for number in range(5)]
    like = changed(asked, servers=servers, loads=[load.to_wire()])
    sentence = f"By demo, under {load.name}: {wording.trial_length(length)}."
    assert sentence in said(laptime, like, kubeconfig)
    # It is about trials of that length, in as many repetitions.
    assert "trials of" not in said(laptime, changed(like, repetitions=6), kubeconfig)
    other = {**load.to_wire(), "closed": {"connections": 10, "duration": "60s"}}
    assert "trials of" not in said(laptime, changed(like, repetitions=5, loads=[other]), kubeconfig)


def test_trials_are_not_to_be_shorter_where_response_times_are_asked_for_this_time(
    fake: Any, laptime: Laptime, asked: Path, kubeconfig: Path
) -> None:
    report, payloads = recorded(small=True)
    load = report.spec.loads[0]
    summary = replace(report.summary, trial_lengths=(advised(load.name),))
    store(fake, recording=(replace(report, summary=summary), payloads))
    servers = [{"name": f"s{number}", "preset": "axum-sqlx"} for number in range(5)]
    like = changed(asked, servers=servers, loads=[load.to_wire()])
    objective = {"server": "s0", "load": load.name, "metric": "errorRate", "atMost": "0.1"}
    assert "trials of" in said(laptime, changed(like, objectives=[objective]), kubeconfig)
    objective |= {"metric": "p99", "atMost": "5ms"}
    assert "trials of" not in said(laptime, changed(like, objectives=[objective]), kubeconfig)


def test_of_each_load_the_newest_run_that_had_it_is_asked(
    fake: Any, laptime: Laptime, asked: Path, kubeconfig: Path
) -> None:
    report, payloads = recorded(small=True)
    load = report.spec.loads[0]
    summary = replace(report.summary, trial_lengths=(advised(load.name),))
    with_control = report.spec.model_copy(update={"control": True}).with_control()
    advice = replace(report, spec=with_control, summary=summary)
    store(fake, "a-first", recording=(advice, payloads))
    longer = load.model_copy(
        update={"closed": load.closed and load.closed.model_copy(update={"duration": "77s"})}
    )
    store(
        fake,
        "b-later",
        recording=(
            replace(report, spec=report.spec.model_copy(update={"loads": [longer]})),
            payloads,
        ),
    )
    for name, day in (("a-first", 1), ("b-later", 2)):
        run = fake.objects[f"{RUNS}/{name}"]
        run["metadata"]["creationTimestamp"] = f"2026-11-{day:02}T00:00:00Z"
    servers = [{"name": f"s{number}", "preset": "axum-sqlx"} for number in range(5)]
    like = changed(asked, servers=servers, loads=[load.to_wire()])
    assert f"By a-first, under {load.name}: trials of" in said(laptime, like, kubeconfig)
