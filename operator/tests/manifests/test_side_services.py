"""The services around the servers: how they are found, and get back to their first state."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from laptime.api.resources import Resources
from laptime.api.side_services import SideService, SideVariable
from laptime.manifests.context import RunContext
from laptime.manifests.network import network_policy
from laptime.manifests.objects import Manifest
from laptime.manifests.secret import services_secret, services_secret_name
from laptime.manifests.server import server_deployment
from laptime.manifests.side_services import (
    reset_job,
    reset_name,
    side_service_deployment,
    side_service_objects,
    side_service_service,
)
from tests.manifests.runs import AROUND, PASSWORD, SPECS, context, environment

CTX = context("around")
SECRET = services_secret_name(CTX)
ADDRESSES = {
    "SERVICE_CACHE_HOST": "demo-service-cache",
    "SERVICE_CACHE_PORT": "6379",
    "SERVICE_CACHE_PASSWORD": f"{SECRET}/cache",
    "SERVICE_PAY_MOCK_HOST": "demo-service-pay-mock",
    "SERVICE_PAY_MOCK_PORT": "8080",
    "SERVICE_DB_HOST": "demo-service-db",
    "SERVICE_DB_PORT": "3306",
    "SERVICE_DB_PASSWORD": f"{SECRET}/db",
    "SERVICE_FONTS_HOST": "demo-service-fonts",
    "SERVICE_FONTS_PORT": "80",
}


def service(name: str) -> SideService:
    return next(one for one in AROUND.services if one.name == name)


def pod(manifest: Manifest) -> dict[str, Any]:
    found: dict[str, Any] = manifest["spec"]["template"]["spec"]
    return found


def container(manifest: Manifest) -> dict[str, Any]:
    (only,) = pod(manifest)["containers"]
    found: dict[str, Any] = only
    return found


def reset_of(name: str, ctx: RunContext = CTX) -> Manifest:
    one = service(name)
    assert one.reset is not None
    return reset_job(ctx, one, one.reset, "demo-trial-001")


def test_servers_and_services_find_each_other_by_their_environment() -> None:
    server = server_deployment(CTX, CTX.spec.server("plain"), None)
    for manifest in (server, *(side_service_deployment(CTX, one) for one in AROUND.services)):
        seen = environment(container(manifest))
        assert ADDRESSES.items() <= seen.items()
    assert ADDRESSES.items() <= environment(container(reset_of("db"))).items()


def test_a_server_may_put_an_address_together_and_no_other_reference_is_expanded() -> None:
    seen = environment(container(server_deployment(CTX, CTX.spec.server("cached"), None)))
    assert seen["CACHE_URL"] == f"redis://:{SECRET}/cache@demo-service-cache:6379/0"
    assert seen["COST"] == "$(HOME) $5"


def test_values_and_words_of_a_service_are_expanded_where_they_name_services() -> None:
    mock = environment(container(side_service_deployment(CTX, service("pay-mock"))))
    assert mock["CACHE"] == "demo-service-cache:6379"
    assert mock["PRICE"] == "$5 or $$(SERVICE_NONE_HOST)"
    words = container(side_service_deployment(CTX, service("cache")))["args"]
    # The kubelet expands arguments too; it gives `$$` back as `$`.
    assert words[1] == "$(SERVICE_CACHE_PASSWORD)"
    assert words[4] == "$$(HOME)"


def test_each_password_is_in_the_secret_only_and_goes_with_a_config_map() -> None:
    passwords = {"cache": PASSWORD, "db": PASSWORD[::-1]}
    secret = services_secret(CTX, passwords, "demo-services", "c0f1")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "demo-services", "uid": "c0f1"}
    assert secret["metadata"]["ownerReferences"] == [owner]
    assert secret["stringData"] == passwords
    assert secret["immutable"] is True
    config_map = side_service_objects(CTX)[0]
    assert config_map["metadata"]["name"] == "demo-services"
    assert services_secret_name(replace(CTX, uid="another")) != SECRET
    with pytest.raises(ValueError, match="the password must be"):
        services_secret(CTX, {"cache": "a b"}, "demo-services", "c0f1")


def test_a_scenario_without_passwords_needs_no_secret() -> None:
    quiet = AROUND.model_copy(update={"services": [service("fonts")]})
    kinds = [one["kind"] for one in side_service_objects(replace(CTX, scenario=quiet))]
    assert kinds == ["Deployment", "Service"]


def test_a_fresh_pod_is_another_one_in_each_trial_and_only_that_one_is_reached() -> None:
    cache = service("cache")
    template = side_service_deployment(CTX, cache, "demo-trial-001")["spec"]["template"]
    assert template["metadata"]["labels"]["laptime.dev/trial"] == "demo-trial-001"
    leads = side_service_service(CTX, cache, "demo-trial-001")["spec"]
    assert leads["publishNotReadyAddresses"] is True
    selector = leads["selector"]
    assert selector.items() <= template["metadata"]["labels"].items()
    assert selector["laptime.dev/trial"] == "demo-trial-001"
    assert side_service_deployment(CTX, cache)["spec"]["strategy"]["type"] == "RollingUpdate"
    # One whose pod goes on keeps what it has until the last moment.
    assert side_service_deployment(CTX, service("db"))["spec"]["strategy"]["type"] == "Recreate"


def test_a_service_is_ready_by_a_connection_or_by_an_answer() -> None:
    probe = container(side_service_deployment(CTX, service("cache")))["startupProbe"]
    assert probe["tcpSocket"] == {"port": 6379}
    probe = container(side_service_deployment(CTX, service("pay-mock")))["startupProbe"]
    assert probe["httpGet"] == {"path": "/healthz", "port": 8081}


def test_no_port_of_a_service_is_scraped_and_its_folders_are_bounded() -> None:
    for one in AROUND.services:
        found = container(side_service_deployment(CTX, one))
        assert all(port["name"] != "metrics" for port in found["ports"])
    volumes = pod(side_service_deployment(CTX, service("cache")))["volumes"]
    assert {one["name"]: one["emptyDir"]["sizeLimit"] for one in volumes} == {
        "tmp": "1Gi",
        "writable-0": "16Gi",
    }


def test_a_request_that_resets_is_sent_by_a_pod_of_ours_as_it_is_written() -> None:
    job = reset_of("pay-mock")
    said = json.loads(environment(container(job))["LAPTIME_VERIFY"])
    assert said["target"] == "http://demo-service-pay-mock:8081"
    assert said["healthPath"] is None
    (check,) = said["checks"]
    assert (check["method"], check["path"], check["times"]) == ("POST", "/__admin/reset?all", 1)
    assert check["expectStatus"] == 204
    # A template that stands for the text itself.
    assert check["body"] == '{"all": "{{\'{{\'}}$x}}"}'
    assert container(job)["image"] == CTX.images.operator
    assert "SECRET" not in json.dumps(job).upper()


@pytest.mark.parametrize(
    ("said", "requests", "limits"),
    [
        ({"cpu": "2", "memory": "4Gi"}, ("50m", "64Mi"), {"cpu": "2", "memory": "4Gi"}),
        ({"cpu": "20m"}, ("20m", "64Mi"), {"cpu": "20m"}),
    ],
)
def test_a_program_that_resets_has_no_more_than_its_service(
    said: dict[str, str], requests: tuple[str, str], limits: dict[str, str]
) -> None:
    one = service("db").model_copy(update={"resources": Resources.model_validate(said)})
    assert one.reset is not None
    found = container(reset_job(CTX, one, one.reset, "demo-trial-001"))["resources"]
    cpu, memory = requests
    assert found == {"requests": {"cpu": cpu, "memory": memory}, "limits": limits}


def test_a_job_that_resets_is_the_authors_program_and_has_no_deadline() -> None:
    job = reset_of("db")
    assert "activeDeadlineSeconds" not in job["spec"]
    assert job["spec"]["backoffLimit"] == 0
    assert pod(job)["securityContext"]["runAsUser"] == 1000
    assert container(job)["image"] == "registry.example/reset:1"
    assert environment(container(job))["MYSQL_PWD"] == f"{SECRET}/db"
    db = service("db")
    assert db.reset is not None
    nothing = db.reset.model_copy(update={"job": None})
    with pytest.raises(ValueError, match="neither request nor job"):
        reset_job(CTX, db, nothing, "demo-trial-001")


def test_a_service_learns_nothing_of_the_database_and_no_name_of_it_is_a_path() -> None:
    curious = service("db").model_copy(
        update={"env": [SideVariable(name="MINE", value="$(DATABASE_PASSWORD)$(SERVICE_DB_PORT)")]}
    )
    ctx = context(
        {**SPECS["around"], "topology": {"postgres": {}}},
        scenario=AROUND.model_copy(update={"services": [curious]}),
    )
    seen = environment(container(side_service_deployment(ctx, curious)))
    assert seen["MINE"] == "$(DATABASE_PASSWORD)3306"
    assert not [name for name in seen if name.startswith("DATABASE")]
    for name in ("../x", "a/b", "$(HOME)", "A", ""):
        wrong = curious.model_copy(update={"name": name})
        with pytest.raises(ValueError, match="is not the name of a service"):
            replace(ctx, scenario=AROUND.model_copy(update={"services": [wrong]}))


def test_the_longest_names_fit() -> None:
    longest = service("db").model_copy(update={"name": "s" * 16})
    scenario = AROUND.model_copy(update={"services": [longest]})
    ctx = context(SPECS["around"], name="r" * 35, scenario=scenario)
    names = [one["metadata"]["name"] for one in side_service_objects(ctx)]
    assert max(map(len, names)) <= 63
    purpose = "r" * 35 + "-verify-" + "s" * 20
    assert len(reset_name(ctx, longest, purpose)) <= 63
    assert reset_name(ctx, longest, purpose) != reset_name(ctx, longest, "demo-trial-001")


def test_the_policy_of_the_run_is_about_them_too() -> None:
    selected = network_policy(CTX)["spec"]["podSelector"]["matchLabels"]
    every = [*side_service_objects(CTX), reset_of("db"), reset_of("pay-mock")]
    for manifest in every:
        if "template" in manifest.get("spec", {}):
            labels = manifest["spec"]["template"]["metadata"]["labels"]
            assert selected.items() <= labels.items()
