"""The machines of a cluster in words, without their names. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from laptime.api.resources import quantity

# Also the name of the product, or of every machine: to take them out would spoil the text.
_NO_SECRETS = frozenset({"laptime", "localhost"})


def describe_nodes(nodes: Sequence[Mapping[str, Any]], cpus_by_boot: Mapping[str, str]) -> str:
    """Return CPUs, memory, kernel and Kubernetes of the nodes, as the API server has them.

    `cpus_by_boot` names the CPU of machines by the id of their boot: the API server does not know
    it, but a node with the boot id of this machine is this machine. Nodes that are alike are
    counted.
    """
    described: dict[str, int] = {}
    for node in nodes:
        text = _describe(node, cpus_by_boot)
        described[text] = described.get(text, 0) + 1
    return "; ".join(
        text if count == 1 else f"{count} nodes with {text}" for text, count in described.items()
    )


def _describe(node: Mapping[str, Any], cpus_by_boot: Mapping[str, str]) -> str:
    info, capacity = node["status"]["nodeInfo"], node["status"]["capacity"]
    cores = int(capacity["cpu"])
    parts = [
        *filter(None, [cpus_by_boot.get(info.get("bootID", ""))]),
        f"{cores} {'core' if cores == 1 else 'cores'} ({info['architecture']})",
        f"{quantity(capacity['memory']) / 2**30:.1f} GiB of memory",
        f"Linux {info['kernelVersion']}",
        f"Kubernetes {info['kubeletVersion']}",
    ]
    return ", ".join(parts)


def cpu_model(cpuinfo: str) -> str | None:
    """Return the model from the text of /proc/cpuinfo; None where the kernel does not say it."""
    found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return " ".join(found[1].split()) if found else None


def without_names(text: str, names: Iterable[str]) -> str:
    """Return the text with each name of a machine replaced by `node`."""
    known = {part for name in names for part in (name, name.partition(".")[0])}
    known -= {"", *_NO_SECRETS}
    for name in sorted(known, key=len, reverse=True):
        text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", "node", text)
    return text
