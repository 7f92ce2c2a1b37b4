"""What every builder knows: the run, its scenario, the images.

The API server has checked the spec already. The context checks again whatever the builders write
into a configuration file or a name, so that no builder depends on a schema that an administrator
may have changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from laptime.api import API_VERSION, KIND
from laptime.api.images import RunImages, by_its_digest
from laptime.api.server import Server
from laptime.api.side_services import MAX_SIDE_SERVICE_NAME
from laptime.api.spec import MAX_RUN_NAME_LENGTH, BenchmarkRunSpec
from laptime.api.storage import DUET_VERSION, PLACED_VERSION, STORED_VERSION, USUAL_VERSION
from laptime.catalog import Scenario
from laptime.manifests.objects import (
    COMPONENT_LABEL,
    HASH_ANNOTATION,
    LOAD_LABEL,
    MAX_NAME_LENGTH,
    PLACEMENT_LABEL,
    RUN_LABEL,
    SERVER_LABEL,
    TRIAL_LABEL,
    UID_LABEL,
    Component,
    Manifest,
    content_hash,
)
from laptime.manifests.placement import Placement
from laptime.plan import Places

PullPolicy = Literal["Always", "IfNotPresent", "Never"]

MAX_MEMBER_LENGTH = 20
"""Longest name of a server or a load."""

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True)
class ImageSet:
    """References of all images that a run needs."""

    postgres: str
    pgbouncer: str
    haproxy: str
    generator: str
    operator: str
    servers: Mapping[str, str]
    """By the name of the preset."""
    exporter: str | None = None
    """Stands beside Postgres and PgBouncer when Prometheus watches; None: it does not."""
    upstream: str | None = None
    """The stub that servers ask; only runs with an upstream need it."""
    delay: str | None = None
    """What makes a network longer; only runs with a delay need it."""
    pull_policy: PullPolicy = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()
    """Names of Secrets in the namespace of the run."""

    @classmethod
    def from_wire(cls, document: Mapping[str, Any]) -> ImageSet:
        """Return the images that a JSON document names; its keys are those of the chart.

        Raises:
            ValueError: an image is missing or a field is unknown.
        """
        known = {
            "postgres": "postgres",
            "pgbouncer": "pgbouncer",
            "haproxy": "haproxy",
            "generator": "generator",
            "operator": "operator",
            "servers": "servers",
            "exporter": "exporter",
            "upstream": "upstream",
            "delay": "delay",
            "pullPolicy": "pull_policy",
            "pullSecrets": "pull_secrets",
        }
        unknown = sorted(set(document) - set(known))
        missing = [key for key in list(known)[:6] if not document.get(key)]
        if unknown or missing:
            raise ValueError(f"fields that are missing: {missing}, that are unknown: {unknown}")
        fields = {known[key]: value for key, value in document.items()}
        for optional in ("exporter", "upstream", "delay"):
            fields[optional] = fields.get(optional) or None
        fields["pull_secrets"] = tuple(fields.get("pull_secrets") or ())
        return cls(**fields)

    def pins(self, spec: BenchmarkRunSpec) -> RunImages:
        """Return the images that a run has from its first pod to its last."""
        presets = {server.preset for server in spec.servers if server.preset is not None}
        return RunImages(
            postgres=self.postgres,
            pgbouncer=self.pgbouncer,
            haproxy=self.haproxy,
            generator=self.generator,
            operator=self.operator,
            servers={name: self.servers[name] for name in sorted(presets & set(self.servers))},
            exporter=self.exporter,
            upstream=self.upstream,
            delay=self.delay,
        )

    def pinned(self, images: RunImages | None) -> ImageSet:
        """Return the images that a run was begun with, pulled as is said now; None: not begun."""
        if images is None:
            return self
        return replace(self, **images.model_dump())

    def by_tag(self, server: Server) -> bool:
        """Return whether another image may come under the name that a server has for its own."""
        own = server.image is not None and not by_its_digest(server.image)
        return own and self.pull_policy != "Never"

    def of(self, server: Server) -> str:
        """Return the image of a server; ValueError if its preset has none."""
        if server.image is not None:
            return server.image
        image = self.servers.get(server.preset or "")
        if image is None:
            raise ValueError(
                f"server {server.name}: there is no image for preset {server.preset}; "
                f"there is one for {', '.join(sorted(self.servers))}"
            )
        return image


@dataclass(frozen=True)
class Network:
    """What the administrator lets all runs reach, and be reached from."""

    dns: tuple[Mapping[str, Any], ...] = ()
    """Peers of a NetworkPolicy that answer on port 53; empty: anybody."""
    watchers: tuple[str, ...] = ()
    """Namespaces with a Prometheus."""


@dataclass(frozen=True)
class Target:
    """Where a Service of the namespace leads to that Laptime does not deploy."""

    port: int
    """Of the Service."""
    pod_port: int | str
    """Of its pods: a number, or the name that each of them has for one."""
    selector: Mapping[str, str]
    """The labels of its pods."""

    @property
    def fingerprint(self) -> str:
        """16 hex digits that stand for it: what was checked is what is measured."""
        return content_hash([self.port, self.pod_port, dict(self.selector)])


@dataclass(frozen=True)
class RunContext:
    """One run, with everything that its objects depend on.

    Raises:
        ValueError: a name is not fit for a configuration file or the name of an object.
    """

    name: str
    namespace: str
    uid: str
    spec: BenchmarkRunSpec
    scenario: Scenario
    images: ImageSet
    cluster_domain: str = field(default="cluster.local")
    network: Network | None = None
    """None: the administrator has switched NetworkPolicies off."""

    foreign_users: bool = False
    """Whether the cluster chooses which users pods run as, as OpenShift does."""
    longest_seconds: float | None = None
    """How long it may have the lane; None: as long as it takes."""
    placement: Placement | None = None
    """What the administrator says of where its pods go; None: nothing."""
    placement_problem: tuple[str, str] | None = None
    """Why it has not the placement that it should have: CamelCase reason and message."""
    places: Places = field(default_factory=Places)
    """Where the next trial belongs."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """What tags stand for throughout the run: images by their digests, by the names of servers."""
    together: tuple[str, ...] = ()
    """The attempts that are made at the same time now, where it is more than one."""
    targets: Mapping[str, Target] = field(default_factory=dict)
    """By the names of servers that are Services: those that can be driven now."""
    secret_owners: Mapping[str, str] = field(default_factory=dict)
    """The uids of the ConfigMaps that Secrets go with and are called by, by their names."""

    def __post_init__(self) -> None:
        _check("run", self.name, _LABEL, MAX_RUN_NAME_LENGTH)
        _check("namespace", self.namespace, _NAMESPACE, MAX_NAME_LENGTH)
        _check("cluster domain", self.cluster_domain, DOMAIN, 253)
        for server in self.spec.servers:
            _check("server", server.name, _LABEL, MAX_MEMBER_LENGTH)
            if server.service is not None:
                _check("service", server.service.name, _NAMESPACE, MAX_NAME_LENGTH)
        for one in self.scenario.services:
            _check("service of the scenario", one.name, _LABEL, MAX_SIDE_SERVICE_NAME)
        for load in self.spec.loads:
            _check("load", load.name, _LABEL, MAX_MEMBER_LENGTH)

    @property
    def stored_version(self) -> int:
        """The version of what is stored of it: the newest only where an older one goes wrong."""
        if self.spec.topology.own_databases:
            return STORED_VERSION
        if self.spec.duet:
            return DUET_VERSION
        laned = self.placement is not None and self.placement.lane is not None
        return PLACED_VERSION if laned or self.spec.nodes is not None else USUAL_VERSION

    def object_name(self, *parts: str) -> str:
        """Return the name of an object of the run, such as `demo-server-axum`."""
        name = "-".join((self.name, *parts))
        if len(name) > MAX_NAME_LENGTH:
            raise ValueError(f"{name}: longer than {MAX_NAME_LENGTH} characters")
        return name

    def service_host(self, *parts: str) -> str:
        """Return the fully qualified name of a Service of the run."""
        return f"{self.object_name(*parts)}.{self.namespace}.svc.{self.cluster_domain}"

    def labels(
        self,
        component: Component | str,
        *,
        server: str | None = None,
        load: str | None = None,
        trial: str | None = None,
    ) -> dict[str, str]:
        """Return the labels of an object and of its pods."""
        return {
            "app.kubernetes.io/managed-by": "laptime",
            "app.kubernetes.io/part-of": self.name,
            **self.selector(component, server=server),
            **({LOAD_LABEL: load} if load else {}),
            **({TRIAL_LABEL: trial} if trial else {}),
            **({PLACEMENT_LABEL: self.placement.name} if self.placement else {}),
        }

    def selector(self, component: Component | str, *, server: str | None = None) -> dict[str, str]:
        """Return the labels that select the pods of a component; they never change.

        Pods of a deleted run of the same name, which may still be ending, are none of them.
        """
        return {
            RUN_LABEL: self.name,
            UID_LABEL: self.uid,
            COMPONENT_LABEL: str(component),
            **({SERVER_LABEL: server} if server else {}),
        }

    def manifest(
        self, api_version: str, kind: str, name: str, labels: Mapping[str, str], **content: Any
    ) -> Manifest:
        """Return a whole object: owned by the run, labelled, and with the hash of itself.

        The owner reference does not block the deletion of the run, and Kubernetes itself deletes
        the object afterwards, also while the operator is down.
        """
        manifest: Manifest = {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": dict(labels),
                "ownerReferences": [
                    {
                        "apiVersion": API_VERSION,
                        "kind": KIND,
                        "name": self.name,
                        "uid": self.uid,
                        "controller": True,
                        "blockOwnerDeletion": False,
                    }
                ],
            },
            **content,
        }
        manifest["metadata"]["annotations"] = {HASH_ANNOTATION: content_hash(manifest)}
        return manifest


def _check(what: str, name: str, pattern: re.Pattern[str], longest: int) -> None:
    if len(name) > longest or not pattern.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a {what} (at most {longest} characters)")
