"""The Jobs of trials and of checks, and the ConfigMaps of results."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from laptime.api.loads import Load, ThinkTime
from laptime.api.results import TrialOutcome, TrialResult
from laptime.catalog import Check, Request, Scenario, scenarios
from laptime.manifests.context import RunContext
from laptime.manifests.generator import deadline_seconds, trial_document, trial_job
from laptime.manifests.kept_scripts import kept_script_name
from laptime.manifests.objects import Manifest
from laptime.manifests.result import MAX_PAYLOAD_BYTES, result_config_map
from laptime.manifests.schema_query import SCHEMA_QUERY
from laptime.manifests.secret import secret_name
from laptime.manifests.tiers import tier_objects
from laptime.manifests.verifier import verify_job
from laptime.plan import Trial, plan_trials, seed_of, start_rate
from laptime.verification.verify import Task
from tests.manifests.runs import (
    PACKED,
    SCENARIO,
    SCRIPT,
    SPECS,
    context,
    environment,
    users_context,
)


def job(ctx: RunContext, load: str, server: str = "axum") -> Manifest:
    return trial_job(ctx, Trial("demo-trial-007", 7, server, load, 1))


def pod(manifest: Manifest) -> Manifest:
    found: Manifest = manifest["spec"]["template"]["spec"]
    return found


def document(ctx: RunContext, load: str) -> dict[str, Any]:
    (container,) = pod(job(ctx, load))["containers"]
    found: dict[str, Any] = json.loads(environment(container)["LAPTIME_TRIAL"])
    return found


def test_the_generator_is_told_the_trial() -> None:
    assert document(users_context(), "closed") == {
        "trial": "demo-trial-007",
        "target": "http://demo-haproxy:8002",
        "waitSeconds": 30,
        "requests": [
            {
                "name": "list",
                "method": "GET",
                "path": "/",
                "headers": {},
                "body": None,
                "expectStatus": 200,
                "check": "same",
            }
        ],
        "load": {
            "closed": {
                "connections": 10,
                "requests": 50000,
                "durationSeconds": None,
                "keepAlive": False,
            }
        },
        "warmupSeconds": 3,
        "timeoutSeconds": 30,
        "resetStatements": users_context().scenario.reset_statements,
        "schemaQuery": SCHEMA_QUERY,
    }


def test_answers_are_compared_in_the_loads_that_leave_the_rows_alone() -> None:
    create = {"name": "create", "method": "POST", "path": "/", "expectStatus": 201}
    scenario = Scenario.model_validate(
        {
            **SCENARIO.to_wire(),
            "requests": [{"name": "list", "path": "/"}, create],
            "checks": [{"name": "list", "path": "/", "expected": []}, {**create, "times": 1}],
        }
    )
    closed = {"connections": 2, "duration": "10s"}
    loads = [
        {"name": "both", "closed": closed},
        {"name": "read", "endpoints": ["list"], "closed": closed},
    ]
    ctx = context({**SPECS["direct"], "loads": loads}, scenario=scenario)
    asked = {load: document(ctx, load)["requests"][0]["check"] for load in ("both", "read")}
    assert asked == {"both": "nonEmpty", "read": "same"}


def test_random_arrivals_are_the_same_for_all_servers_of_a_repetition() -> None:
    ctx = context("several")

    def seed(trial: Trial) -> int:
        (k6,) = pod(trial_job(ctx, trial))["containers"]
        found: int = json.loads(environment(k6)["LAPTIME_TRIAL"])["seed"]
        return found

    first, second, third = (
        Trial(f"demo-trial-00{ordinal}", ordinal, "axum", "stairs", repetition)
        for ordinal, repetition in ((1, 1), (2, 1), (3, 2))
    )
    assert seed(first) == seed(second) != seed(third)


def test_a_load_says_how_often_each_request_comes_and_how_long_users_think() -> None:
    asked = document(context("several"), "mixed")["requests"]
    assert [(one["name"], one["weight"], one["thinkSeconds"]) for one in asked] == [
        ("list", 9, {"min": 0.5, "max": 2}),
    ]


def test_the_other_shapes() -> None:
    assert document(context(), "timed")["load"] == {
        "closed": {
            "connections": 2,
            "requests": None,
            "durationSeconds": 10,
            "keepAlive": True,
            "connectSeconds": 0.004,
        }
    }
    assert document(context(), "timed")["warmupSeconds"] == 0
    assert document(context(), "open")["load"] == {
        "open": {"rate": 1000, "durationSeconds": 30, "maxConnections": 1000, "keepAlive": True}
    }
    assert document(context(), "open")["timeoutSeconds"] == 45
    assert document(context("several"), "ramp")["load"] == {
        "ramp": {
            "from": 10,
            "to": 2000,
            "durationSeconds": 60,
            "maxConnections": 1000,
            "keepAlive": True,
        }
    }
    assert document(context("several"), "stairs")["load"] == {
        "stairs": {
            "steps": [
                {"rate": 100, "durationSeconds": 10},
                {"rate": 400, "durationSeconds": 60},
            ],
            "maxConnections": 50,
            "keepAlive": True,
            "arrivals": "poisson",
            "connectSeconds": 1.5,
        }
    }
    ctx = context("bare")
    search = job(ctx, "search", "own")
    (k6,) = pod(search)["containers"]
    asked = ctx.spec.load("search").saturation
    assert asked is not None
    trial = Trial("demo-trial-007", 7, "own", "search", 1)
    first = start_rate(asked, seed_of(ctx.spec, ctx.uid), trial)
    assert 50 <= first < 100
    assert json.loads(environment(k6)["LAPTIME_TRIAL"])["load"] == {
        "saturation": {
            "p99Seconds": 0.05,
            "errorRate": 0.001,
            "startRate": first,
            "maxRate": 100000,
            "stepSeconds": 5,
            "maxConnections": 1000,
            "keepAlive": True,
        }
    }
    # Each of its steps may take its time and the time-out of its last request, and then the server
    # may rest for two steps and until the last question is answered.
    assert search["spec"]["activeDeadlineSeconds"] >= 40 * (5 + 30 + 2 * 5 + 1 + 30)


@pytest.mark.parametrize("text", ["$(PGPASSWORD)", '"}\n', "'; drop table x; --", "/ü?a=$$b&c"])
def test_requests_reach_the_generator_as_they_are(text: str) -> None:
    request = Request(name="odd", path="/" + text, headers={"X-Odd": text}, body=text)
    ctx = context(scenario=SCENARIO.model_copy(update={"requests": [request]}))
    (seen,) = document(ctx, "closed")["requests"]
    assert (seen["path"], seen["headers"], seen["body"]) == ("/" + text, {"X-Odd": text}, text)


def script_job(**script: Any) -> Manifest:
    """Return the container of a trial with a script that is written like this."""
    load = {"name": "own", "script": {"configMap": "mine", **script}}
    ctx = context()
    spec = ctx.spec.model_copy(update={"loads": [Load.model_validate(load)]})
    (k6,) = pod(job(replace(ctx, spec=spec), "own"))["containers"]
    return k6  # type: ignore[no-any-return]


def test_a_script_gets_what_the_run_says_as_flags_of_k6() -> None:
    k6 = script_job(
        env=[
            {"name": "BASE_URL", "value": "$(TARGET)/api"},
            {"name": "TOKEN", "value": "--out=x $(PGPASSWORD) $$(TARGET)"},
            {"name": "SOCKET", "value": "ws://$(TARGET_HOST)/chat"},
            {"name": "EMPTY"},
        ],
        tags=[{"name": "team", "value": "shop"}],
        options={"vus": 5, "duration": "30s", "rate": 100},
        warmup="1m30s",
    )
    target = environment(k6)["TARGET"]
    assert target == "http://demo-haproxy:8002"
    assert k6["args"] == [
        "run",
        "--quiet",
        "--no-color",
        "--out",
        "laptime",
        f"--env=BASE_URL={target}/api",
        # Kubernetes must leave all that it would take for a variable of the container.
        f"--env=TOKEN=--out=x $$(PGPASSWORD) $${target}",
        "--env=SOCKET=ws://demo-haproxy:8002/chat",
        "--env=EMPTY=",
        "--tag=team=shop",
        "--vus=5",
        "--duration=30s",
        "--rps=100",
        "/scripts/script.js",
    ]
    assert environment(k6)["LAPTIME_WARMUP_SECONDS"] == "90"


def test_stages_and_iterations_of_a_script() -> None:
    stages = [{"duration": "10s", "target": 20}, {"duration": "1m", "target": 0}]
    assert script_job(options={"stages": stages})["args"][5:-1] == [
        "--stage=10s:20",
        "--stage=1m:0",
    ]
    assert script_job(options={"iterations": 7})["args"][5:-1] == ["--iterations=7"]


def test_a_script_without_more_words_is_run_as_it_is() -> None:
    k6 = script_job()
    assert k6["args"][5:] == ["/scripts/script.js"]
    assert "LAPTIME_WARMUP_SECONDS" not in environment(k6)


def test_a_trial_is_never_tried_again() -> None:
    manifest = job(context(), "closed")
    assert manifest["spec"]["backoffLimit"] == 0
    assert manifest["metadata"]["name"] == "demo-trial-007"
    assert pod(manifest)["restartPolicy"] == "Never"
    labels = manifest["spec"]["template"]["metadata"]["labels"]
    assert (labels["laptime.dev/server"], labels["laptime.dev/load"]) == ("axum", "closed")
    assert labels["laptime.dev/trial"] == "demo-trial-007"


def test_the_database_is_reset_before_each_trial() -> None:
    built_in = pod(job(context(), "closed"))
    assert "initContainers" not in built_in
    (k6,) = built_in["containers"]
    assert environment(k6)["DATABASE_URL"].endswith("@demo-postgres:5432/laptime")
    assert document(context(), "closed")["resetStatements"]
    # A user's script does not: a container before it does.
    prepare, _ = pod(job(context(), "own"))["initContainers"]
    # No psql, whose own commands would start programs.
    assert (prepare["command"], prepare["args"]) == (
        ["laptime"],
        ["prepare", "/etc/laptime/reset.json"],
    )
    assert environment(prepare)["DATABASE_URL"].endswith("@demo-postgres:5432/laptime")


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("part", ["reset", "warm"])
def test_the_database_is_reset_before_each_check(part: str, again: bool) -> None:
    """What the check of a server before has made, or a first one of its own, is in no one's way.

    Statements that only warm may define something, which is there in each trial.
    """
    ctx = context(scenario=preparing("TRUNCATE t;", part))
    checking = pod(verify_job(ctx, ctx.spec.server("axum"), again))
    (verify,) = checking["containers"]
    assert json.loads(environment(verify)["LAPTIME_VERIFY"])["reset"] == "/etc/laptime/reset.json"
    assert {"name": "sql", "mountPath": "/etc/laptime"} in verify["volumeMounts"]
    (volume,) = (one for one in checking["volumes"] if one["name"] == "sql")
    assert volume["configMap"]["name"] == "demo-postgres"
    assert environment(verify)["DATABASE_URL"].endswith("@demo-postgres:5432/laptime")
    # What a server before has set on its sessions goes as well.
    assert "PGBOUNCER_URL" in {one["name"] for one in verify["env"]}
    # A script is waited for by the same program, which touches no rows then.
    *_, wait = pod(job(ctx, "own"))["initContainers"]
    assert "reset" not in json.loads(environment(wait)["LAPTIME_VERIFY"])


def test_where_nothing_is_prepared_a_check_prepares_nothing() -> None:
    for ctx in (context(), context("bare")):
        for server in ctx.spec.servers:
            checking = pod(verify_job(ctx, server))
            (verify,) = checking["containers"]
            assert "reset" not in json.loads(environment(verify)["LAPTIME_VERIFY"])
            assert "sql" not in {one["name"] for one in checking["volumes"]}


def preparing(sql: str, part: str) -> Scenario:
    wire = SCENARIO.to_wire()
    wire["data"]["postgres"][part] = [{"sql": sql}]
    return Scenario.model_validate(wire)


def test_pgbouncer_is_asked_for_new_connections_where_the_server_has_one() -> None:
    """What a server set on the session of a connection is not in force for the next one."""
    ctx = context()
    (k6,) = pod(job(ctx, "closed"))["containers"]
    prepare, _ = pod(job(ctx, "own"))["initContainers"]
    asked = {"name": secret_name(ctx), "key": "console", "optional": True}
    for one in (k6, prepare):
        (console,) = (it for it in one["env"] if it["name"] == "PGBOUNCER_URL")
        assert console["valueFrom"]["secretKeyRef"] == asked
    (direct,) = pod(job(context("direct"), "closed"))["containers"]
    assert "DATABASE_URL" in environment(direct)
    assert "PGBOUNCER_URL" not in environment(direct)


def test_without_a_database_nothing_is_prepared() -> None:
    manifest = trial_job(context("bare"), Trial("demo-trial-001", 1, "own", "timed", 1))
    assert "initContainers" not in pod(manifest)
    without = SCENARIO.model_copy(update={"data": None})
    (wait,) = pod(job(context(scenario=without), "own"))["initContainers"]
    assert wait["name"] == "wait"


@pytest.mark.parametrize("topology", [{}, {"databases": "perServer"}])
def test_a_database_that_only_servers_make_tables_in_is_asked_for_its_schema(
    topology: dict[str, Any],
) -> None:
    """Without `data` nothing is reset; what one server migrates there others are measured on."""
    wire = {**SPECS["full"], "topology": {**SPECS["full"]["topology"], "postgres": topology}}
    ctx = context(wire, scenario=SCENARIO.model_copy(update={"data": None}))
    (k6,) = pod(job(ctx, "closed"))["containers"]
    said = json.loads(environment(k6)["LAPTIME_TRIAL"])
    assert said["schemaQuery"] == SCHEMA_QUERY
    database = "laptime_axum" if topology else "laptime"
    assert environment(k6)["SCHEMA_DATABASE_URL"].endswith(f"@demo-postgres:5432/{database}")
    # Nothing else is done there, by a generator of an earlier version either.
    assert "DATABASE_URL" not in environment(k6)
    assert "resetStatements" not in said
    assert "PGBOUNCER_URL" not in {one["name"] for one in k6["env"]}


def test_a_script_runs_as_it_is() -> None:
    manifest = job(context(), "own")
    (k6,) = pod(manifest)["containers"]
    assert k6["command"] == ["k6"]
    assert k6["args"] == [
        "run",
        "--quiet",
        "--no-color",
        "--out",
        "laptime",
        "/scripts/script.js",
    ]
    assert environment(k6) == {
        "HOME": "/tmp",
        "TARGET": "http://demo-haproxy:8002",
        "LAPTIME_TRIAL_NAME": "demo-trial-007",
        "LAPTIME_DURATION_SECONDS": "300",
        "LAPTIME_METRICS_ADDRESS": ":9465",
    }
    copy = {"name": kept_script_name("demo", "my-script")}
    assert {"name": "scripts", "configMap": copy} in pod(manifest)["volumes"]
    assert {"name": "scripts", "mountPath": "/scripts"} in k6["volumeMounts"]


def test_the_files_of_several_config_maps_are_beside_the_script() -> None:
    spec = copy.deepcopy(SPECS["direct"])
    spec["loads"] = [{"name": "own", "script": {"configMap": "mine", "files": ["more", "data"]}}]
    (volume,) = [
        one for one in pod(job(context(spec), "own"))["volumes"] if one["name"] == "scripts"
    ]
    sources = volume["projected"]["sources"]
    # The run's own copies, in the order in which later ones count.
    copies = [kept_script_name("demo", name) for name in ("mine", "more", "data")]
    assert [one["configMap"]["name"] for one in sources] == copies


def test_the_files_of_an_image_are_copied_by_a_program_of_ours_before_anything_else() -> None:
    made = pod(job(context({**SPECS["direct"], "loads": [PACKED]}), "packed"))
    carrier, script, *others = made["initContainers"]
    assert carrier["image"] == "docker.io/laptime/k6:1"
    assert [one["name"] for one in others] == ["prepare", "wait"]
    assert script["image"] == "registry.example/load:1.2"
    # Nothing of the author's image runs, and it learns nothing.
    assert script["command"] == ["/laptime-carrier/carry"]
    assert script["args"] == ["/load", "/laptime-files", "shop/main.js"]
    assert "env" not in script
    # Nor does it see what the generator has of its own, or change the program.
    folders = {one["mountPath"]: one.get("readOnly", False) for one in script["volumeMounts"]}
    assert folders == {"/laptime-carrier": True, "/laptime-files": False}
    (k6,) = made["containers"]
    assert k6["args"][-1] == "/scripts/shop/main.js"
    volume = {one["mountPath"]: one["name"] for one in k6["volumeMounts"]}["/scripts"]
    assert volume in {one["name"] for one in script["volumeMounts"]}
    by_default = context(
        {**SPECS["direct"], "loads": [{"name": "own", "script": {"image": "a/b"}}]}
    )
    assert pod(job(by_default, "own"))["initContainers"][1]["args"] == [
        *("/scripts", "/laptime-files", "script.js")
    ]


def test_a_script_starts_when_the_server_answers() -> None:
    prepare, wait = pod(job(context(), "own"))["initContainers"]
    assert (prepare["name"], wait["name"]) == ("prepare", "wait")
    task = Task.model_validate_json(environment(wait)["LAPTIME_VERIFY"])
    assert (task.target, task.wait_seconds) == ("http://demo-haproxy:8002", 30)
    assert [(check.path, check.expect_status) for check in task.checks] == [("/healthz", 200)]


@pytest.mark.parametrize(
    "key", ["..", ".", "../etc/passwd", "a/../../b", "/a", "a b", "$(id)", "-o;x", "", "a\n"]
)
def test_a_script_stays_in_its_folder(key: str) -> None:
    spec = copy.deepcopy(SPECS["full"])
    spec["loads"][3]["script"]["key"] = key
    with pytest.raises(ValueError, match="cannot be a key"):
        job(context(spec), "own")


@pytest.mark.parametrize(
    ("load", "measured"), [("closed", 3600), ("timed", 10), ("open", 30), ("own", 300)]
)
def test_a_job_has_time_for_its_load_and_no_more_than_needed(load: str, measured: float) -> None:
    ctx = context()
    one = ctx.spec.load(load)
    deadline = deadline_seconds(ctx, one)
    least = 30 + one.warmup_seconds + measured + 2 * one.timeout_seconds
    assert least <= deadline <= least + 300
    assert job(ctx, load)["spec"]["activeDeadlineSeconds"] == deadline


def test_what_users_think_is_no_part_of_the_hour_that_a_server_has() -> None:
    ctx = context()
    closed = ctx.spec.load("closed")
    thinking = closed.model_copy(update={"think_time": ThinkTime(min="100ms", max="300ms")})
    assert closed.closed is not None
    assert closed.closed.requests is not None
    more = deadline_seconds(ctx, thinking) - deadline_seconds(ctx, closed)
    assert more == 0.2 * closed.closed.requests / closed.closed.connections


def over_http2(*protocols: str) -> RunContext:
    loads: list[dict[str, Any]] = [
        {"name": f"l{at}", "protocol": one, "closed": {"connections": 2, "duration": "10s"}}
        for at, one in enumerate(protocols)
    ]
    loads[0]["streams"] = 5
    servers = [{"name": "axum", "image": "mine:1"}]
    return context({"scenario": "users", "servers": servers, "loads": loads})


def test_a_load_over_http2_says_so_and_how_many_users_share_a_connection() -> None:
    load = document(over_http2("http2", "http1"), "l0")["load"]
    assert (load["protocol"], load["streams"], load["closed"]["connections"]) == ("http2", 5, 2)
    # A generator of an earlier version does not know it.
    assert list(document(over_http2("http2", "http1"), "l1")["load"]) == ["closed"]


def test_answers_are_checked_over_the_protocols_of_the_loads() -> None:
    for protocols, told in (
        (["http2"], ["http2"]),
        (["http2", "http1"], ["http1", "http2"]),
    ):
        ctx = over_http2(*protocols)
        (container,) = pod(verify_job(ctx, ctx.spec.server("axum")))["containers"]
        assert json.loads(environment(container)["LAPTIME_VERIFY"])["protocols"] == told
    ctx = users_context()
    (container,) = pod(verify_job(ctx, ctx.spec.server("axum")))["containers"]
    assert "protocols" not in json.loads(environment(container)["LAPTIME_VERIFY"])


def test_answers_are_checked_over_http2_alone_where_scripts_speak_nothing_else() -> None:
    ctx = context({**SPECS["bare"], "loads": [{**SCRIPT, "protocol": "http2"}]})
    (verifier,) = pod(verify_job(ctx, ctx.spec.server("own")))["containers"]
    (wait,) = pod(job(ctx, "own", "own"))["initContainers"]
    for container in (verifier, wait):
        assert json.loads(environment(container)["LAPTIME_VERIFY"])["protocols"] == ["http2"]


@pytest.mark.parametrize(
    ("checks", "seconds"),
    [
        # Ten answers of 9 s each, asked for twice, and the same once more over HTTP/2.
        ([{"timeoutSeconds": 10}] * 10, 2 * 10 * 2 * 10),
        ([{"times": 1, "minSeconds": 60, "timeoutSeconds": 120}] * 2, 2 * 2 * 120),
        # Nobody waits for ever, but as long as an answer has to take.
        ([{"times": 100, "timeoutSeconds": 120}] * 3, 2 * 1800),
        ([{"times": 100, "minSeconds": 20, "timeoutSeconds": 120}], 2 * 100 * 20),
    ],
)
def test_a_check_has_the_time_that_right_answers_may_take(
    checks: list[dict[str, Any]], seconds: int
) -> None:
    asked = [
        Check.model_validate({"name": f"c{n}", "path": f"/{n}", **one})
        for n, one in enumerate(checks)
    ]
    ctx = over_http2("http1", "http2")
    ctx = replace(ctx, scenario=ctx.scenario.model_copy(update={"checks": asked}))
    job = verify_job(ctx, ctx.spec.server("axum"))
    assert job["spec"]["activeDeadlineSeconds"] == 120 + 30 + seconds
    # What resets and warms the database takes its time before the first answer.
    data = preparing("SELECT count(*) FROM t;", "warm").data
    ctx = replace(ctx, scenario=ctx.scenario.model_copy(update={"data": data}))
    job = verify_job(ctx, ctx.spec.server("axum"))
    assert job["spec"]["activeDeadlineSeconds"] == 120 + 300 + 30 + seconds


def test_the_verifier_is_told_the_checks() -> None:
    ctx = users_context()
    manifest = verify_job(ctx, ctx.spec.server("axum"))
    assert manifest["metadata"]["name"] == "demo-verify-axum"
    (container,) = pod(manifest)["containers"]
    assert (container["command"], container["args"]) == (["laptime"], ["verify"])
    seen = json.loads(environment(container)["LAPTIME_VERIFY"])
    assert seen["target"] == "http://demo-haproxy:8002"
    asked = scenarios()["users"].counting_checks
    assert [Check.model_validate(one) for one in seen["checks"]] == asked
    assert seen["checks"][0]["statements"] == 1


RESULT = TrialResult(
    trial="demo-trial-007",
    ordinal=7,
    server="axum",
    load="closed",
    repetition=1,
    outcome=TrialOutcome.MEASURED,
)


def test_a_result_is_stored_once_and_for_all() -> None:
    manifest = result_config_map(context(), RESULT, "H4sIAAAA")
    assert manifest["immutable"] is True
    assert manifest["metadata"]["name"] == "demo-trial-007"
    assert manifest["data"]["generator.b64"] == "H4sIAAAA"
    assert TrialResult.model_validate_json(manifest["data"]["result.json"]) == RESULT


def test_a_payload_that_does_not_fit_is_left_out_and_counted() -> None:
    at_limit = result_config_map(context(), RESULT, "x" * MAX_PAYLOAD_BYTES)
    assert "generator.b64" in at_limit["data"]
    above = result_config_map(context(), RESULT, "x" * (MAX_PAYLOAD_BYTES + 1))
    assert sorted(above["data"]) == ["result.json"]
    annotations = above["metadata"]["annotations"]
    assert annotations["laptime.dev/payload-omitted"] == str(MAX_PAYLOAD_BYTES + 1)


def test_a_trial_of_a_large_run_keeps_as_much_as_any_other() -> None:
    """Repetitions that are only planned take nothing from those that are made."""
    whole = "x" * MAX_PAYLOAD_BYTES
    for more in ({"repetitions": 100}, {"precision": "1%"}):
        ctx = context({**SPECS["several"], **more})
        assert result_config_map(ctx, RESULT, whole)["data"]["generator.b64"] == whole


def test_a_failed_trial_has_no_payload() -> None:
    manifest = result_config_map(context(), RESULT, "")
    assert sorted(manifest["data"]) == ["result.json"]
    assert "laptime.dev/payload-omitted" not in manifest["metadata"]["annotations"]


SEVERAL = {**SPECS["direct"], "generator": {"parallelism": 4}}


def test_several_generators_are_an_indexed_job() -> None:
    manifest = job(context(SEVERAL), "closed")
    spec = manifest["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 4, 4)
    assert spec["backoffLimit"] == 0
    meet = {"count": 4, "meet": "demo-generator:7117"}
    assert document(context(SEVERAL), "closed")["generators"] == meet
    alone = job(context("direct"), "closed")["spec"]
    assert "completionMode" not in alone
    assert "generators" not in document(context("direct"), "closed")


def test_several_generators_of_a_script_know_of_each_other() -> None:
    manifest = job(
        context({**SPECS["direct"], "generator": {"parallelism": 4}, "loads": [SCRIPT]}), "own"
    )
    (k6,) = pod(manifest)["containers"]
    said = environment(k6)
    names = ("LAPTIME_GENERATORS", "LAPTIME_MEET", "LAPTIME_WAIT_SECONDS")
    assert [said[name] for name in names] == ["4", "demo-generator:7117", "30"]
    assert said["LAPTIME_TRIAL_NAME"] == "demo-trial-007"
    assert {one["name"]: one["containerPort"] for one in k6["ports"]} == {
        "metrics": 9465,
        "meet": 7117,
    }
    alone = job(context({**SPECS["direct"], "loads": [SCRIPT]}), "own")
    assert not set(names) & set(environment(pod(alone)["containers"][0]))


@pytest.mark.parametrize(("spec", "load"), [("direct", "closed"), ("full", "own")])
def test_built_in_trials_and_scripts_show_their_figures_to_prometheus(spec: str, load: str) -> None:
    (k6,) = pod(job(context(spec), load))["containers"]
    assert k6["ports"] == [{"name": "metrics", "containerPort": 9465, "protocol": "TCP"}]
    assert environment(k6)["LAPTIME_METRICS_ADDRESS"] == ":9465"


def test_generators_find_the_one_of_index_0() -> None:
    (found,) = [
        manifest
        for manifest in tier_objects(context(SEVERAL))
        if manifest["metadata"]["name"] == "demo-generator"
    ]
    assert found["kind"] == "Service"
    selector = dict(found["spec"]["selector"])
    assert selector.pop("batch.kubernetes.io/job-completion-index") == "0"
    template = job(context(SEVERAL), "closed")["spec"]["template"]
    assert selector.items() <= template["metadata"]["labels"].items()
    (k6,) = template["spec"]["containers"]
    meet = [one["containerPort"] for one in k6["ports"] if one["name"] == "meet"]
    assert meet == [found["spec"]["ports"][0]["port"]]
    names = {manifest["metadata"]["name"] for manifest in tier_objects(context("direct"))}
    assert "demo-generator" not in names


def test_generators_have_the_time_to_wait_for_each_other() -> None:
    one, four = context("direct"), context(SEVERAL)
    load = one.spec.load("closed")
    assert deadline_seconds(four, load) == deadline_seconds(one, load) + 30


def _sent(load: str) -> dict[str, Any]:
    """Return what the generator is told for a load of the run with sessions."""
    ctx = context("sessions")
    (trial,) = [one for one in plan_trials(ctx.name, ctx.spec, 1) if one.load == load]
    return trial_document(ctx, trial)


def test_sessions_are_sent_as_the_scenario_has_them() -> None:
    sent = _sent("all")
    assert sent["sessions"] == [
        {"name": "shop", "weight": 1, "steps": ["login", "create", "read"]},
        {"name": "front", "weight": 9, "steps": ["front"]},
    ]
    login, create, _, _ = sent["requests"]
    assert login["captures"] == [{"name": "token", "json": "/token"}]
    assert create["cookies"] == {"name": "{{users.name|url}}"}
    assert [one["name"] for one in sent["feeders"]] == ["users", "colour", "n"]
    assert sent["feeders"][0]["csv"] == {"file": "/feeders/users.csv"}
    # Something is drawn by chance.
    assert sent["seed"] == 3 + 1


def test_a_load_is_told_the_feeders_that_its_requests_use_and_no_others() -> None:
    sent = _sent("alone")
    assert "sessions" not in sent
    assert [one["name"] for one in sent["requests"]] == ["login", "front"]
    assert [one["name"] for one in sent["feeders"]] == ["users"]
    assert "seed" not in sent


def test_the_think_time_of_a_load_comes_before_that_of_a_request() -> None:
    assert _sent("all")["requests"][0]["thinkSeconds"] == {"min": 0.5, "max": 2.0}
    assert "thinkSeconds" not in _sent("all")["requests"][1]
    assert [one["thinkSeconds"] for one in _sent("alone")["requests"]] == [
        {"min": 1.0, "max": 1.0}
    ] * 2


def test_sessions_under_way_at_the_end_have_their_time() -> None:
    ctx = context("sessions")
    shop = ctx.spec.load("shop")
    alone = shop.model_copy(update={"mix": None, "endpoints": ["front"]})
    # Two steps before the last one, with 30 s each, and the think time of one; in the warm-up too.
    assert deadline_seconds(ctx, shop) - deadline_seconds(ctx, alone) == 2 * (2 * 30 + 2)
