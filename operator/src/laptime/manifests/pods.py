"""What all pods of a run share: the restricted security level, probes, volumes, environment."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from laptime.api import GROUP
from laptime.api.placement import Nodes
from laptime.api.resources import Resources, quantity
from laptime.manifests.context import RunContext
from laptime.manifests.objects import (
    COMPONENT_LABEL,
    TRIAL_LABEL,
    UID_LABEL,
    Component,
    Manifest,
    content_hash,
)
from laptime.manifests.undisturbed import pod_template

USER_ID = 10001
"""User and group of every image of Laptime."""
POD_ADDRESS = "POD_IP"

# A Python of ours takes 55 MiB, and the answer that it checks may have 8 MiB of JSON.
_HELPER_REQUESTS = {"cpu": "50m", "memory": "64Mi"}
_HELPER_LIMITS = {"cpu": "1", "memory": "512Mi"}
_HELPER_NEEDS = "128Mi"

CONFIG_HASH_ANNOTATION = f"{GROUP}/config-hash"

_WISHED = "preferredDuringSchedulingIgnoredDuringExecution"
_NEEDED = "requiredDuringSchedulingIgnoredDuringExecution"


NODE_GONE_SECONDS = 60
"""So long after the cluster has found out that a node is gone (some 50 s) its pods are given up and
made on another one; with a node that comes back sooner they go on."""
_NODE_GONE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")

_LINUX = {"kubernetes.io/os": "linux"}
"""Labels of the nodes that there are images for; a cluster may have others, of Windows."""


def pod_spec(
    ctx: RunContext,
    containers: Sequence[Manifest],
    *,
    init_containers: Sequence[Manifest] = (),
    volumes: Sequence[Manifest] = (),
    restart_policy: str = "Always",
    grace_seconds: int = 5,
    own_user: bool = True,
    user: int | None = None,
) -> Manifest:
    """Return a pod spec of the restricted Pod Security level, without any reach into the cluster.

    With `own_user` false the image decides which user it runs as, as long as it is not root, or
    `user` says it. Where the cluster chooses the users of pods, nothing here says any.
    """
    runs_as = USER_ID if own_user else user
    if ctx.foreign_users:
        runs_as = None
    spec: Manifest = {
        "automountServiceAccountToken": False,
        # Variables of other Services would come into the environment of what is measured.
        "enableServiceLinks": False,
        "restartPolicy": restart_policy,
        "terminationGracePeriodSeconds": grace_seconds,
        "securityContext": {
            "runAsNonRoot": True,
            **({"runAsUser": runs_as, "runAsGroup": runs_as} if runs_as else {}),
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": list(containers),
        "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}}, *volumes],
    }
    if init_containers:
        spec["initContainers"] = list(init_containers)
    secrets = [*ctx.images.pull_secrets, *(one.name for one in ctx.spec.image_pull_secrets)]
    if secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in dict.fromkeys(secrets)]
    return spec


def placed(
    ctx: RunContext,
    component: Component | str,
    pod: Manifest,
    others: Sequence[Mapping[str, str]] = (),
    *,
    of_trial: bool,
) -> Manifest:
    """Return a pod spec with the rules for where the pod of a component goes.

    What is driven is together, so that there is room for generators on another node. Several
    generators are apart, so that each has as much. All are wishes: on one node they say nothing.
    `others` are labels of what is driven beside the run's own pods. What is made for a trial
    (`of_trial`) belongs on the nodes of the run's first one; what stays for all of them would
    rather be where it was, when it has to be made anew.
    """
    drives = component in _DRIVING
    rotates = ctx.spec.nodes is Nodes.ROTATE
    # Where servers go from node to node, what else is driven neither follows nor holds them.
    kind = _DRIVEN_APART if rotates and not drives else _DRIVEN
    driven = [kind | {"matchLabels": {UID_LABEL: ctx.uid}}]
    driven += [{"matchLabels": dict(labels)} for labels in others]
    wish = {_WISHED: [_beside(selector, 100) for selector in driven]}
    several = ctx.spec.generator.parallelism if component == Component.GENERATOR else 1
    if several > 1:
        # All others together weigh less than one pod that is driven.
        wish[_WISHED].append(_beside({"matchLabels": ctx.selector(component)}, 100 // several))
    affinity: Manifest = {"podAntiAffinity" if drives else "podAffinity": wish}
    goes_round = rotates and component == Component.SERVER
    if goes_round:
        affinity = {}
    if ctx.together and component == Component.SERVER and not _follows_others(ctx, component):
        # On two nodes they would not have the same machine.
        need = {_NEEDED: [_pair(ctx, component)]}
        affinity = {"podAffinity": {**affinity.get("podAffinity", {}), **need}}
    elif ctx.together and component in _PAIRED and several == 1:
        beside = {"weight": 100, "podAffinityTerm": _pair(ctx, component)}
        wishes = affinity.get("podAffinity", {}).get(_WISHED, [])
        affinity["podAffinity"] = {_WISHED: [*wishes, beside]}
    nodes = ctx.places.nodes.get(str(component), ())
    if nodes:
        affinity["nodeAffinity"] = _on(nodes, ctx.places.firm and of_trial)
    elif goes_round and ctx.places.avoided:
        affinity["nodeAffinity"] = _elsewhere(ctx.places.avoided)
    return ruled(ctx, component, {**pod, "affinity": affinity})


def on_node(ctx: RunContext, component: Component | str, pod: Manifest, node: str) -> Manifest:
    """Return a pod spec that has to go to a node, with what the placement says of its part."""
    return ruled(ctx, component, {**pod, "affinity": {"nodeAffinity": _on((node,), firm=True)}})


def ruled(ctx: RunContext, component: Component | str, pod: Manifest) -> Manifest:
    """Return a pod spec with what the run's placement says of the pods of a component.

    All that is asked for holds at once: the rules of the placement, and those of the trials. What
    the placement does not say of nodes that are gone is said here, and that nodes are of Linux.
    """
    rules = {} if ctx.placement is None else ctx.placement.of(component)
    affinity = _both(pod.get("affinity") or {}, rules.get("affinity") or {})
    tolerations = [*(rules.get("tolerations") or []), *_leaving(rules.get("tolerations") or [])]
    return {
        **pod,
        **rules,
        "nodeSelector": {**_LINUX, **(rules.get("nodeSelector") or {})},
        "tolerations": tolerations,
        **({"affinity": affinity} if affinity else {}),
    }


def _leaving(tolerations: Sequence[Manifest]) -> list[Manifest]:
    """Return for how long a pod stays on a node that is gone, of the taints that nothing tolerates.

    The API server says five minutes where nothing is said, longer than a run waits for anything.
    """
    return [
        {
            "key": taint,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": NODE_GONE_SECONDS,
        }
        for taint in _NODE_GONE
        if not any(
            one.get("key") in (None, taint) and one.get("effect") in (None, "NoExecute")
            for one in tolerations
        )
    ]


def _both(one: Manifest, other: Manifest) -> Manifest:
    """Return an affinity that asks for what each of two asks for."""
    found: Manifest = {}
    for kind in sorted({*one, *other}):
        rules = [said for said in (one.get(kind), other.get(kind)) if said]
        wishes = [wish for said in rules for wish in said.get(_WISHED) or []]
        found[kind] = {_WISHED: wishes} if wishes else {}
        needs = [said[_NEEDED] for said in rules if said.get(_NEEDED)]
        if needs and kind == "nodeAffinity":
            # One of the terms has to hold: each of the one with each of the other.
            terms = [need.get("nodeSelectorTerms") or [] for need in needs]
            found[kind][_NEEDED] = {"nodeSelectorTerms": list(map(_term, product(*terms)))}
        elif needs:
            found[kind][_NEEDED] = [term for need in needs for term in need]
    return {kind: said for kind, said in found.items() if said}


def _term(terms: Sequence[Manifest]) -> Manifest:
    keys = sorted({key for term in terms for key in term})
    return {key: [one for term in terms for one in term.get(key) or []] for key in keys}


_DRIVING = frozenset({Component.GENERATOR, Component.PROFILER})
_PAIRED = frozenset({Component.SERVER, Component.GENERATOR})
"""Of which there are two in a duet, which would rather be on one node."""


def _none_of(*components: Component) -> Manifest:
    values = sorted(str(one) for one in components)
    return {"matchExpressions": [{"key": COMPONENT_LABEL, "operator": "NotIn", "values": values}]}


# Whatever is not listed is driven: the services around a server are components of their own.
_DRIVEN = _none_of(*_DRIVING, Component.VERIFIER)
_DRIVEN_APART = _none_of(*_DRIVING, Component.VERIFIER, Component.SERVER)


def _beside(selector: Manifest, weight: int) -> Manifest:
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    return {"weight": weight, "podAffinityTerm": term}


def _follows_others(ctx: RunContext, component: Component | str) -> bool:
    """Return whether its placement has the pods of a component follow others, whatever they are.

    The scheduler then wants pods that all terms are about, and of a pair there are none at first.
    """
    rules = {} if ctx.placement is None else ctx.placement.of(component)
    return bool(((rules.get("affinity") or {}).get("podAffinity") or {}).get(_NEEDED))


def _pair(ctx: RunContext, component: Component | str) -> Manifest:
    selector = {
        "matchLabels": ctx.selector(component),
        # Not of earlier trials, whose node may be gone.
        "matchExpressions": [{"key": TRIAL_LABEL, "operator": "In", "values": [*ctx.together]}],
    }
    return {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}


def _on(nodes: Sequence[str], firm: bool) -> Manifest:
    # By the name of the node: its label `hostname` may be another one. A term has one name.
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        for node in nodes
    ]
    if firm:
        return {_NEEDED: {"nodeSelectorTerms": terms}}
    wishes = [{"weight": 100, "preference": term} for term in terms]
    return {_WISHED: wishes}


def _elsewhere(avoided: Sequence[Sequence[str]]) -> Manifest:
    """Return the wish for a node that no server was on, else for one of fewer repetitions.

    The scheduler scales what the nodes reach so that the best one has 100: where none is new, the
    second wish alone tells them apart.
    """
    wishes = [
        {
            "weight": weight,
            "preference": {
                # A field takes one name a requirement, and all requirements of a term have to hold.
                "matchFields": [
                    {"key": "metadata.name", "operator": "NotIn", "values": [node]}
                    for node in nodes
                ]
            },
        }
        for weight, nodes in zip((99, 1), avoided, strict=False)
    ]
    return {_WISHED: wishes}


def container(
    ctx: RunContext,
    name: str,
    image: str,
    *,
    resources: Manifest,
    command: Sequence[str] = (),
    args: Sequence[str] = (),
    env: Sequence[Manifest] = (),
    ports: Mapping[str, int] | None = None,
    mounts: Mapping[str, str] | None = None,
    startup_probe: Manifest | None = None,
    expand: Callable[[str], str] | None = None,
) -> Manifest:
    """Return a container of the restricted level; `mounts` maps paths to names of volumes.

    Every container has a writable /tmp and nothing else; what is mounted is read-only unless it
    is an emptyDir. Words of command and arguments are what they are; `expand` may leave some of
    them for the kubelet to expand.
    """
    written = expand or literal
    content: Manifest = {
        "name": name,
        "image": image,
        "imagePullPolicy": ctx.images.pull_policy,
        "resources": resources,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        # The last lines of a log say more about a crash than an exit code does.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": volume, "mountPath": path}
            for path, volume in {"/tmp": "tmp", **(mounts or {})}.items()
        ],
    }
    if command:
        content["command"] = [written(word) for word in command]
    if args:
        content["args"] = [written(word) for word in args]
    if env:
        content["env"] = list(env)
    if ports:
        content["ports"] = [
            {"name": port_name, "containerPort": port, "protocol": "TCP"}
            for port_name, port in ports.items()
        ]
    if startup_probe:
        content["startupProbe"] = startup_probe
    return content


def startup_probe(ctx: RunContext, **action: Any) -> Manifest:
    """Return the probe that makes a pod ready, asked every second until it succeeds once.

    Readiness probes would go on during the measurement: an exec probe costs some 5 % of a core,
    and a saturated server that answers its probe late would be taken out of its Service in the
    middle of a trial. After a restart of the container the probe starts again. The kubelet ends a
    container whose probe never succeeds, but only after the run has given it up.
    """
    return {
        **action,
        "periodSeconds": 1,
        "timeoutSeconds": 2,
        "failureThreshold": math.ceil(ctx.spec.startup_seconds) + 60,
    }


def deployment(
    ctx: RunContext,
    component: Component | str,
    name: str,
    pod: Manifest,
    *,
    replicas: int = 1,
    server: str | None = None,
    trial: str | None = None,
    config: Any = None,
    overlap: bool = False,
) -> Manifest:
    """Return a Deployment of at most one pod that is not being deleted.

    `config` is what the pod has mounted: when it changes, the pod is replaced. The old pod is gone
    before the new one starts; with `overlap` it is only told to end before.
    """
    labels = ctx.labels(component, server=server)
    template = pod_template(
        ctx.labels(component, server=server, trial=trial),
        placed(ctx, component, pod, of_trial=trial is not None),
        {CONFIG_HASH_ANNOTATION: content_hash(config)} if config is not None else None,
    )
    return ctx.manifest(
        "apps/v1",
        "Deployment",
        name,
        labels,
        spec={
            "replicas": replicas,
            "revisionHistoryLimit": 0,
            "progressDeadlineSeconds": max(10, math.ceil(ctx.spec.startup_seconds)),
            "strategy": _OVERLAP if overlap else {"type": "Recreate"},
            "selector": {"matchLabels": ctx.selector(component, server=server)},
            "template": template,
        },
    )


_OVERLAP = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


def service(
    ctx: RunContext,
    component: Component | str,
    name: str,
    ports: Mapping[str, int],
    *,
    server: str | None = None,
    also_selected: Mapping[str, str] | None = None,
) -> Manifest:
    """Return a Service for the pods of a component; the ports are those of the pods.

    `also_selected` are further labels that a pod must have.
    """
    return ctx.manifest(
        "v1",
        "Service",
        name,
        ctx.labels(component, server=server),
        spec={
            "type": "ClusterIP",
            "selector": {**ctx.selector(component, server=server), **(also_selected or {})},
            "ports": [
                {"name": port_name, "port": port, "targetPort": port, "protocol": "TCP"}
                for port_name, port in ports.items()
            ],
        },
    )


def config_map(
    ctx: RunContext, component: Component, name: str, data: Mapping[str, str]
) -> Manifest:
    """Return a ConfigMap of the run."""
    return ctx.manifest("v1", "ConfigMap", name, ctx.labels(component), data=dict(data))


def config_volume(name: str, config_map_name: str, paths: Mapping[str, str]) -> Manifest:
    """Return a volume with keys of a ConfigMap; `paths` maps each key to its path."""
    return {
        "name": name,
        "configMap": {
            "name": config_map_name,
            "items": [{"key": key, "path": path} for key, path in paths.items()],
        },
    }


def writable_folders(paths: Sequence[str]) -> tuple[dict[str, str], list[Manifest]]:
    """Return mounts and volumes by which somebody's own image can write to these folders."""
    mounts = {path: f"writable-{number}" for number, path in enumerate(paths)}
    volumes = [{"name": name, "emptyDir": {"sizeLimit": "16Gi"}} for name in mounts.values()]
    return mounts, volumes


