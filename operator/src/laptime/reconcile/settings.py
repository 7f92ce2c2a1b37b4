"""What the chart tells the operator: images, names, where it runs."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path

from laptime.manifests.context import DOMAIN, ImageSet, Network
from laptime.manifests.objects import Manifest
from laptime.measure.prometheus_access import PrometheusAccess
from laptime.reconcile.history import HistoryLimits
from laptime.reconcile.placements import Placements
from laptime.reconcile.turns import Turns

RESOLVER_FILE = Path("/etc/resolv.conf")
_USUAL_DOMAIN = "cluster.local"


@dataclass(frozen=True)
class Settings:
    """Settings of one operator process."""

    images: ImageSet
    cluster_domain: str = _USUAL_DOMAIN
    service_account: str = "laptime-system:laptime-operator"
    runs_role: str = "laptime-runs"
    lease_namespace: str | None = None
    """Where operators hold a lease so that one of them is at work; None: there is one alone."""
    identity: str = "laptime-operator"
    """Name of the pod."""
    prometheus: PrometheusAccess | None = None
    """The Prometheus that watches the pods of runs, and how it is asked; None: nobody watches."""
    network: Network | None = None
    """What pods of runs may reach and be reached from; None: they have no NetworkPolicies."""
    foreign_users: bool = False
    """Whether the cluster chooses which users the pods of runs run as."""
    extensions: frozenset[str] = frozenset()
    """Extensions of Postgres that scenarios may ask for."""
    history: HistoryLimits = field(default_factory=HistoryLimits)
    """How many finished runs each namespace keeps."""
    turns: Turns = field(default_factory=Turns)
    """Priorities and caps of namespaces."""
    placements: Placements = field(default_factory=Placements)
    """Where the pods of runs may go, by name."""
    log_level: str = "INFO"
    metrics_port: int = 8081
    liveness_endpoint: str = "http://0.0.0.0:8080/healthz"

    def how_to_enable(self, namespace: str) -> str:
        """Return what an administrator does so that runs of a namespace can be measured."""
        return (
            f"the operator may not work in namespace {namespace}. Name it in runNamespaces of the "
            "chart; or name it in watching.namespaces there, without which nobody watches its "
            "pods, and its administrator allows it "
            f"with: kubectl create rolebinding laptime -n {namespace} "
            f"--clusterrole={self.runs_role} "
            f"--serviceaccount={self.service_account}"
        )


class SettingsError(Exception):
    """A setting is missing or wrong; the message says which and what to write."""


def load_settings() -> Settings:
    """Return the settings from the environment and the file that LAPTIME_IMAGES_FILE names.

    Raises:
        SettingsError: the file is missing or does not have the shape of ImageSet, or a setting has
            not the form that it should have.
    """
    path = Path(os.environ.get("LAPTIME_IMAGES_FILE", "/etc/laptime/images.json"))
    try:
        images = ImageSet.from_wire(json.loads(path.read_text()))
    except FileNotFoundError:
        raise SettingsError(
            f"{path} does not exist: set LAPTIME_IMAGES_FILE to a JSON file with the images "
            "(the chart mounts one)"
        ) from None
    except (ValueError, TypeError, KeyError) as error:
        raise SettingsError(f"{path} is not a set of images: {error}") from error
    namespace = os.environ.get("LAPTIME_NAMESPACE", "laptime-system")
    return Settings(
        images=images,
        cluster_domain=os.environ.get("LAPTIME_CLUSTER_DOMAIN") or _cluster_domain(namespace),
        service_account=(
            f"{namespace}:{os.environ.get('LAPTIME_SERVICE_ACCOUNT', 'laptime-operator')}"
        ),
        lease_namespace=os.environ.get("LAPTIME_LEASE_NAMESPACE") or None,
        identity=os.environ.get("HOSTNAME") or "laptime-operator",
        runs_role=os.environ.get("LAPTIME_RUNS_ROLE", "laptime-runs"),
        prometheus=_prometheus(
            os.environ.get("LAPTIME_PROMETHEUS_URL") or "",
            os.environ.get("LAPTIME_PROMETHEUS_ACCESS") or "{}",
        ),
        network=_network(os.environ.get("LAPTIME_NETWORK") or ""),
        foreign_users=_switch("LAPTIME_FOREIGN_USERS"),
        extensions=frozenset((os.environ.get("LAPTIME_EXTENSIONS") or "").split()),
        history=_history(os.environ.get("LAPTIME_HISTORY") or "{}"),
        turns=_turns(os.environ.get("LAPTIME_RUNS") or "{}"),
        placements=_placements(os.environ.get("LAPTIME_PLACEMENTS") or "{}"),
        log_level=os.environ.get("LAPTIME_LOG_LEVEL", "INFO").upper(),
        metrics_port=_port("LAPTIME_METRICS_PORT", 8081),
        liveness_endpoint=os.environ.get("LAPTIME_LIVENESS") or _liveness(),
    )


def _cluster_domain(namespace: str) -> str:
    """Return the domain of the cluster's Services, by what the kubelet has each pod search."""
    own = f"{namespace}.svc."
    names = [word.lower().rstrip(".") for word in _resolver().split()]
    found = [name.removeprefix(own) for name in names if name.startswith(own)]
    return next(filter(DOMAIN.fullmatch, found), _USUAL_DOMAIN)


