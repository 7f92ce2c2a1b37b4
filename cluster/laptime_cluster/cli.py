"""The command line of the embedded cluster."""

import argparse
import json
import os
import sys
from collections.abc import Sequence

from laptime_cluster import builds, enforcer, health, images, lifecycle, snapshot, store
from laptime_cluster.commands import ClusterError
from laptime_cluster.layout import ADMIN_KUBECONFIG, STATE
from laptime_cluster.progress import say

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
    commands.add_parser("up", help="start the cluster, or do nothing when it is healthy")
    commands.add_parser("down", help="stop the cluster and leave nothing but the cache")
    commands.add_parser("status", help="say what runs; exit code 1 when the cluster is not healthy")
    load = commands.add_parser("load", help="import the image archives of the cache that changed")
    load.add_argument("images", nargs="*", metavar="IMAGE", help="all when none is named")
    commands.add_parser("kubeconfig", help="print the path of the administrator's kubeconfig")
    commands.add_parser("build", help="build what `up` starts, and start nothing")
    commands.add_parser("tools", help="build kubectl and helm when they are missing")
    path = commands.add_parser("path", help="print the path of a tool, built when it is missing")
    path.add_argument("tool", choices=("kubectl", "helm"))
    commands.add_parser("enforce-policies", help="what a daemon of the cluster does; for ever")
    commands.add_parser("snapshot", help="print what the cluster could leave behind, as JSON")
    return parser


def _run(arguments: argparse.Namespace) -> int:
    match arguments.command:
        case "up":
            lifecycle.up()
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
        case "enforce-policies":
            enforcer.enforce()
        case "snapshot":
            print(json.dumps(snapshot.take(), indent=1))
    return 0


def _load(names: Sequence[str]) -> None:
    _require_state()
    loaded = images.load(names)
    store.want(names or [path.stem for path in images.every()])
    say(f"loaded {', '.join(loaded)}" if loaded else "all images are up to date")


def _require_state() -> None:
    if not STATE.exists():
        raise ClusterError("there is no cluster; start it with `up`")
