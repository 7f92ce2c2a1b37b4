"""Every pod of every run asks meshes, agents and autoscalers to leave it alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from laptime.manifests.objects import Manifest
from laptime.manifests.undisturbed import (
    ANNOTATIONS,
    ASKED_ANNOTATION,
    LABELS,
    asked_of,
    pod_template,
)
from tests.manifests.runs import SPECS, containers, context, objects, pod_specs

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.yaml"))


def templates() -> list[tuple[str, Manifest]]:
    found = [
        (f"{path.stem}: {name}", template)
        for path in GOLDEN
        for name, template, _ in pod_specs(list(yaml.safe_load_all(path.read_text())))
    ]
    return found + [
        (f"{spec}: {name}", template)
        for spec in SPECS
        for name, template, _ in pod_specs(objects(context(spec)))
    ]


def test_every_pod_is_left_alone() -> None:
    found = templates()
    assert len(found) > 100
    for name, template in found:
        metadata = template["metadata"]
        assert LABELS.items() <= metadata["labels"].items(), name
        assert ANNOTATIONS.items() <= metadata["annotations"].items(), name


def test_every_pod_says_what_was_asked_for() -> None:
    for name, template in templates():
        asked = asked_of(template["metadata"])
        assert asked is not None, name
        main = template["spec"]["containers"][0]
        assert (asked.main, asked.resources) == (main["name"], main["resources"]), name
        assert asked.images == {one["name"]: one["image"] for one in containers(template["spec"])}


def test_the_keys_are_those_that_each_of_them_reads() -> None:
    """As their documentation has them: a word that is spelt otherwise does nothing."""
    assert LABELS["sidecar.istio.io/inject"] == "false"
    assert LABELS["istio.io/dataplane-mode"] == "none"
    assert LABELS["kuma.io/sidecar-injection"] == "disabled"
    assert ANNOTATIONS["linkerd.io/inject"] == "disabled"
    assert ANNOTATIONS["consul.hashicorp.com/connect-inject"] == "false"
    assert ANNOTATIONS["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
    assert ANNOTATIONS["karpenter.sh/do-not-disrupt"] == "true"
    assert ANNOTATIONS["descheduler.alpha.kubernetes.io/prefer-no-eviction"] == "true"
    # Metadata of pods are texts, and YAML is quick to make something else of them.
    assert all(isinstance(one, str) for one in (*LABELS.values(), *ANNOTATIONS.values()))


@pytest.mark.parametrize("spec", SPECS)
def test_nothing_is_selected_by_it(spec: str) -> None:
    """A selector of a Deployment can never be changed, and older versions have none of these."""

    def selectors(node: Any) -> list[Any]:
        if isinstance(node, list):
            return [found for one in node for found in selectors(one)]
        if not isinstance(node, dict):
            return []
        own = [one for key, one in node.items() if "selector" in key.lower()]
        return own + [found for one in node.values() for found in selectors(one)]

    for manifest in objects(context(spec)):
        text = str(selectors(manifest))
        assert not [one for one in (*LABELS, *ANNOTATIONS) if one in text]
        if manifest["kind"] in ("Deployment", "Job"):
            # The objects themselves are no pods: what reads these words does not read them there.
            assert not LABELS.keys() & manifest["metadata"]["labels"].keys()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "1", "null", '{"main":1}', '{"main":"a","resources":{"limits":1}}']
)
def test_what_somebody_else_wrote_there_says_nothing(text: str) -> None:
    assert asked_of({"annotations": {ASKED_ANNOTATION: text}}) is None
    assert asked_of({}) is None


def test_annotations_of_a_pods_own_stay() -> None:
    spec = {"containers": [{"name": "a", "image": "b", "resources": {}}]}
    template = pod_template({"x": "y"}, spec, {"own": "1"})
    assert template["metadata"]["annotations"]["own"] == "1"
    assert template["metadata"]["labels"]["x"] == "y"
