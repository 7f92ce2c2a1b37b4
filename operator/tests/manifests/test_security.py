"""Every pod of every run passes the restricted Pod Security level and has no way out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from laptime.api.server import SECRET_KEY_PREFIX, EnvironmentVariable
from laptime.api.service import AUTHORIZATION_KEY
from laptime.cli.generate import catalogue_crd, catalogue_scenario_crd
from laptime.manifests.context import RunContext
from laptime.manifests.feeders import feeder_objects
from laptime.manifests.generator import trial_job
from laptime.manifests.objects import Manifest
from laptime.manifests.secret import secret_name, services_secret_name
from laptime.manifests.server import server_deployment
from laptime.manifests.verifier import verify_job
from laptime.plan import plan_trials
from tests.manifests.runs import (
    MARKET,
    PASSWORD,
    SPECS,
    containers,
    context,
    environment,
    objects,
    pod_specs,
)

ALLOWED_VOLUMES = {"configMap", "secret", "emptyDir"}


def _pods() -> Iterator[tuple[str, Manifest, Manifest]]:
    for spec in SPECS:
        for name, template, pod in pod_specs(objects(context(spec))):
            yield f"{spec}: {name}", template, pod


PODS = list(_pods())
POD_SPECS = [pytest.param(pod, id=f"{i} {name}") for i, (name, _, pod) in enumerate(PODS)]


@pytest.mark.parametrize("pod", POD_SPECS)
def test_a_pod_is_restricted(pod: Manifest) -> None:
    assert not {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"} & pod.keys()
    security = pod["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert security.get("runAsUser", 1) > 0
    assert not {"sysctls", "supplementalGroups", "seLinuxOptions"} & security.keys()
    for volume in pod["volumes"]:
        assert set(volume) - {"name"} <= ALLOWED_VOLUMES


@pytest.mark.parametrize("pod", POD_SPECS)
def test_a_container_is_restricted(pod: Manifest) -> None:
    for container in containers(pod):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }
        assert "lifecycle" not in container
        assert all("hostPort" not in port for port in container.get("ports", []))


@pytest.mark.parametrize("pod", POD_SPECS)
def test_a_pod_has_no_access_to_the_api_server(pod: Manifest) -> None:
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert "serviceAccountName" not in pod


@pytest.mark.parametrize("pod", POD_SPECS)
def test_every_mount_has_its_volume(pod: Manifest) -> None:
    volumes = {volume["name"] for volume in pod["volumes"]}
    assert len(volumes) == len(pod["volumes"])
    mounted = {mount["name"] for one in containers(pod) for mount in one["volumeMounts"]}
    assert mounted == volumes


@pytest.mark.parametrize("pod", POD_SPECS)
def test_no_shell_is_started(pod: Manifest) -> None:
    for container in containers(pod):
        words = [*container.get("command", []), *container.get("args", [])]
        assert not any(word in ("sh", "bash", "-c", "/bin/sh", "/bin/bash") for word in words)


@pytest.mark.parametrize("pod", POD_SPECS)
def test_emptydirs_cannot_fill_the_node(pod: Manifest) -> None:
    assert all("sizeLimit" in v["emptyDir"] for v in pod["volumes"] if "emptyDir" in v)


def test_the_pods_are_of_all_kinds() -> None:
    components = {
        template["metadata"]["labels"]["laptime.dev/component"] for _, template, _ in PODS
    }
    assert components == {
        "postgres",
        "pgbouncer",
        "haproxy",
        "upstream",
        "delay",
        "server",
        "generator",
        "verifier",
        "profiler",
        "asker",
        "path-server",
        "path-generator",
        "service-cache",
        "service-pay-mock",
        "service-db",
        "service-fonts",
        "reset-pay-mock",
        "reset-db",
    }


def test_only_a_users_own_image_chooses_its_user() -> None:
    images = {"registry.example/" + name for name in ("own:1.2", "redis:8", "mock:2", "mysql:9")}
    images |= {"registry.example/fonts:1", "registry.example/reset:1"}
    for name, _, pod in PODS:
        forced = pod["securityContext"].get("runAsUser") == 10001
        # Who asks for an image has it, and runs a program of ours beside it.
        own = pod["containers"][0]["image"] in images and pod["containers"][0]["name"] != "asked"
        assert forced != own, name


@pytest.mark.parametrize("spec", SPECS)
def test_where_the_cluster_chooses_users_no_pod_says_one(spec: str) -> None:
    for name, _, pod in pod_specs(objects(context(spec, foreign_users=True))):
        said = [pod["securityContext"], *(one["securityContext"] for one in containers(pod))]
        for one in said:
            assert not {"runAsUser", "runAsGroup", "fsGroup"} & one.keys(), name
        assert pod["securityContext"]["runAsNonRoot"] is True


@pytest.mark.parametrize("spec", SPECS)
def test_the_password_is_in_the_secret_only(spec: str) -> None:
    for manifest in objects(context(spec)):
        assert (PASSWORD in str(manifest)) == (manifest["kind"] == "Secret")


@pytest.mark.parametrize("spec", SPECS)
def test_no_script_gets_credentials(spec: str) -> None:
    for name, _, pod in pod_specs(objects(context(spec))):
        # What resets a service is its author's program, and has that service's password.
        if name.startswith("Job") and not name.startswith("Job demo-reset-"):
            for container in pod["containers"]:
                # The built-in trial resets the database, the verifier counts statements in it.
                built_in = {"/opt/laptime/trial.js", "verify"} & set(container["args"])
                assert built_in or "secretKeyRef" not in str(container)
                mounts = {mount["name"] for mount in container["volumeMounts"]}
                asks = {"carrier", "files"} if container["name"] == "asked" else set()
                assert mounts <= {"tmp", "scripts", "feeders", "ca", *asks}


def test_pull_secrets_and_policy_reach_every_pod() -> None:
    base = context()
    images = base.images.__class__(
        **{**base.images.__dict__, "pull_policy": "Always", "pull_secrets": ("one", "two")}
    )
    for _, _, pod in pod_specs(objects(context(images=images))):
        assert pod["imagePullSecrets"] == [{"name": "one"}, {"name": "two"}]
        assert all(one["imagePullPolicy"] == "Always" for one in containers(pod))


def test_pull_secrets_of_a_run_come_on_top_of_those_of_the_chart() -> None:
    base = context()
    images = replace(base.images, pull_secrets=("chart", "both"))
    spec = {**SPECS["full"], "imagePullSecrets": [{"name": "both"}, {"name": "regcred"}]}
    found = list(pod_specs(objects(context(spec, images=images))))
    assert found
    for name, _, pod in found:
        names = [one["name"] for one in pod["imagePullSecrets"]]
        assert names == ["chart", "both", "regcred"], name
        # Only the kubelet reads it: no container has anything of it.
        assert "regcred" not in str(containers(pod))
        assert "regcred" not in str(pod["volumes"])


def _secrets(node: Any) -> Iterator[str]:
    """Yield the names of all Secrets that a part of a pod takes anything from."""
    if isinstance(node, list):
        for one in node:
            yield from _secrets(one)
    elif isinstance(node, dict):
        for key, one in node.items():
            if key in ("secretKeyRef", "secretRef"):
                yield one["name"]
            elif key == "secret" and isinstance(one, dict):
                yield one.get("secretName") or one["name"]
            else:
                yield from _secrets(one)


@pytest.mark.parametrize("spec", SPECS)
def test_no_key_of_a_secret_but_the_runs_own_and_what_is_there_for_it_reaches_an_image(
    spec: str,
) -> None:
    ctx = context(spec)
    for name, template, pod in pod_specs(objects(ctx)):
        labels = template["metadata"]["labels"]
        component, server = labels["laptime.dev/component"], labels.get("laptime.dev/server")
        named: set[str] = set()
        if component in ("generator", "verifier") and server == "shop":
            named = {"shop-client"}
        elif (spec, component, server) == ("full", "server", "own"):
            named = {"shop-licence"}
        own = {secret_name(ctx), services_secret_name(ctx)}
        assert set(_secrets(pod)) <= own | named, name
        assert "imagePullSecrets" not in pod, name
        assert "envFrom" not in str(pod), name


def test_of_a_secret_that_a_run_names_only_what_was_put_there_for_runs_is_taken() -> None:
    """Its key has a name that nobody's has by chance, and no script can read it."""
    found = {
        (one["name"], one["valueFrom"]["secretKeyRef"]["key"])
        for spec in ("there", "full")
        for _, _, pod in pod_specs(objects(context(spec)))
        for container in containers(pod)
        for one in container.get("env", [])
        if one.get("valueFrom", {}).get("secretKeyRef", {}).get("name", "").startswith("shop-")
    }
    assert found == {
        ("LAPTIME_AUTHORIZATION", AUTHORIZATION_KEY),
        ("LICENCE", "laptime-env-LICENCE"),
    }
    # What was put there for a generator is no server's, whatever its variables are called.
    assert AUTHORIZATION_KEY == "laptime-authorization"
    assert not AUTHORIZATION_KEY.startswith(SECRET_KEY_PREFIX)


