"""A server that is a Service of the namespace: how it is spoken to; nothing is made of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from laptime.manifests.context import RunContext
from laptime.manifests.generator import trial_document, trial_job
from laptime.manifests.objects import Manifest
from laptime.manifests.tiers import target_url
from laptime.manifests.verifier import verify_job
from laptime.plan import Trial
from tests.manifests.runs import MARKET, SPECS, TARGETS, context, objects

THERE = context("there")


def variables(job: Manifest, number: int = 0) -> dict[str, Any]:
    (container,) = job["spec"]["template"]["spec"]["containers"]
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in container["env"]}


def trial(server: str, spec: str = "there") -> Manifest:
    load = SPECS[spec]["loads"][0]["name"]
    return trial_job(context(spec), Trial("demo-trial-001", 1, server, load, 1))


def test_nothing_is_made_of_a_service_that_is_there() -> None:
    names = {(one["kind"], one["metadata"]["name"]) for one in objects(THERE)}
    assert all(name.startswith("demo") for _, name in names)
    assert ("Deployment", "demo-server-axum") in names
    for kind, name in (("Deployment", "demo-server-shop"), ("Service", "demo-server-shop")):
        assert (kind, name) not in names


def test_it_is_reached_under_the_name_that_certificates_have() -> None:
    assert target_url(THERE, THERE.spec.server("shop")) == "https://shop.bench.svc:8443"
    assert target_url(THERE, THERE.spec.server("cart")) == "http://cart.bench.svc:80"
    assert target_url(THERE, THERE.spec.server("axum")) == "http://demo-server-axum:8080"


@pytest.mark.parametrize("job", [verify_job(THERE, THERE.spec.server("shop")), trial("shop")])
def test_generator_and_verifier_know_it_and_are_known_to_it(job: Manifest) -> None:
    known = variables(job)
    secret = {"name": "shop-client", "key": "laptime-authorization"}
    assert known["LAPTIME_AUTHORIZATION"] == {"secretKeyRef": secret}
    assert known["SSL_CERT_FILE"] == "/etc/laptime/ca/ca.crt"
    assert known["SSL_CERT_DIR"] == "/etc/laptime/ca"
    spec = job["spec"]["template"]["spec"]
    (volume,) = [one for one in spec["volumes"] if one["name"] == "ca"]
    items = [{"key": "ca.crt", "path": "ca.crt"}]
    assert volume["configMap"] == {"name": "shop-ca", "items": items}
    said = json.loads(known.get("LAPTIME_TRIAL") or known["LAPTIME_VERIFY"])
    assert (said["target"], said["healthPath"]) == ("https://shop.bench.svc:8443", "/ready")


def test_feeders_draw_other_values_each_time_where_nobody_brings_the_data_back() -> None:
    poisson = {"rate": 10, "duration": "10s", "arrivals": "poisson"}
    loads = [{"name": name, "open": poisson} for name in ("first", "second")]
    market = {**SPECS["there"], "scenario": "market", "loads": loads, "seed": 3}
    ctx = context(market, scenario=MARKET)

    def seeds(trial: Trial, ctx: RunContext = ctx) -> tuple[int, int | None]:
        document = trial_document(ctx, trial)
        return document["seed"], document.get("feederSeed")

    trials = [
        Trial("demo-trial-001", 1, "shop", "first", 1),
        # Another load, another Service before the same database, another attempt, a retry.
        Trial("demo-trial-002", 2, "shop", "second", 1),
        Trial("demo-trial-003", 3, "cart", "first", 1),
        Trial("demo-trial-001-attempt-2", 1, "shop", "first", 1),
        Trial("demo-trial-001", 1, "shop", "first", 1, retry=1),
    ]
    found = [seeds(one) for one in trials]
    # A run that repeats this one, as its report says.
    found.append(seeds(trials[0], replace(ctx, uid="another")))
    assert len({drawn for _, drawn in found}) == len(found)
    assert all(drawn is not None and 0 <= drawn < 2**53 for _, drawn in found)
    # Arrivals are the same for all servers, and values too where reset brings the rows back.
    assert {arrivals for arrivals, _ in found} == {3 + 1}
    assert seeds(Trial("demo-trial-004", 4, "axum", "first", 1)) == (3 + 1, None)
    assert seeds(trials[0]) == found[0]
    # Without arrivals by chance, as a generator of an earlier version takes it.
    closed = {"connections": 2, "duration": "10s"}
    plain = context({**market, "loads": [{"name": "first", "closed": closed}]}, scenario=MARKET)
    assert seeds(trials[0], plain) == (found[0][1], None)


def test_the_runs_own_database_and_upstream_have_nothing_to_do_with_it() -> None:
    for job in (verify_job(THERE, THERE.spec.server("shop")), trial("shop")):
        known = variables(job)
        assert "DATABASE_URL" not in known
        said = json.loads(known.get("LAPTIME_TRIAL") or known["LAPTIME_VERIFY"])
        assert not {"resetStatements", "upstreamUrl"} & said.keys()
    own = variables(trial("axum"))
    assert "DATABASE_URL" in own
    # As a generator of an earlier version takes it, which a run may have been begun with.
    assert "healthPath" not in json.loads(own["LAPTIME_TRIAL"])


def test_a_script_is_told_the_address_of_a_plain_one() -> None:
    job = trial("cart", "scripted")
    assert variables(job)["TARGET"] == "http://cart.bench.svc:80"
    (wait,) = job["spec"]["template"]["spec"]["initContainers"]
    (said,) = [json.loads(one["value"]) for one in wait["env"] if one["name"] == "LAPTIME_VERIFY"]
    assert said["checks"][0]["path"] == "/healthz"


def test_a_name_that_is_none_is_refused_whatever_the_schema_says() -> None:
    wrong = {"name": "cart", "service": {"name": "cart.other", "port": 80}}
    with pytest.raises(ValueError, match=r"'cart\.other' is not the name of a service"):
        context({**SPECS["there"], "servers": [wrong]})


def test_what_is_checked_and_what_is_measured_can_be_told_apart() -> None:
    shop = TARGETS["shop"]
    other = [
        type(shop)(8444, "https", shop.selector),
        type(shop)(8443, "http", shop.selector),
        type(shop)(8443, "https", {"app": "shop", "canary": "true"}),
    ]
    assert len({shop.fingerprint, *(one.fingerprint for one in other)}) == 4
    assert type(shop)(8443, "https", dict(shop.selector)).fingerprint == shop.fingerprint
