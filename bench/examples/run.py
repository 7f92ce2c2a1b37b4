"""Runs the benchmarks of examples/ on a cluster and sets the published ones beside their sources.

    PYTHONPATH=bench python3 bench/examples/run.py [OPTION...] [NAME...]
    PYTHONPATH=bench python3 bench/examples/run.py --images [NAME...]

Needs a cluster with the chart installed (KUBECONFIG) and the images that --images names in it.
Each run is deleted when it was read; one with which something is wrong stays to be looked at, and
is deleted when the benchmark is run again. One of the same name that somebody else made is left as
it is, and that benchmark is missing: with --again it is deleted, too. --write needs a README.md
with a place for the index in FOLDER.

Exits with 1 when a run does not succeed, a trial was not measured or a row has no figure. Whether
servers came in the published order is printed and changes nothing about that: the quick variants
measure for seconds, other hardware can rank servers otherwise, and what limited each of them says
why. "undecided" means that nothing speaks against the published order, but not all servers could be
told apart.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import platform
import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from cluster_access import NAMESPACE, kubectl_json
from documents import Place, benchmark_document, index_line, updated_index
from machine import cpu_model, describe_nodes, without_names
from measured import HEADINGS, Measured, order_notes, problems, table_lines
from rich.console import Console

from laptime import __version__
from laptime.api.durations import format_duration
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import State
from laptime.catalog import presets
from laptime.cli.cluster_access import Cluster
from laptime.cli.display import open_display
from laptime.cli.follow import follow
from laptime.cli.manifest_file import Manifest, read_manifest
from laptime.cli.mistakes import Mistake
from laptime.cli.printing import open_console, plain_table, print_all
from laptime.cli.runs import Run
from laptime.cli.stored_results import stored_results
from laptime.report import to_markdown

BENCHMARKS = ("users", "sleep", "tasks", "recipes", "apibench")
EQUAL_POOLS = ("recipes-equal-pools", "tasks-equal-pools", "apibench-equal-pools")
"""Beside three of them: the same work where all servers have as many connections."""
QUESTIONS = ("asgi-servers", "cache-in-front", "upgrade")
"""Nobody has published figures of them; each is a folder with images of its own."""
ROOT = Path(__file__).resolve().parents[2]
INDEX = "README.md"
MADE_BY = "laptime.dev/made-by"
"""Annotation of the runs that are made here: others of those names are somebody else's, since
whoever tries Laptime applies these very files."""
MAKER = "bench-examples"
_OWN_IMAGE = re.compile(r"docker\.io/laptime/([^:]+):.*")
LONGEST_QUICK_SECONDS = 20 * 60
LONGEST_SECONDS = 4 * 3600


def main() -> int:
    """Run what is asked for; return 1 when something is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage="%(prog)s"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}")
    parser.add_argument("--quick", action="store_true", help="run the -quick variants")
    parser.add_argument("--keep", action="store_true", help="leave runs and results in the cluster")
    parser.add_argument(
        "--again", action="store_true", help="delete runs of those names, whoever made them"
    )
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write a document of each")
    parser.add_argument("--images", action="store_true", help="print the images needed, no more")
    arguments = parser.parse_args()
    names: list[str] = arguments.names or list(BENCHMARKS)
    there = BENCHMARKS if arguments.quick else (*BENCHMARKS, *EQUAL_POOLS, *QUESTIONS)
    for name in names:
        if name not in there:
            parser.error(f"there is no benchmark {name}; there is: {', '.join(there)}")
    suffix = "-quick" if arguments.quick else ""
    manifests = [read_manifest(ROOT / "examples" / path_of(f"{name}{suffix}")) for name in names]
    if arguments.images:
        print(*images_of(manifests))
        return 0
    if arguments.write is not None:
        # Better now than when hours have been measured.
        updated_index((arguments.write / INDEX).read_text(encoding="utf-8"), {})
    longest = LONGEST_QUICK_SECONDS if arguments.quick else LONGEST_SECONDS
    return measure(
        manifests, longest, keep=arguments.keep, again=arguments.again, folder=arguments.write
    )


def path_of(name: str) -> str:
    """Return the file of an example, below `examples`."""
    return f"{name}/{name}.yaml" if name in QUESTIONS else f"{name}.yaml"


def images_of(manifests: Iterable[Manifest]) -> list[str]:
    """Return the images that runs need beside those of the chart, as images/build.py names them."""
    needed: set[str] = set()
    for manifest in manifests:
        spec = BenchmarkRunSpec.model_validate(manifest.run["spec"])
        needed |= {presets()[server.preset].image for server in spec.servers if server.preset}
        if spec.topology.upstream is not None:
            needed.add("upstream")
        if spec.topology.delay is not None:
            needed.add("delay")
        services = [one for each in manifest.scenarios for one in each["spec"].get("services", [])]
        for image in [*(one["image"] for one in services), *(one.image for one in spec.servers)]:
            if image and (own := _OWN_IMAGE.fullmatch(image)):
                needed.add(own[1])
    return sorted(needed)


