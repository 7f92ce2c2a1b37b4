"""Where a run was measured, as far as the cluster still says it afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from laptime.api.results import TrialResult

if TYPE_CHECKING:
    from laptime.cli.cluster_access import Cluster
    from laptime.cli.runs import Run


def environment_of(cluster: Cluster, found: Run, trials: Sequence[TrialResult]) -> dict[str, str]:
    """Return names and values; what the user may not read, or what is gone, is left out."""
    used = {node.node for trial in trials if trial.usage for node in trial.usage.nodes}
    environment = {
        f"Image of {server.name}": server.image
        for server in found.status.servers or []
        if server.image
    }
    environment |= cluster.facts(sorted(used))
    if environment:
        environment["Images, nodes and Kubernetes"] = (
            "as the cluster named them when this report was written"
        )
    return environment
