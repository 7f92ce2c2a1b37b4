"""results.json: its schema says all of it, and what was written can be read back."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
import yaml

from laptime.analysis import summarise
from laptime.analysis.two_runs import Change, compare_runs
from laptime.api.metrics import Metric
from laptime.api.results import Outcome
from laptime.catalog import Scenario, scenarios
from laptime.plan import Trial
from laptime.report import (
    Report,
    ResultsError,
    read_results,
    result_files,
    results_schema,
    to_csv,
    to_json,
    to_markdown,
)
from laptime.report.html import manifest_to_repeat, to_html
from tests.analysis import runs
from tests.report.html_tree import parse
from tests.report.sample import SPEC, recorded

REPORT, _ = recorded()
TEXT = to_json(REPORT)
SCHEMA = results_schema()


def resolve(node: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in node:
        return resolve(SCHEMA["$defs"][node["$ref"].rsplit("/", 1)[1]])
    for choice in node.get("anyOf", []):
        if choice.get("type") != "null":
            return resolve(choice)
    return node


def undescribed(value: Any, node: dict[str, Any], path: str = "$") -> list[str]:
    """Return the fields of a document that its schema does not know."""
    node = resolve(node)
    if isinstance(value, list):
        return [one for item in value for one in undescribed(item, node["items"], f"{path}[]")]
    if not isinstance(value, dict):
        return []
    if "additionalProperties" in node and "properties" not in node:
        return []
    known = node.get("properties", {})
    missing = [f"{path}.{key}" for key in value if key not in known]
    return missing + [
        one
        for key in value.keys() & known.keys()
        for one in undescribed(value[key], known[key], f"{path}.{key}")
    ]


def test_the_schema_is_one_and_the_document_meets_it() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(json.loads(TEXT), SCHEMA)


def test_the_schema_describes_every_field_that_is_written() -> None:
    assert undescribed(json.loads(TEXT), SCHEMA) == []
    assert undescribed({"rows": [{"nonsense": 1}]}, SCHEMA) == ["$.rows[].nonsense"]


def test_the_schema_refuses_what_is_wrong() -> None:
    document = json.loads(TEXT)
    document["rows"][0]["requestsPerSecond"]["value"] = "many"
    with pytest.raises(jsonschema.ValidationError, match="many"):
        jsonschema.validate(document, SCHEMA)


def test_what_was_written_is_read_back_as_it_was() -> None:
    results, report = read_results(TEXT)
    assert report == REPORT
    assert results.left_out == []
    assert to_markdown(report) == to_markdown(REPORT)


def test_what_a_newer_version_says_of_published_figures_is_kept() -> None:
    document = json.loads(result_files(
        "demo", "team", SPEC, 1, REPORT.summary, REPORT.trials, scenarios()["users"]
    )["results.json"])  # fmt: skip
    for published in (document["published"], document["scenario"]["document"]["published"]):
        published["measurements"][0]["ofNewer"] = {"a": 1}
    newer = json.dumps(document)
    jsonschema.validate(document, SCHEMA)
    _, report = read_results(newer)
    assert json.loads(to_json(report)) == json.loads(newer)
    assert "## As published" in to_markdown(report)


def test_a_document_whose_trials_were_left_out_says_when_it_was_measured() -> None:
    begin, end = REPORT.measured_between
    assert begin
    assert end
    smaller, spec = to_json(REPORT, max_bytes=100), SPEC
    for _ in range(2):
        results, report = read_results(smaller, spec)
        assert "trials" in results.left_out
        assert f"- Measured from {begin} to {end}\n" in to_markdown(report)
        smaller = to_json(report, max_bytes=100)


def test_a_document_whose_spec_was_left_out_takes_that_of_the_run() -> None:
    smallest = to_json(REPORT, max_bytes=100)
    results, report = read_results(smallest, SPEC)
    assert "spec" in results.left_out
    assert report.spec == SPEC
    with pytest.raises(ResultsError, match="spec was left out"):
        read_results(smallest)


def own_users() -> Scenario:
    """Return a scenario of a namespace that is called as one of Laptime's, and is other work."""
    ours = scenarios()["users"]
    request = ours.requests[0].model_copy(update={"path": "/other"})
    return ours.model_copy(update={"builtin": False, "published": None, "requests": [request]})


def stored(scenario: Scenario, max_bytes: int = 600_000) -> Report:
    """Return the report of a run on that scenario, as it is read back."""
    text = result_files("demo", "team", SPEC, 1, REPORT.summary, REPORT.trials, scenario)
    _, whole = read_results(text["results.json"])
    return read_results(to_json(whole, max_bytes))[1]