def measure(
    manifests: list[Manifest],
    longest_seconds: float,
    *,
    keep: bool,
    again: bool,
    folder: Path | None,
) -> int:
    """Run the benchmarks one after the other and print the table; return 1 if one is missing."""
    cluster = Cluster.connect()
    found: list[Measured] = []
    wrong: list[str] = []
    for number, manifest in enumerate(manifests, start=1):
        print(f"[{number}/{len(manifests)}] {manifest.name}", flush=True)
        try:
            over = run(cluster, manifest, longest_seconds, again=again)
            measured = read(cluster, over)
            found.append(measured)
            missing = problems(measured)
            wrong += missing
            if folder is not None and not missing:
                write(folder, measured, to_markdown(stored_results(cluster, over).report))
            if not keep and not missing:
                cluster.delete_run(over)
        except Mistake as mistake:
            wrong.append(f"{manifest.name}: {mistake}")
            print(f"{wrong[-1]}\n", flush=True)
            continue
        took = format_duration(measured.seconds)
        print(f"{manifest.name}: {measured.report.summary.verdict} ({took})\n", flush=True)
    lines = [line for measured in found for line in table_lines(measured)]
    print_all([plain_table(HEADINGS, lines)], open_console())
    for note in (note for measured in found for note in order_notes(measured)):
        print(f"  {note}")
    for problem in wrong:
        print(f"MISSING {problem}")
    print(f"{len(found)} of {len(manifests)} benchmarks measured, {len(wrong)} things are missing")
    return 1 if wrong else 0


def made_here(manifest: Manifest) -> Manifest:
    """Return the same with the mark of the runs that are made here."""
    metadata = manifest.run["metadata"]
    marks = {**metadata.get("annotations", {}), MADE_BY: MAKER}
    run = {**manifest.run, "metadata": {**metadata, "annotations": marks}}
    return dataclasses.replace(manifest, run=run)


def of_others(found: Run) -> bool:
    """Return whether somebody else made the run that has the name of an example."""
    metadata = kubectl_json("get", "benchmarkrun", found.name)["metadata"]
    # One that is there since then is nobody's that is known here.
    marks = metadata.get("annotations", {}) if metadata["uid"] == found.uid else {}
    return bool(marks.get(MADE_BY) != MAKER)


def run(cluster: Cluster, manifest: Manifest, longest_seconds: float, *, again: bool) -> Run:
    """Run a benchmark anew, showing its progress; return it when it has succeeded.

    `again`: also where the run of that name that is there is somebody else's, which is deleted.

    Raises:
        Mistake: it was refused, did not succeed, or took too long; or its name is taken.
    """
    before = cluster.run(NAMESPACE, manifest.name)
    if before is not None:
        if not again and of_others(before):
            raise Mistake(
                f"namespace {NAMESPACE} has a run of that name that was not made here, so it is "
                "left as it is, with its results. Where nobody needs them, have it deleted: "
                f"kubectl delete br {manifest.name} -n {NAMESPACE}"
            )
        print("  deleting the run of that name that is there", flush=True)
        cluster.delete_run(before)
    manifest = made_here(manifest)
    applied = cluster.apply_file(NAMESPACE, manifest, manifest.run)
    deadline = time.monotonic() + longest_seconds

    def fetch() -> Run | None:
        if time.monotonic() > deadline:
            # The next one would wait for it.
            cluster.delete_run(applied)
            raise Mistake(f"it is not over after {format_duration(longest_seconds)}")
        return cluster.run(NAMESPACE, manifest.name)

    with open_display(Console(), manifest.name) as display:
        over = follow(fetch, display)
    if over.status.state is not State.SUCCEEDED:
        condition = over.status.condition("Succeeded")
        why = f": {condition.reason}: {condition.message}" if condition else ""
        raise Mistake(f"the run ended as {over.status.state}{why}")
    return over


def read(cluster: Cluster, over: Run) -> Measured:
    """Return what a run that is over has measured; Mistake when it cannot be read."""
    begin, end = over.status.started_at, over.status.finished_at
    if begin is None or end is None:
        raise Mistake("its status does not say when it began and ended")
    length = datetime.datetime.fromisoformat(end) - datetime.datetime.fromisoformat(begin)
    return Measured(over.name, stored_results(cluster, over).report, length.total_seconds())


def write(folder: Path, measured: Measured, product_report: str) -> None:
    """Write the document of a benchmark, and its line of the index."""
    nodes = kubectl_json("get", "nodes")["items"]
    cpu = cpu_model(Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    _, finished = measured.report.measured_between
    place = Place(
        machine=describe_nodes(nodes, {boot: cpu} if cpu else {}),
        version=__version__,
        date=(finished or "").partition("T")[0],
    )
    names = [node["metadata"]["name"] for node in nodes] + [platform.node()]
    document = benchmark_document(measured, product_report, place, path_of(measured.name))
    path = folder / f"{measured.name}.md"
    path.write_text(without_names(document, names), encoding="utf-8")
    index = folder / INDEX
    line = without_names(index_line(measured, place), names)
    index.write_text(
        updated_index(index.read_text(encoding="utf-8"), {measured.name: line}), encoding="utf-8"
    )
    print(f"  wrote {path} and its line of {index}", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Mistake, OSError, ValueError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
