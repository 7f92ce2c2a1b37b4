"""A TestRun of k6-operator becomes a run, and what of it is left out is said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import scenarios
from laptime.cli.init.testrun import translated
from laptime.cli.main import run_command
from laptime.cli.mistakes import Mistake
from laptime.cli.own_schemas import violations
from laptime.plan import load_problems

WHOLE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: crocodile}
data: {main.js: "export default function () {}"}
---
apiVersion: k6.io/v1alpha1
kind: TestRun
metadata: {name: sample, namespace: shop, labels: {a: b}}
spec:
  parallelism: 4
  separate: true
  cleanup: post
  script: {configMap: {name: crocodile, file: main.js}}
  arguments: >-
    --out json=x.json -e A=1 --env "BASE_URL=https://shop.example/api" --tag testid=7 -u10
    --duration 30s --rps=100 --http-debug=full --insecure-skip-tls-verify -e HOME=/root
  runner:
    image: registry.example/k6:1
    imagePullSecrets: [{name: regcred}, {name: mirror}, {name: regcred}]
    env:
      - {name: K6_VUS, value: "20"}
      - {name: K6_OUT, value: cloud}
      - {name: WORD, value: hello}
      - {name: SECRET, valueFrom: {secretKeyRef: {name: a, key: b}}}
    resources: {limits: {cpu: 200m, memory: 1Gi}, requests: {cpu: 100m}}
    nodeSelector: {"a": "b\\nspec: {}"}
    novelty: 1
"""


def k6_operators(**spec: Any) -> dict[str, Any]:
    script = {"configMap": {"name": "crocodile"}}
    return {"metadata": {"name": "sample"}, "spec": {"script": script, **spec}}


def script_of(document: dict[str, Any]) -> dict[str, Any]:
    script: dict[str, Any] = translated(document).run["spec"]["loads"][0]["script"]
    return script