def test_a_scenario_that_was_left_out_is_not_taken_for_laptimes_of_that_name() -> None:
    own = own_users()
    assert own.hash != scenarios()["users"].hash
    text = to_json(stored(own))
    compact = len(json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False).encode())
    whole, smaller = stored(own), stored(own, compact - 10)
    assert (whole.left_out, smaller.left_out) == ((), ("scenario.document",))
    for report in (whole, smaller):
        assert report.published is None
        said = f"- Scenario: users, of namespace team, work {own.hash}; baseline: fastapi\n"
        assert said in to_markdown(report)
        assert "Same order as published" not in to_markdown(report)
    ours = stored(scenarios()["users"], compact - 10)
    assert ours.left_out == ("scenario.document",)
    assert ours.published == scenarios()["users"].published
    assert f"- Scenario: users, work {scenarios()['users'].hash};" in to_markdown(ours)


def test_the_version_that_measured_is_said_and_not_the_one_that_writes_the_page() -> None:
    document = json.loads(to_json(REPORT))
    _, report = read_results(json.dumps({**document, "laptimeVersion": "0.0.7"}))
    assert json.loads(to_json(report))["laptimeVersion"] == "0.0.7"
    assert "; Laptime 0.0.7\n" in to_markdown(report)
    shown = parse(to_html(report, {})).by_id("environment").text
    assert "Laptime0.0.7" in "".join(shown.split())


def test_the_manifest_to_repeat_says_that_its_scenario_is_not_there() -> None:
    own = own_users()
    report = stored(own)
    assert [one["kind"] for one in yaml.safe_load_all(manifest_to_repeat(report))] == [
        "BenchmarkScenario", "BenchmarkRun",
    ]  # fmt: skip
    assert not manifest_to_repeat(report).startswith("#")
    without = replace(report, scenario=None)
    text = manifest_to_repeat(without)
    assert f"# It needs scenario users as it was (work {own.hash})" in text
    assert "kubectl laptime report demo -n team --stored FOLDER" in text
    assert [one["kind"] for one in yaml.safe_load_all(text)] == ["BenchmarkRun"]
    ours = replace(without, scenario_builtin=True)
    assert not manifest_to_repeat(ours).startswith("#")
    # An older version did not say whose it is.
    assert manifest_to_repeat(replace(without, scenario_builtin=None)) == text
    older = replace(stored(scenarios()["users"]), scenario=None, scenario_builtin=None)
    assert not manifest_to_repeat(older).startswith("#")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "schemaVersion None"),
        ('{"schemaVersion": 3}', "schemaVersion 3, this version of Laptime reads 1 to 2"),
        ('{"schemaVersion": 1}', "laptimeVersion: Field required"),
    ],
)
def test_another_document_is_refused_with_a_reason(text: str, said: str) -> None:
    with pytest.raises(ResultsError, match=said):
        read_results(text)


def test_a_document_of_version_1_can_be_read() -> None:
    """There percentiles were of right answers alone, and an objective was met or not."""
    document = json.loads(TEXT)
    document["schemaVersion"] = 1
    document["objectives"] = [
        {
            "server": "axum", "load": "closed", "metric": "p99", "bound": "p99 at most 5ms",
            "measured": "1.2 ms", "met": False,
        }
    ]  # fmt: skip
    trial = next(one for one in document["trials"] if one["outcome"] == "Measured")
    trial["figures"] |= {"requests": 1000, "errors": 600}
    results, report = read_results(json.dumps(document))
    assert results.objectives[0].outcome is Outcome.MISSED
    figures = next(one.figures for one in report.trials if one.trial == trial["trial"])
    assert figures is not None
    assert figures.latency is None


def test_response_times_of_version_1_are_compared_only_where_all_answers_were_right() -> None:
    """9 of 1,009 requests failed: the p99 of the right answers is not that of all requests."""
    spec = runs.make_spec("a", loads=("open", "right"))
    times = (1000,) * 975 + (5000,) * 15 + (50_000,) * 10

    def script(trial: Trial) -> runs.Outcome:
        errors = 9 if trial.load == "open" else 0
        return runs.Outcome(100 + trial.repetition / 10, latencies=times, errors=errors)

    trials, results, payloads = runs.run(spec, script)
    summary = summarise(spec, trials, results, payloads, None, {})
    text = to_json(Report("demo", "team", spec, 1, summary, results))
    before = json.loads(text)
    before["schemaVersion"] = 1
    for one in (*before["rows"], *(trial["figures"] for trial in before["trials"])):
        # As it was found then: the 99th percentile of 1,000 right answers.
        one["latency"]["p99Seconds"] = 0.005
        one.pop("latencyFigures", None)
    _, earlier = read_results(json.dumps(before))
    _, later = read_results(text)
    compared = compare_runs(spec, earlier.trials, later.trials)
    changes = {(one.load, one.metric): one.change for one in compared}
    for metric in (Metric.P50, Metric.P99):
        assert changes["open", metric] is Change.NOT_KNOWN
        assert changes["right", metric] is Change.NONE_FOUND
    assert changes["open", Metric.REQUESTS_PER_SECOND] is Change.NONE_FOUND
    assert "| a (baseline) | 1 | 100 (100 to 100) | - | - | - | 45 (0.892%) |" in to_markdown(
        earlier
    )