def resources(wanted: Resources | None, *, cpu: str, memory: str) -> Manifest:
    """Return the resources of a container.

    What the run sets is request and limit alike, so that the container has exactly that; the rest
    is a small request without a limit, so that the pod takes what is free.
    """
    limits = wanted.to_wire() if wanted else {}
    requests = {"cpu": cpu, "memory": memory, **limits}
    return {"requests": requests, "limits": limits} if limits else {"requests": requests}


def helper_resources(beside: Resources | None = None) -> Manifest:
    """Return the resources of a container of Laptime's own that nothing is measured in.

    It always has limits, which a ResourceQuota may ask of every container. In a pod whose part says
    its resources (`beside`) it has the same, so that the pod asks for no more and stays in the
    class Guaranteed; only memory it has as much as it needs.
    """
    said = beside.to_wire() if beside is not None else {}
    if quantity(said.get("memory", _HELPER_NEEDS)) < quantity(_HELPER_NEEDS):
        said["memory"] = _HELPER_NEEDS
    return {"requests": _HELPER_REQUESTS | said, "limits": _HELPER_LIMITS | said}


def variable(name: str, value: str) -> Manifest:
    """Return an environment variable with exactly this value."""
    return {"name": name, "value": literal(value)}


def pod_address_variable() -> Manifest:
    """Return POD_IP: what listens on one family of addresses knows by it which the pod's is."""
    return {"name": POD_ADDRESS, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}


def secret_variable(name: str, secret: str, key: str, *, optional: bool = False) -> Manifest:
    """Return an environment variable with the value of a key of a Secret.

    Where it is `optional` and the Secret has no such key, the container has no such variable.
    """
    chosen = {"name": secret, "key": key, **({"optional": True} if optional else {})}
    return {"name": name, "valueFrom": {"secretKeyRef": chosen}}


def literal(text: str) -> str:
    """Return the text so that the kubelet, which expands `$(NAME)`, gives it back as it was."""
    return text.replace("$", "$$")
