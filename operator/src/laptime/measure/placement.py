"""Whether trials that are compared ran on the same nodes, and on the same machines. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from laptime.api import doubts
from laptime.api.doubts import Said
from laptime.api.placement import Nodes
from laptime.api.results import TrialResult
from laptime.api.text import shown
from laptime.measure.validity import Judgement, doubted
from laptime.plan import in_time


def on_the_same_nodes(
    results: Sequence[TrialResult], deployed: Collection[str], nodes: Nodes | None = None
) -> list[TrialResult]:
    """Return results, doubtful where a part ran on other nodes than in the first trial.

    Where nodes rotate it is the first of each repetition that says where. All servers that Laptime
    deploys (`deployed`) are compared with each other, so that they belong on the same nodes too. A
    Service is where somebody else put it: only its own trials say whether it moved. The first is
    the first that was measured and says where. Results of older versions do not. A node of the
    same name with other CPUs is another machine, as far as its agent tells them.
    """
    first: dict[tuple[str, str | int | None], TrialResult] = {}
    # Of each node, in what is compared: which CPUs it had, and the first trial that says so.
    cpus: dict[tuple[str, str | int | None], tuple[str, str]] = {}
    judged: dict[str, TrialResult] = {}
    for result in in_time(results):
        elsewhere: list[Said] = []
        block = result.repetition if nodes is Nodes.ROTATE else None
        has = {one.node: one.cpu_model for one in result.usage.nodes} if result.usage else {}
        replaced: dict[str, Said] = {}
        for part, there in sorted(result.nodes.items()):
            somebodys = part == "server" and result.server not in deployed
            of = result.server if somebodys else block
            known = first.setdefault((part, of), result)
            if sorted(known.nodes[part]) != sorted(there):
                elsewhere.append(
                    doubts.OTHER_NODES.says(
                        what=f"server {result.server}" if part == "server" else part,
                        nodes=_listed(there),
                        before=_listed(known.nodes[part]),
                        trial=known.trial,
                    )
                )
            for node in sorted(set(there)):
                if cpu := has.get(node):
                    before, trial = cpus.setdefault((node, of), (cpu, result.trial))
                    if cpu != before:
                        replaced[node] = doubts.OTHER_MACHINE.says(
                            node=node, cpu=shown(cpu), before=shown(before), trial=trial
                        )
        judged[result.trial] = doubted(result, Judgement.of([*elsewhere, *replaced.values()]))
    return [judged.get(one.trial, one) for one in sorted(results, key=lambda one: one.ordinal)]


def _listed(nodes: Sequence[str]) -> str:
    """Return the names of nodes, with how many pods each had where that is more than one."""
    counted = Counter(nodes).items()
    return " and ".join(f"{node} ({pods} pods)" if pods > 1 else node for node, pods in counted)
