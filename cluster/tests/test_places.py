"""What each node has of the machine, and what no two of them share."""

import json
import os
import re
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path

import pytest

from laptime_cluster import configuration, places
from laptime_cluster.cgroups import parse_cpus
from laptime_cluster.layout import SOURCE
from laptime_cluster.places import make_nodes, shares


def test_cpus_are_dealt_out_whole_and_neighbours_stay_together() -> None:
    assert shares((0, 1, 2, 3, 8, 9), 3) == [(0, 1), (2, 3), (8, 9)]
    assert shares(range(8), 3) == [(0, 1), (2, 3, 4), (5, 6, 7)]
    assert shares((0, 1), 1) == [(0, 1)]


def test_nodes_share_cpus_where_there_are_too_few() -> None:
    assert shares((0, 1), 3) == [(0,), (1,), (0,)]


def test_a_list_of_cpus_is_read() -> None:
    assert parse_cpus("0-2,5\n") == (0, 1, 2, 5)


def test_no_two_nodes_have_a_path_or_an_address_in_common() -> None:
    nodes = make_nodes(100, range(4))
    for what in (
        *("name", "addresses", "pod_ranges", "port", "state", "run", "cgroup"),
        *("network_namespace", "mount_namespace"),
    ):
        assert len({getattr(node, what) for node in nodes}) == 100, what
    written = [path for node in nodes for path in configuration.files([node])]
    of_control = len(configuration.files([]))
    assert len(set(written)) == len(written) - 99 * of_control


# In a process of its own: a module knows the addresses from its start.
CONFIGURED = """
from laptime_cluster import components, configuration, places
nodes = places.make_nodes(3, (0, 1))
print(*configuration.files(nodes).values(), *map(repr, components.every(nodes)))
"""


@pytest.mark.parametrize(("family", "versions"), [("ipv4", {4}), ("ipv6", {6}), ("dual", {4, 6})])
def test_what_daemons_are_told_has_addresses_of_the_family_alone(
    family: str, versions: set[int]
) -> None:
    own = {"LAPTIME_CLUSTER_NAME": "laptime-unheard-of", "LAPTIME_CLUSTER_FAMILY": family}
    said = subprocess.check_output(
        [sys.executable, "-c", CONFIGURED], cwd=SOURCE, env={**os.environ, **own}, text=True
    )
    found = {ip_address(word) for word in re.findall(r"fd6c:[0-9a-f:]+|\d+\.\d+\.\d+\.\d+", said)}
    used = {one for one in found if not (one.is_loopback or one.is_unspecified)}
    assert {one.version for one in used} == versions


def test_one_node_has_all_of_the_machine_and_of_two_each_has_half() -> None:
    def kubelet(count: int) -> dict[str, object]:
        (*_, node) = make_nodes(count, (0, 1))
        text = configuration.files([node])[configuration.kubelet_file(node)]
        content: dict[str, object] = json.loads(text)
        return content

    assert "systemReserved" not in kubelet(1)
    reserved = kubelet(2)["systemReserved"]
    assert isinstance(reserved, dict)
    assert int(reserved["memory"].removesuffix("Mi")) > 100


def test_later_commands_know_which_nodes_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "NODES", tmp_path / "nodes.json")
    assert places.nodes() == ()
    made = places.record(3, (0, 1))
    assert places.nodes() == made
    assert [node.name for node in made] == ["laptime", "laptime-2", "laptime-3"]