def _fields(schema: Any) -> Iterator[str]:
    for name, one in (schema.get("properties") or {}).items():
        yield name
        yield from _fields(one)
    if "items" in schema:
        yield from _fields(schema["items"])


def test_no_other_field_of_a_run_can_name_a_secret() -> None:
    spec = catalogue_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    names = set(_fields(spec))
    assert {"env", "value", "configMap"} <= names
    found = {name for name in names if "secret" in name.lower() or name.endswith("From")}
    assert found == {"imagePullSecrets", "secret"}
    assert set(_fields(spec["properties"]["imagePullSecrets"])) == {"name"}
    env = spec["properties"]["servers"]["items"]["properties"]["env"]
    assert list(_fields(spec)).count("secret") == list(_fields(env)).count("secret") == 1
    assert "credentials" in names


def test_no_field_of_a_scenario_names_a_secret() -> None:
    schema = catalogue_scenario_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    names = set(_fields(schema["properties"]["spec"]))
    assert {"env", "image", "services"} <= names
    assert not {name for name in names if "secret" in name.lower() or "credentials" in name}


def test_no_value_of_a_feeder_takes_anything_from_other_variables() -> None:
    ctx = context("sessions")
    for trial in plan_trials(ctx.name, ctx.spec, 1):
        (one,) = containers(trial_job(ctx, trial)["spec"]["template"]["spec"])
        seen = environment(one)
        assert seen["DATABASE_PASSWORD"]
        feeders = json.loads(seen["LAPTIME_TRIAL"]).get("feeders", [])
        for feeder in feeders:
            assert feeder.get("values") in (None, ["red", "$(DATABASE_PASSWORD)"])
    assert json.loads(environment(_verifier(ctx))["LAPTIME_VERIFY"])["values"]["colour"] == "red"