@pytest.mark.parametrize(
    "errors",
    [(9, 9, 9, 9, 1009), (0, 9, 9, 0, 0)],
    ids=["one-silent", "some-clean"],
)
def test_a_server_of_version_1_with_wrong_answers_is_not_compared_by_the_rest_of_its_repetitions(
    errors: tuple[int, ...],
) -> None:
    """Those are the best of them, or the silent ones, and nobody knows the others."""
    spec = runs.make_spec("a", repetitions=5)
    times = (1000,) * 975 + (5000,) * 15 + (50_000,) * 10

    def measured(*errors: int) -> str:
        def script(trial: Trial) -> runs.Outcome:
            wrong = errors[trial.repetition - 1]
            right = times[: len(times) + 9 - wrong]
            return runs.Outcome(len(right) / 10, latencies=right, errors=wrong)

        trials, results, payloads = runs.run(spec, script)
        summary = summarise(spec, trials, results, payloads, None, {})
        return to_json(Report("demo", "team", spec, 1, summary, results))

    before = json.loads(measured(*errors)) | {"schemaVersion": 1}
    _, earlier = read_results(json.dumps(before))
    _, later = read_results(measured(0, 0, 0, 0, 0))
    for before_it, after_it in ((earlier, later), (later, earlier)):
        compared = compare_runs(spec, before_it.trials, after_it.trials)
        changes = {one.change for one in compared if one.metric.is_latency}
        assert changes == {Change.NOT_KNOWN}


def test_csv_has_the_figures_of_the_rows_with_all_digits() -> None:
    lines = list(csv.DictReader(io.StringIO(to_csv(REPORT.summary.rows))))
    assert len(lines) == len(REPORT.summary.rows)
    for line, row in zip(lines, REPORT.summary.rows, strict=True):
        assert (line["server"], line["load"]) == (row.server, row.load)
        if row.requests_per_second is None or row.latency is None:
            assert line["requests_per_second"] == line["p99_seconds"] == ""
            continue
        assert float(line["requests_per_second"]) == row.requests_per_second.value
        p99 = row.response_time(Metric.P99)
        assert p99 is not None
        assert float(line["p99_seconds"]) == (p99.seconds.value if p99.seconds else math.inf)
        if row.uncorrected_latency is None or row.lateness_p99_seconds is None:
            assert row.load == "closed"
            assert line["uncorrected_p99_seconds"] == line["lateness_p99_seconds"] == ""
        else:
            _, sent = row.due_and_sent(Metric.P99)
            assert sent is not None
            for end, part in (("", "value"), ("_low", "low"), ("_high", "high")):
                wanted = getattr(sent.seconds, part) if sent.seconds else math.inf
                assert float(line[f"uncorrected_p99_seconds{end}"]) == wanted
            assert float(line["lateness_p99_seconds"]) == row.lateness_p99_seconds
        if row.saturation is None:
            assert row.load != "limit"
            assert line["saturation_low_rate"] == line["saturation_breaking_rate"] == ""
        else:
            assert float(line["saturation_low_rate"]) == row.saturation.low_rate
            assert float(line["saturation_high_rate"]) == row.saturation.high_rate
            assert float(line["saturation_breaking_rate"]) == row.saturation.breaking_rate


def test_csv_has_times_from_due_and_from_sent_only_where_both_are_of_one_kind() -> None:
    row = next(one for one in REPORT.summary.rows if (one.server, one.load) == ("axum", "open"))
    (line,) = csv.DictReader(io.StringIO(to_csv([row])))
    assert line["uncorrected_p99_seconds"] == line["p99_seconds"]
    assert line["uncorrected_p99_seconds_high"] == line["p99_seconds_high"]
    # As an older version has stored it: its times from sent are of all repetitions together.
    before = row.model_copy(update={"uncorrected_figures": None})
    (line,) = csv.DictReader(io.StringIO(to_csv([before])))
    assert line["p99_seconds"] != line["uncorrected_p99_seconds"] == ""
    # What was too large for its figures has both together.
    (line,) = csv.DictReader(
        io.StringIO(to_csv([before.model_copy(update={"latency_figures": None})]))
    )
    assert row.uncorrected_latency is not None
    assert float(line["uncorrected_p99_seconds"]) == row.uncorrected_latency.p99_seconds
    assert float(line["p99_seconds"]) == row.uncorrected_latency.p99_seconds


def test_csv_holds_no_formula() -> None:
    row = REPORT.summary.rows[0].model_copy(update={"validity_reasons": ["=1+1", "two"]})
    (line,) = csv.DictReader(io.StringIO(to_csv([row])))
    assert line["validity_reasons"] == "'=1+1; two"
