"""The settings of the machine's kernel: a node has its own, and a snapshot looks at them."""

import os
import subprocess
from pathlib import Path

import pytest

from laptime_cluster import namespaces, places, snapshot

PANIC = Path("/proc/sys/kernel/panic")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_what_a_node_sets_of_the_kernel_stays_in_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "STATE", tmp_path)
    (node,) = places.make_nodes(1, [0])
    before = PANIC.read_text()
    commands = [
        *namespaces._settings_of_its_own(node),
        # Not where it would be the machine's.
        *(
            f'[ "$(cat {setting})" = "{setting.read_text().strip()}" ] && '
            f'[ "$(stat --file-system --format=%T {setting})" != proc ] && echo 11 >{setting}'
            for setting in namespaces._OF_THE_MACHINE
        ),
        *(f"cat {setting}" for setting in namespaces._OF_THE_MACHINE),
    ]
    said = subprocess.check_output(
        ["unshare", "--mount", "sh", "-ec", "\n".join(commands)], text=True
    )
    assert said.split() == ["11"] * len(namespaces._OF_THE_MACHINE)
    assert PANIC.read_text() == before


def test_a_snapshot_has_the_settings_of_the_kernel() -> None:
    settings = snapshot.take()["settings"]
    assert f"kernel.panic = {PANIC.read_text().strip()}" in settings
    keys = {line.partition(" = ")[0] for line in settings}
    assert {"vm.overcommit_memory", "kernel.panic_on_oops", "kernel.keys.root_maxkeys"} <= keys
