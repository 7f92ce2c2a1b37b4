"""What a file given to `laptime run` may hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from laptime.cli.manifest_file import parse_manifest, read_manifest
from laptime.cli.mistakes import Mistake

RUN = "apiVersion: laptime.dev/v1alpha1\nkind: BenchmarkRun\nmetadata: {name: a}\nspec: {}\n"
SCENARIO = RUN.replace("BenchmarkRun", "BenchmarkScenario")
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: script}\n"


def test_one_run_with_its_config_map_and_empty_documents() -> None:
    manifest = parse_manifest(f"---\n---\n{CONFIG_MAP}---\n{RUN}---\n", "a.yaml")
    assert manifest.name == "a"
    assert manifest.namespace is None
    assert [found["metadata"]["name"] for found in manifest.config_maps] == ["script"]


def test_what_looks_like_a_date_is_the_text_that_kubectl_sends() -> None:
    env = "env: [{name: DAY, value: 2024-01-01}, {name: AT, value: 2024-01-01T10:00:00Z}]"
    text = RUN.replace("spec: {}", f"spec: {{servers: [{{name: a, image: a, {env}}}]}}")
    (server,) = parse_manifest(text, "a.yaml").run["spec"]["servers"]
    assert [one["value"] for one in server["env"]] == ["2024-01-01", "2024-01-01T10:00:00Z"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no BenchmarkRuns"),
        (f"{RUN}---\n{RUN.replace('name: a', 'name: b')}", "holds 2 BenchmarkRuns"),
        ("a: [\n", "a.yaml, line 2, column 1 is not YAML"),
        ("a: {b: c", "is not YAML"),
        (
            RUN.replace("spec: {}", "spec:\n  repetitions: 30\n  scenario: a\n  repetitions: 1"),
            "a.yaml, line 7, column 3 is not YAML: the key repetitions stands there twice",
        ),
        ('{"kind": "a", "kind": "b"}', "line 1, column 15 is not YAML: the key kind stands there"),
        ("just words", "has no kind"),
        ("- a\n", "has no kind"),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n", "use kubectl for anything else"),
        (RUN.replace("v1alpha1", "v2"), "laptime.dev/v2"),
        (RUN.replace("metadata: {name: a}\n", ""), "has no metadata.name"),
        (RUN.replace("{name: a}", "a"), "has no metadata.name"),
        # Of each the last alone would be in the cluster.
        (f"{RUN}---\n{RUN}", "a.yaml: BenchmarkRun a stands there twice: write it once"),
        (f"{CONFIG_MAP}---\n{RUN}---\n{CONFIG_MAP}", "a.yaml: ConfigMap script stands there"),
        (f"{SCENARIO}---\n{SCENARIO}---\n{RUN}", "a.yaml: BenchmarkScenario a stands there"),
        # All of them are applied in the namespace of the run.
        (
            f"{CONFIG_MAP}---\n{CONFIG_MAP.replace('{', '{namespace: x, ')}---\n{RUN}",
            "a.yaml: ConfigMap script stands there",
        ),
        (RUN.replace("{name: a}", "{name: 1}"), "the metadata.name of BenchmarkRun is 1, no text"),
        (RUN.replace("{name: a}", "{name: [a]}"), "the metadata.name of BenchmarkRun is ['a'], no"),
        (f"{CONFIG_MAP}data: {{a.csv: [x]}}\n", "ConfigMap script: data['a.csv'] is no text"),
        (f"{CONFIG_MAP}data: {{a.csv: 5}}\n", "ConfigMap script: data['a.csv'] is no text"),
        (f"{CONFIG_MAP}binaryData: {{a: 5}}\n", "ConfigMap script: binaryData['a'] is no text"),
        (f"{CONFIG_MAP}data: a.js\n", "ConfigMap script: its data are no texts by key"),
        (f"{CONFIG_MAP}data: [a.js]\n", "ConfigMap script: its data are no texts by key"),
        (f"{CONFIG_MAP}data: {{8080: a, '8080': b}}\n", "the key 8080 stands there twice"),
    ],
)
def test_mistakes_are_named(text: str, said: str) -> None:
    with pytest.raises(Mistake, match=re.escape(said)):
        parse_manifest(text, "a.yaml")


def test_a_config_map_may_be_empty() -> None:
    assert parse_manifest(f"{CONFIG_MAP}data:\n---\n{RUN}", "a.yaml").config_maps


def test_a_key_without_a_text_has_an_empty_one() -> None:
    text = f"{CONFIG_MAP}data:\n  a.js:\n---\n{RUN}"
    (config_map,) = parse_manifest(text, "a.yaml").config_maps
    assert config_map["data"] == {"a.js": ""}


def test_a_key_is_the_text_that_stands_there() -> None:
    text = f"{RUN}---\n{CONFIG_MAP}data: {{8080: a, on: b, 2024-01-01: c}}\n"
    (config_map,) = parse_manifest(text, "a.yaml").config_maps
    assert config_map["data"] == {"8080": "a", "on": "b", "2024-01-01": "c"}


def test_what_an_anchor_has_may_be_written_otherwise() -> None:
    servers = "[&one {name: a, preset: b}, &two {<<: *one, name: c}, {<<: *two, name: d}]"
    text = RUN.replace("spec: {}", f"spec: {{servers: {servers}}}")
    written = parse_manifest(text, "a.yaml").run["spec"]["servers"]
    assert written == [{"name": name, "preset": "b"} for name in ("a", "c", "d")]


@pytest.mark.parametrize("name", ["", "missing.yaml"])
def test_a_path_that_is_no_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(Mistake, match="Cannot read"):
        read_manifest(tmp_path / name)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "binary"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Mistake, match="not a text file"):
        read_manifest(path)
