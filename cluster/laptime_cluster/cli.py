"""The command line of the embedded cluster."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence

from laptime_cluster import (
    builds,
    clocks,
    enforcer,
    health,
    images,
    lifecycle,
    outages,
    packages,
    snapshot,
    store,
)
from laptime_cluster.commands import ClusterError
from laptime_cluster.layout import ADMIN_KUBECONFIG, STATE
from laptime_cluster.places import Node, nodes
from laptime_cluster.progress import say

_ACTS: dict[str, Callable[[Node], None]] = {
    "stop": outages.stop,
    "start": outages.start,
    "freeze": outages.freeze,
    "thaw": outages.thaw,
    "drain": outages.drain,
    "uncordon": outages.uncordon,
    "cut": outages.cut,
    "mend": outages.mend,
}
_ADMINISTRATOR_PATH = (
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
)


def main(argv: Sequence[str]) -> int:
    """Run one command; returns the exit code (1 with a message when something is wrong)."""
    arguments = _parser().parse_args(argv)
    # Without a login shell the administrator's programs are often not in the search path.
    os.environ["PATH"] = os.pathsep.join((os.environ.get("PATH", ""), *_ADMINISTRATOR_PATH))
    try:
        return _run(arguments)
    except (ClusterError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; the next `up` or `down` cleans up", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cluster.py", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start the cluster, or do nothing when it is healthy")
    up.add_argument(
        "--nodes", type=int, help="how many nodes it is to have (as many as before, or 1)"
    )
    commands.add_parser("down", help="stop the cluster; cache and packages stay")
    commands.add_parser("status", help="say what runs; exit code 1 when the cluster is not healthy")
    load = commands.add_parser("load", help="import the image archives of the cache that changed")
    load.add_argument("images", nargs="*", metavar="IMAGE", help="all when none is named")
    commands.add_parser("kubeconfig", help="print the path of the administrator's kubeconfig")
    commands.add_parser("build", help="build what `up` starts, and start nothing")
    commands.add_parser("tools", help="build kubectl and helm when they are missing")
    path = commands.add_parser("path", help="print the path of a tool, built when it is missing")
    path.add_argument("tool", choices=("kubectl", "helm"))
    package = commands.add_parser("packages", help="install programs that are missing, by packages")
    package.add_argument("programs", nargs="+", metavar="PROGRAM", help="in a package of its name")
    for name, act in _ACTS.items():
        node = commands.add_parser(name, help=_first_line(act))
        node.add_argument("node", metavar="NODE")
    clock = commands.add_parser("clock", help="give a pod of a DaemonSet on a node a wrong clock")
    clock.add_argument("node", metavar="NODE")
    clock.add_argument("seconds", type=float, help="by how much it is fast; 0: it is right again")
    clock.add_argument("--namespace", default="laptime-system")
    clock.add_argument("--daemonset", default="laptime-agent")
    slow = commands.add_parser("slow", help=_first_line(outages.slow))
    slow.add_argument("node", metavar="NODE")
    slow.add_argument("percent", type=float, help="such as 50; 100: all that it has")
    enforce = commands.add_parser("enforce-policies", help="what a node's daemon does; for ever")
    enforce.add_argument("node", metavar="NODE")
    commands.add_parser("snapshot", help="print what the cluster could leave behind, as JSON")
    return parser


def _run(arguments: argparse.Namespace) -> int:
    match arguments.command:
        case "up":
            lifecycle.up(arguments.nodes)
        case "down":
            lifecycle.down()
        case "status":
            print(health.describe())
            return 1 if health.problems() else 0
        case "load":
            _load(arguments.images)
        case "kubeconfig":
            _require_state()
            print(ADMIN_KUBECONFIG)
        case "build":
            lifecycle.build()
        case "tools":
            builds.ensure_kubectl()
            builds.ensure_helm()
        case "path":
            tool = builds.ensure_helm if arguments.tool == "helm" else builds.ensure_kubectl
            print(tool())
        case "packages":
            packages.install_missing([(program, program) for program in arguments.programs])
        case "enforce-policies":
            enforcer.enforce(arguments.node)
        case "snapshot":
            print(json.dumps(snapshot.take(), indent=1))
        case "clock":
            node = outages.node_called(arguments.node)
            clocks.set_offset(node, arguments.seconds, arguments.namespace, arguments.daemonset)
        case "slow":
            outages.slow(outages.node_called(arguments.node), arguments.percent)
        case name:
            _ACTS[name](outages.node_called(arguments.node))
    return 0


def _first_line(act: Callable[..., None]) -> str:
    return (act.__doc__ or "").splitlines()[0].rstrip(".")


def _load(names: Sequence[str]) -> None:
    _require_state()
    loaded = sorted({name for node in nodes() for name in images.load(node, names)})
    store.want(names or [path.stem for path in images.every()])
    say(f"loaded {', '.join(loaded)}" if loaded else "all images are up to date")


def _require_state() -> None:
    if not STATE.exists():
        raise ClusterError("there is no cluster; start it with `up`")
