"""What the chart tells the operator, beside what has tests of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from laptime.reconcile.settings import SettingsError, load_settings
from tests.manifests.runs import IMAGES


@pytest.fixture(autouse=True)
def images(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file of images."""
    file = tmp_path / "images.json"
    file.write_text("{}")
    monkeypatch.setenv("LAPTIME_IMAGES_FILE", str(file))
    monkeypatch.setattr("laptime.reconcile.settings.ImageSet.from_wire", lambda _: IMAGES)


def test_laptime_chooses_users_unless_the_cluster_does(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().foreign_users is False
    monkeypatch.setenv("LAPTIME_FOREIGN_USERS", "true")
    assert load_settings().foreign_users is True
    monkeypatch.setenv("LAPTIME_FOREIGN_USERS", "yes")
    with pytest.raises(SettingsError, match="LAPTIME_FOREIGN_USERS is 'yes': write true or false"):
        load_settings()


def test_kopf_answers_on_the_family_of_addresses_that_the_pod_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert load_settings().liveness_endpoint == "http://0.0.0.0:8080/healthz"
    monkeypatch.setenv("POD_IP", "2001:db8::7")
    assert load_settings().liveness_endpoint == "http://[::]:8080/healthz"


OF_A_POD = "search tools.svc.{0} svc.{0} {0} of.the.node\nnameserver 10.96.0.10\noptions ndots:5\n"


@pytest.mark.parametrize(
    ("written", "resolver", "domain"),
    [
        ("", OF_A_POD.format("k8s.example"), "k8s.example"),
        ("", OF_A_POD.format("K8s.Example."), "k8s.example"),
        ("", OF_A_POD.format("internal"), "internal"),
        ("other.example", OF_A_POD.format("k8s.example"), "other.example"),
        # No DNS of a cluster: a machine, or a kubelet that was told no domain.
        ("", "nameserver 192.0.2.1\n", "cluster.local"),
        ("", "search svc.of.the.node of.the.node\n", "cluster.local"),
        ("", "search tools.svc.no_domain\n", "cluster.local"),
        ("", None, "cluster.local"),
    ],
)
def test_the_domain_of_the_cluster_is_that_of_its_own_pod_unless_the_chart_says_another(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    written: str,
    resolver: str | None,
    domain: str,
) -> None:
    file = tmp_path / "resolv.conf"
    if resolver is not None:
        file.write_text(resolver)
    monkeypatch.setattr("laptime.reconcile.settings.RESOLVER_FILE", file)
    monkeypatch.setenv("LAPTIME_NAMESPACE", "tools")
    monkeypatch.setenv("LAPTIME_CLUSTER_DOMAIN", written)
    assert load_settings().cluster_domain == domain


POD: dict[str, object] = {"podSelector": {}}
LINK = {"ipBlock": {"cidr": "169.254.20.10/32"}}


@pytest.mark.parametrize(
    ("dns", "resolver", "added"),
    [
        ([POD], OF_A_POD, ["10.96.0.10/32"]),
        ([POD, LINK], "nameserver 169.254.20.10\nnameserver fd00:10::a\n", ["fd00:10::a/128"]),
        # A machine's own, and what is no address that a policy could name.
        ([POD], "nameserver 127.0.0.53\nnameserver ::1\nnameserver ::ffff:127.0.0.1\n", []),
        ([POD], "nameserver\nnameserver fe80::1%eth0\nnameserver dns.example\n", []),
        # Whoever is named twice, or by both families, is one peer, in the order of the file.
        (
            [POD],
            "".join(
                f"nameserver {x}\n" for x in ("::ffff:a00:1", "fd00::a", "10.0.0.1", "fd00::a")
            ),
            ["10.0.0.1/32", "fd00::a/128"],
        ),
        ([POD], None, []),
        # All may be asked anyway.
        ([], OF_A_POD, []),
    ],
)
def test_pods_of_runs_may_ask_whom_the_kubelet_names_to_each_pod(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    dns: list[object],
    resolver: str | None,
    added: list[str],
) -> None:
    """The node itself may answer there, whom no selector of pods matches."""
    file = tmp_path / "resolv.conf"
    if resolver is not None:
        file.write_text(resolver)
    monkeypatch.setattr("laptime.reconcile.settings.RESOLVER_FILE", file)
    monkeypatch.setenv("LAPTIME_NETWORK", json.dumps({"dns": dns, "watchers": []}))
    network = load_settings().network
    assert network is not None
    assert list(network.dns) == [*dns, *({"ipBlock": {"cidr": one}} for one in added)]
