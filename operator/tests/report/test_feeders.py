"""What feeders hold may be secret: it is in nothing that a run hands out, and named by its hash."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import Any

import pytest
import yaml

from laptime.catalog import Scenario, scenario_of, scenarios, stored_document, stored_text
from laptime.manifests.archive import archive_config_maps
from laptime.manifests.scenario import SCENARIO_KEY, read_scenario
from laptime.report import Report, ResultsError, read_results, result_files, to_markdown
from laptime.report.archive import pack, stored_in, unpack
from laptime.report.html import manifest_to_repeat, to_html
from tests.manifests.runs import context
from tests.report.html_tree import parse
from tests.report.sample import SPEC, recorded

TABLE = 'name,password\nada,"hunter, two"\nbob,swordfish\n'
TOKENS = ["token-one", "token-two", "token-three"]
SECRETS = ("hunter", "swordfish", *TOKENS)


def shop() -> Scenario:
    """Return a scenario of a namespace with secrets in a table and in a list."""
    document = stored_document(scenarios()["users"]) | {
        "name": "shop",
        "builtin": False,
        "feeders": [
            {"name": "people", "csv": {"text": TABLE}, "use": "once"},
            {"name": "token", "values": TOKENS},
            {"name": "n", "range": {"first": 1, "last": 9}},
        ],
    }
    return Scenario.model_validate(document)


@cache
def results_text() -> str:
    report, _ = recorded(small=True)
    spec = SPEC.model_copy(update={"scenario": "shop", "loads": SPEC.loads[:1], "objectives": []})
    files = result_files("demo", "team", spec, 1, report.summary, report.trials, shop())
    (text,) = files.values()
    return text


def stored(text: str) -> Report:
    return read_results(text)[1]


def test_results_and_reports_have_no_row_of_a_feeder() -> None:
    report = stored(results_text())
    for text in (results_text(), to_html(report, {}), to_markdown(report)):
        assert not [secret for secret in SECRETS if secret in text]
    kept = json.loads(results_text())["scenario"]
    assert kept["hash"] == shop().hash
    assert kept["feeders"] == [
        {
            "name": "people",
            "columns": ["name", "password"],
            "rows": 2,
            "sha256": hashlib.sha256(TABLE.encode()).hexdigest(),
        },
        {
            "name": "token",
            "columns": [],
            "rows": 3,
            "sha256": hashlib.sha256(b"token-one\ntoken-two\ntoken-three\n").hexdigest(),
        },
    ]
    assert kept["document"]["feeders"] == [
        {"name": "people", "csv": {}, "use": "once"},
        {"name": "token"},
        {"name": "n", "range": {"first": 1, "last": 9}},
    ]


def test_with_what_the_manifest_names_the_same_work_is_measured_again() -> None:
    text = manifest_to_repeat(stored(results_text()))
    document, run = yaml.safe_load_all(text)
    assert run["spec"]["scenario"] == "shop"
    named = {
        "people": f"people.csv, columns name, password; rows: 2; SHA-256: "
        f"{hashlib.sha256(TABLE.encode()).hexdigest()}",
        "token": "values; rows: 3; SHA-256 of a line each: ",
    }
    for feeder, said in named.items():
        assert f"# - {feeder}: {said}" in text
    assert "create configmap shop-tables -n team --from-file=people.csv\n" in text
    assert f"namespace team has scenario shop as it was (work {shop().hash}), " in text
    # As it is nothing would take it, and no other work would be measured.
    _, token, _ = document["spec"]["feeders"]
    assert token.pop("values") == []
    token["values"] = TOKENS
    again = scenario_of(document, {("shop-tables", "people.csv"): TABLE})
    assert again.hash == shop().hash


def test_the_page_says_that_the_manifest_needs_more() -> None:
    page = parse(to_html(stored(results_text()), {})).by_id("repeat")
    assert "With what its first lines name, this measures the same again" in page.text
    report, _ = recorded(small=True)
    assert "With what its" not in parse(to_html(report, {})).by_id("repeat").text


def test_results_of_an_older_version_are_shown_without_rows() -> None:
    document = json.loads(results_text())
    document["scenario"] = {"hash": shop().hash, "document": stored_document(shop())}
    report = stored(json.dumps(document))
    assert report.feeders == stored(results_text()).feeders
    assert not [secret for secret in SECRETS if secret in to_html(report, {})]
    document["scenario"]["document"]["feeders"][0]["csv"]["text"] = "no table"
    with pytest.raises(ResultsError, match="column 1 has no name of its own"):
        read_results(json.dumps(document))


def test_what_a_run_keeps_and_nobody_understands_is_refused_without_its_rows() -> None:
    """The words stand in the status: another version may keep fields that this one has not."""
    document = stored_document(shop())
    document["feeders"][1]["values"] = [*TOKENS, 7]
    document["feeders"][0]["ofNewer"] = "swordfish"
    document["feeders"][2] = "hunter"
    for text in (json.dumps(document), "swordfish"):
        with pytest.raises(ValueError, match="validation error") as refused:
            read_scenario(kept_by_a_run(text))
        assert not [secret for secret in SECRETS if secret in str(refused.value)]


def kept_by_a_run(text: str) -> dict[str, Any]:
    labels = {"laptime.dev/component": "scenario"}
    return {"metadata": {"name": "demo-scenario", "labels": labels}, "data": {SCENARIO_KEY: text}}


def test_a_run_keeps_all_of_its_scenario_and_hands_out_no_row() -> None:
    """`retry` measures the same work, whatever became of the scenario and its tables."""
    whole = kept_by_a_run(stored_text(shop()))
    (kept,) = unpack(pack({}, [whole])).objects
    assert read_scenario(kept) == shop()
    (handed_out,) = stored_in([whole]).objects
    assert not [secret for secret in SECRETS if secret in json.dumps(handed_out)]
    assert [one.name for one in read_scenario(handed_out).feeders] == ["people", "token", "n"]
    (unreadable,) = stored_in([kept_by_a_run('{"feeders": "swordfish"}')]).objects
    assert unreadable["data"] == {}
    users = kept_by_a_run(stored_text(scenarios()["users"]))
    assert stored_in([users]).objects == [users]


@pytest.mark.parametrize("packed", [True, False])
def test_results_that_an_older_version_stored_are_handed_out_without_rows(packed: bool) -> None:
    """In an archive, as version 2 stored them, or in a ConfigMap of their own."""
    document = json.loads(results_text())
    document["scenario"] = {"hash": shop().hash, "document": stored_document(shop())}

    def handed_out() -> str:
        files = {"results.json": json.dumps(document)}
        alone = {"metadata": {"name": "demo-results"}, "data": files}
        archive, _ = archive_config_maps(context(), pack(files, []))
        return stored_in([archive if packed else alone]).files["results.json"]

    text = handed_out()
    assert not [secret for secret in SECRETS if secret in text]
    now = json.loads(results_text())
    del now["scenario"]["builtin"]
    assert json.loads(text) == now
    assert stored(text).feeders == stored(results_text()).feeders
    # What cannot be read may hold anything.
    document["scenario"]["document"]["ofNewer"] = True
    assert json.loads(handed_out())["scenario"]["document"] is None
    document["scenario"]["document"] = stored_document(scenarios()["users"])
    assert handed_out() == json.dumps(document)