def test_no_word_of_a_scenario_is_a_word_of_a_command() -> None:
    for name, _, pod in pod_specs(objects(context("sessions"))):
        for container in containers(pod):
            words = str([container.get("command"), container.get("args")])
            assert not [part for part in ("{{", "users", "login", "ada") if part in words], name


def test_tables_are_files_of_the_runs_own_generators_and_of_nobody_else() -> None:
    for name, template, pod in pod_specs(objects(context("sessions"))):
        found = [one for one in pod["volumes"] if one["name"] == "feeders"]
        generator = template["metadata"]["labels"]["laptime.dev/component"] == "generator"
        assert bool(found) == generator, name
        for one in found:
            assert one["configMap"]["name"] == "demo-feeders"
            assert one["configMap"]["items"] == [{"key": "users.csv", "path": "users.csv"}]


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "..", "x.csv/../y", "$(HOME)", ""])
def test_the_name_of_a_feeder_is_no_path(name: str) -> None:
    feeder = MARKET.feeders[0].model_copy(update={"name": name})
    ctx = context("sessions", scenario=MARKET.model_copy(update={"feeders": [feeder]}))
    with pytest.raises(ValueError, match="is not the name of a feeder's table"):
        feeder_objects(ctx)


def _verifier(ctx: RunContext) -> Manifest:
    (one,) = containers(verify_job(ctx, ctx.spec.servers[0])["spec"]["template"]["spec"])
    return one


def test_a_value_of_the_author_takes_nothing_from_other_variables() -> None:
    # The kubelet would expand all of it. What the server is told itself it may say in other words.
    ctx = context("full")
    value = "$(DATABASE_PASSWORD) $(HOME) $(OTHER) $(DATABASE_SECRET)"
    env = [
        EnvironmentVariable(name="OTHER", value="x"),
        EnvironmentVariable(name="MINE", value=value),
    ]
    server = ctx.spec.servers[0].model_copy(update={"env": env})
    (one,) = containers(server_deployment(ctx, server, None)["spec"]["template"]["spec"])[-1:]
    values = {variable["name"]: variable.get("value") for variable in one["env"]}
    assert values["MINE"] == "$(DATABASE_PASSWORD) $$(HOME) $$(OTHER) $$(DATABASE_SECRET)"
