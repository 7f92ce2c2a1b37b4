"""Names, labels, owners and hashes: what every object of a run has."""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laptime.api.spec import MAX_RUN_NAME_LENGTH
from laptime.manifests.objects import UID_LABEL, content_hash, otherwise_named
from laptime.manifests.server import server_deployment
from laptime.manifests.tiers import tier_objects
from tests.manifests.runs import IMAGES, SPECS, UID, context, objects, pod_specs

DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?)?")


def names(longest: int) -> st.SearchStrategy[str]:
    return st.from_regex(rf"[a-z]([-a-z0-9]{{0,{longest - 2}}}[a-z0-9])?", fullmatch=True)


@given(run=names(MAX_RUN_NAME_LENGTH), server=names(20), load=names(20))
def test_names_and_labels_always_fit(run: str, server: str, load: str) -> None:
    spec: dict[str, Any] = {
        "scenario": "tiny",
        "servers": [{"name": server, "preset": "axum-sqlx"}],
        "topology": {"postgres": {}, "pgbouncer": {}, "haproxy": {}},
        "loads": [{"name": load, "closed": {"connections": 1, "requests": 1}}],
        "repetitions": 1,
    }
    for manifest in objects(context(spec, name=run)):
        name = manifest["metadata"]["name"]
        assert len(name) <= 63
        assert DNS_LABEL.fullmatch(name)
        labels = dict(manifest["metadata"]["labels"])
        labels |= manifest.get("spec", {}).get("template", {}).get("metadata", {}).get("labels", {})
        for value in labels.values():
            assert len(value) <= 63
            assert LABEL_VALUE.fullmatch(value)


@pytest.mark.parametrize("spec", SPECS)
def test_every_object_is_owned_by_the_run(spec: str) -> None:
    for manifest in objects(context(spec)):
        metadata = manifest["metadata"]
        assert metadata["namespace"] == "bench"
        # Parts of an archive have a label of their own, which an older version leaves alone.
        labels = metadata["labels"]
        assert labels.get("laptime.dev/run-uid", labels.get("laptime.dev/archive-of")) == UID
        # A Secret belongs to a ConfigMap of the run, and is tested with it.
        assert manifest["kind"] == "Secret" or metadata["ownerReferences"] == [
            {
                "apiVersion": "laptime.dev/v1alpha1",
                "kind": "BenchmarkRun",
                "name": "demo",
                "uid": UID,
                "controller": True,
                "blockOwnerDeletion": False,
            }
        ]
        assert metadata["labels"]["app.kubernetes.io/managed-by"] == "laptime"
        assert metadata["labels"]["app.kubernetes.io/part-of"] == "demo"
        assert metadata["labels"]["laptime.dev/run"] == "demo"


@pytest.mark.parametrize("spec", SPECS)
def test_deployed_objects_have_names_of_their_own(spec: str) -> None:
    keys = [(m["kind"], m["metadata"]["name"]) for m in tier_objects(context(spec))]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("spec", SPECS)
def test_services_and_deployments_find_their_pods_and_no_others(spec: str) -> None:
    manifests = objects(context(spec))
    labels = {name: template["metadata"]["labels"] for name, template, _ in pod_specs(manifests)}
    # What the controller of Indexed Jobs adds to the first of its pods.
    for name, of_pod in labels.items():
        if name.startswith("Job demo-trial-"):
            labels[name] = {**of_pod, "batch.kubernetes.io/job-completion-index": "0"}
    for manifest in manifests:
        selector = manifest.get("spec", {}).get("selector")
        if selector is None:
            continue
        selector = selector.get("matchLabels", selector)
        found = {n for n, of_pod in labels.items() if selector.items() <= of_pod.items()}
        if manifest["metadata"]["name"] == "demo-generator":
            assert found == {name for name in labels if name.startswith("Job demo-trial-")}
            continue
        assert found == {f"Deployment {manifest['metadata']['name']}"}
    # None of a run of the same name that is another one.
    for manifest in manifests:
        selector = manifest.get("spec", {}).get("selector") or {"matchLabels": {UID_LABEL: UID}}
        assert selector.get("matchLabels", selector)[UID_LABEL] == UID


def test_another_name_fits_is_the_same_every_time_and_says_the_one_it_stands_for() -> None:
    seen: set[str] = set()
    for name in ("demo-results", "d" * 63, "d" * 62 + "e", "d" * 53 + "-" + "d" * 9):
        manifest = context().manifest("v1", "ConfigMap", name, {UID_LABEL: UID})
        other = otherwise_named(manifest)
        assert other == otherwise_named(manifest)
        assert other["metadata"]["annotations"]["laptime.dev/name"] == name
        assert len(other["metadata"]["name"]) <= 63
        assert DNS_LABEL.fullmatch(other["metadata"]["name"])
        seen |= {name, other["metadata"]["name"]}
    assert len(seen) == 8


def test_the_hash_stands_for_the_manifest() -> None:
    manifest = tier_objects(context())[1]
    annotations = manifest["metadata"].pop("annotations")
    assert annotations == {"laptime.dev/manifest-hash": content_hash(manifest)}
    assert re.fullmatch("[0-9a-f]{16}", content_hash(manifest))


def test_the_hash_is_the_same_for_the_same_run_and_another_for_any_change() -> None:
    def hashes(**changes: Any) -> list[str]:
        return [
            m["metadata"]["annotations"]["laptime.dev/manifest-hash"]
            for m in tier_objects(context(**changes))
        ]

    assert hashes() == hashes()
    assert not set(hashes()) & set(hashes(uid="another"))
    spec = copy.deepcopy(SPECS["full"])
    spec["topology"]["haproxy"]["maxConnections"] = 26
    changed = [a != b for a, b in zip(hashes(), hashes(spec=context(spec).spec), strict=True)]
    kinds = [
        (m["kind"], m["metadata"]["name"])
        for m, differs in zip(tier_objects(context()), changed, strict=True)
        if differs
    ]
    # The Deployment too: its pod has to start again with the new configuration.
    assert kinds == [("ConfigMap", "demo-haproxy"), ("Deployment", "demo-haproxy")]


def test_a_preset_without_an_image_is_refused_by_name() -> None:
    ctx = context(images=replace(IMAGES, servers={"axum-sqlx": "a"}))
    with pytest.raises(ValueError, match="server sync: there is no image for preset fastapi-sync"):
        server_deployment(ctx, ctx.spec.server("sync"), None)


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "x" * (MAX_RUN_NAME_LENGTH + 1)},
        {"name": "demo\n  stats socket ipv4@:1"},
        {"name": "Demo"},
        {"name": ""},
        {"namespace": "a b"},
        {"namespace": "a.b"},
        {"cluster_domain": "cluster.local #"},
        {"cluster_domain": "cluster..local"},
    ],
)
def test_names_that_are_none_are_refused(changes: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="is not the name of a"):
        context(**changes)


@pytest.mark.parametrize("name", ["a\nb", "a b", "a;b", "A", "a" * 21, "-a", "a-", "a\n"])
@pytest.mark.parametrize("what", ["servers", "loads"])
def test_members_with_hostile_names_are_refused(what: str, name: str) -> None:
    spec = copy.deepcopy(SPECS["full"])
    spec[what][0] = {**spec[what][0], "name": name}
    with pytest.raises(ValueError, match="is not the name of a"):
        context(spec)