def test_a_whole_testrun(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "testrun.yaml"
    file.write_text(WHOLE)
    assert run_command(["init", "--from", str(file)]) == 0
    printed = capsys.readouterr().out
    config_map, run = yaml.safe_load_all(printed)
    assert config_map["data"] == {"main.js": "export default function () {}"}
    assert violations(run) == ([], True)
    assert run["metadata"] == {"name": "sample", "namespace": "shop"}
    assert run["spec"]["generator"] == {
        "parallelism": 4,
        "resources": {"cpu": "200m", "memory": "1Gi"},
    }
    assert run["spec"]["imagePullSecrets"] == [{"name": "regcred"}, {"name": "mirror"}]
    assert "imagePullSecrets:" not in "".join(one for one in printed.splitlines() if one[:1] == "#")
    assert run["spec"]["loads"][0]["script"] == {
        "configMap": "crocodile",
        "key": "main.js",
        "duration": "5m",
        "env": [
            {"name": "A", "value": "1"},
            {"name": "BASE_URL", "value": "$(TARGET)/api"},
            {"name": "WORD", "value": "hello"},
        ],
        "options": {"vus": 10, "duration": "30s", "rate": 400},
        "tags": [{"name": "testid", "value": "7"}],
    }
    said = [line for line in printed.splitlines() if line.startswith("# - ")]
    for left_out in (
        *("spec.separate", "spec.cleanup", "--out=json=x.json", "--http-debug=full"),
        *("--insecure-skip-tls-verify", "HOME", "K6_VUS", "K6_OUT", "SECRET"),
        *("runner.image", "runner.nodeSelector", "runner.novelty", "requests.cpu"),
        *("https://shop.example/api", "spec.servers", "spec.scenario", "warmup"),
    ):
        assert any(left_out in line for line in said), left_out


@pytest.mark.parametrize(("parallelism", "rate"), [(None, 100), (1, 100), (4, 400), (90, 9000)])
def test_rps_is_that_of_each_runner_and_the_rate_that_of_all_generators(
    parallelism: int | None, rate: int
) -> None:
    by_argument = k6_operators(arguments="--rps 100", parallelism=parallelism)
    by_variable = k6_operators(
        runner={"env": [{"name": "K6_RPS", "value": "100"}]}, parallelism=parallelism
    )
    for document in (by_argument, by_variable):
        assert script_of(document)["options"] == {"rate": rate}
        said = any(
            "options.rate: whether 100 requests" in one for one in translated(document).to_write
        )
        assert said is (rate != 100)


@pytest.mark.parametrize("where", ["volumeClaim", "localFile"])
def test_a_script_that_is_in_no_config_map_says_how_to_make_one(where: str) -> None:
    source = {"name": "disk", "file": "dir/x.js"} if where == "volumeClaim" else "/test/x.js"
    found = translated(k6_operators(script={where: source}))
    assert found.run["spec"]["loads"][0]["script"]["key"] == "x.js"
    assert any("--from-file=x.js" in line for line in found.left_out)


def test_a_script_in_the_runners_image_is_taken_from_there() -> None:
    runner = {"image": "registry.example/k6-shop:1.2"}
    found = translated(k6_operators(script={"localFile": "/test/shop/x.js"}, runner=runner))
    script = found.run["spec"]["loads"][0]["script"]
    assert {key: script[key] for key in ("image", "folder", "key")} == {
        "image": "registry.example/k6-shop:1.2",
        "folder": "/test/shop",
        "key": "x.js",
    }
    assert violations(found.run) == ([], True)
    (said,) = [line for line in found.left_out if "runner.image" in line]
    assert "the script is taken from it" in said
    assert any("name a folder above it" in line for line in found.to_write)


def test_stages_and_variables_of_k6() -> None:
    env = [{"name": "K6_STAGES", "value": "10s:5,1m:0"}, {"name": "K6_ITERATIONS", "value": "ten"}]
    found = translated(k6_operators(runner={"env": env}))
    assert found.run["spec"]["loads"][0]["script"]["options"] == {
        "stages": [{"duration": "10s", "target": 5}, {"duration": "1m", "target": 0}]
    }
    assert any("K6_ITERATIONS=ten" in line for line in found.left_out)
    said = script_of(k6_operators(arguments="--stage 10s:5 -s 20s:7"))["options"]["stages"]
    assert [one["target"] for one in said] == [5, 7]


@pytest.mark.parametrize(
    ("arguments", "duration"),
    [
        ("--duration 10m", "600s"),
        ("--stage 4m:10 --stage 4m500ms:0", "481s"),
        ("--duration 4m", "5m"),
        ("--vus 3", "5m"),
    ],
)
def test_a_script_may_take_as_long_as_the_options_of_its_testrun(
    arguments: str, duration: str
) -> None:
    found = translated(k6_operators(arguments=arguments)).run
    assert found["spec"]["loads"][0]["script"]["duration"] == duration
    spec = BenchmarkRunSpec.model_validate(found["spec"])
    assert load_problems(spec, scenarios()["hello"]) == []


@pytest.mark.parametrize(
    ("address", "service"),
    [
        ("http://cart", {"name": "cart", "port": 80}),
        ("http://cart:8080/api", {"name": "cart", "port": 8080}),
        ("http://cart.shop.svc.cluster.local:8080", {"name": "cart", "port": 8080}),
        ("http://cart.shop", {"name": "cart", "port": 80}),
        ("http://cart.other.svc", None),
        ("http://shop.example", None),
        ("http://localhost:8080", None),
        ("http://10.0.0.1", None),
        ("http://cart:many", None),
        ("https://cart", None),
    ],
)
def test_an_address_of_a_service_of_the_namespace_is_the_server(
    address: str, service: dict[str, Any] | None
) -> None:
    document = k6_operators(arguments=f"-e URL={address}")
    document["metadata"]["namespace"] = "shop"
    found = translated(document).run
    (server,) = found["spec"]["servers"]
    assert server.get("service") == service
    assert violations(found) == ([], True)


def test_all_variables_with_the_servers_host_lead_to_the_server() -> None:
    said = "-e API=http://cart:80/v1 -e CHAT=ws://cart:80/chat -e GRPC=cart:80 -e OTHER=cart"
    found = translated(k6_operators(arguments=said))
    values = [one["value"] for one in found.run["spec"]["loads"][0]["script"]["env"]]
    host = "$(TARGET_HOST)"
    assert values == ["$(TARGET)/v1", f"ws://{host}/chat", host, "cart"]
    assert violations(found.run) == ([], True)


def test_of_several_addresses_none_is_taken_for_the_servers() -> None:
    found = translated(k6_operators(arguments="-e A=http://a -e B=http://b"))
    values = [one["value"] for one in found.run["spec"]["loads"][0]["script"]["env"]]
    assert values == ["http://a", "http://b"]
    assert any("$(TARGET)" in line for line in found.to_write)


def test_more_pull_secrets_than_a_run_has() -> None:
    many = [{"name": f"s{number}"} for number in range(10)]
    found = translated(k6_operators(runner={"imagePullSecrets": many}))
    assert found.run["spec"]["imagePullSecrets"] == many[:8]
    assert any("at most 8; left out are s8, s9" in line for line in found.left_out)


def test_more_generators_than_a_run_has() -> None:
    found = translated(k6_operators(parallelism=40))
    assert found.run["spec"]["generator"]["parallelism"] == 16
    assert any("spec.parallelism: 40" in line for line in found.left_out)
    assert "generator" not in translated(k6_operators(parallelism=1)).run["spec"]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"runner": {"env": ["A=1"]}}, "spec.runner.env[0]: write name: and value:, not 'A=1'"),
        ({"runner": {"env": {"A": "1"}}}, "spec.runner.env: write a list, not {'A': '1'}"),
        ({"script": "a.js"}, "spec.script: write fields, such as name: x, not 'a.js'"),
        ({"script": {"configMap": "mine"}}, "spec.script.configMap: write fields"),
        ({"script": {"volumeClaim": "mine"}}, "spec.script.volumeClaim: write fields"),
        ({"runner": "k6"}, "spec.runner: write fields"),
        ({"runner": {"imagePullSecrets": ["regcred"]}}, "spec.runner.imagePullSecrets[0]: write"),
        ({"runner": {"resources": {"limits": 1}}}, "spec.runner.resources.limits: write fields"),
    ],
)
def test_a_field_that_is_another_kind_of_value_is_a_mistake(
    spec: dict[str, Any], said: str
) -> None:
    with pytest.raises(Mistake, match=re.escape(said)):
        translated(k6_operators(**spec))
    with pytest.raises(Mistake, match=r"^spec: write fields"):
        translated({"spec": ["script"]})


def test_what_cannot_be_read_is_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Mistake, match="cannot be read"):
        translated(k6_operators(arguments="-e 'A"))
    with pytest.raises(Mistake, match=r"no spec\.script"):
        translated(k6_operators(script={}))
    file = tmp_path / "none.yaml"
    file.write_text("kind: TestRun\napiVersion: tests.example/v1\n")
    assert run_command(["init", "--from", str(file)]) == 1
    assert "is not an OpenAPI 3 document" in capsys.readouterr().err