def _nameservers() -> list[Manifest]:
    """Return whom the kubelet has each pod ask for names, as peers of a NetworkPolicy.

    A node may answer there itself, whom no selector of pods matches.
    """
    found: list[IPv4Address | IPv6Address] = []
    for line in _resolver().splitlines():
        match line.split():
            case ["nameserver", text, *_]:
                # What is no address is no range either, nor is one with the name of a link (%eth0).
                with suppress(ValueError):
                    address = ip_address(text)
                    if isinstance(address, IPv6Address):
                        # An address of IPv4 by that of IPv6 is asked by IPv4 all the same.
                        address = address.ipv4_mapped or address
                    if "%" not in text and not address.is_loopback:
                        found.append(address)
    return [{"ipBlock": {"cidr": str(ip_network(one))}} for one in dict.fromkeys(found)]


def _resolver() -> str:
    return RESOLVER_FILE.read_text(errors="replace") if RESOLVER_FILE.exists() else ""


def _prometheus(url: str, text: str) -> PrometheusAccess | None:
    if not url:
        return None
    try:
        return PrometheusAccess.from_wire(url, json.loads(text))
    except (ValueError, TypeError, AttributeError) as error:
        # Not what was written: somebody may have written credentials there. Nor the error before
        # this one, which has it.
        raise SettingsError(
            "LAPTIME_PROMETHEUS_URL and LAPTIME_PROMETHEUS_ACCESS: write what the chart's value "
            f"prometheus says ({error})"
        ) from None


def _network(text: str) -> Network | None:
    if not text:
        return None
    try:
        document = json.loads(text)
        dns = tuple(document["dns"])
        if dns:
            # Without any, everybody's port 53 is allowed.
            dns += tuple(one for one in _nameservers() if one not in dns)
        return Network(dns, tuple(document["watchers"]))
    except (ValueError, KeyError, TypeError) as error:
        raise SettingsError(
            f'LAPTIME_NETWORK is {text!r}: write {{"dns": [...], "watchers": [...]}} ({error!r})'
        ) from error


def _switch(name: str) -> bool:
    text = os.environ.get(name) or "false"
    if text not in ("true", "false"):
        raise SettingsError(f"{name} is {text!r}: write true or false")
    return text == "true"


def _history(text: str) -> HistoryLimits:
    try:
        document = json.loads(text)
        successful, failed = (_limit(document.get(key)) for key in ("successful", "failed"))
        age = _limit(document.get("minimumAgeSeconds", 86400)) or 0
        return HistoryLimits(successful, failed, timedelta(seconds=age))
    except (ValueError, TypeError, AttributeError) as error:
        raise SettingsError(
            f'LAPTIME_HISTORY is {text!r}: write {{"successful": 100, "failed": 20, '
            f'"minimumAgeSeconds": 86400}} ({error!r})'
        ) from error


def _limit(number: int | None) -> int | None:
    if number is not None and int(number) < 0:
        raise ValueError(f"{number} is less than nothing")
    return None if number is None else int(number)


def _turns(text: str) -> Turns:
    try:
        return Turns.from_wire(json.loads(text))
    except (ValueError, TypeError, AttributeError) as error:
        raise SettingsError(
            f"LAPTIME_RUNS is {text!r}: write what the chart's value runs says ({error})"
        ) from error


def _placements(text: str) -> Placements:
    try:
        return Placements.from_wire(json.loads(text))
    except (ValueError, TypeError, AttributeError) as error:
        raise SettingsError(
            f"LAPTIME_PLACEMENTS is {text!r}: write what the chart's value placements says "
            f"({error})"
        ) from error


def _liveness() -> str:
    """Return where kopf says that it lives: at all addresses of the family that the pod has."""
    host = "[::]" if ":" in os.environ.get("POD_IP", "") else "0.0.0.0"
    return f"http://{host}:8080/healthz"


def _port(name: str, otherwise: int) -> int:
    text = os.environ.get(name) or str(otherwise)
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise SettingsError(f"{name} is {text!r}: write a TCP port such as {otherwise}")
    return int(text)
