"""`laptime verify`: are the answers of the servers right? Nothing is measured.

Without a file it is what runs in the Job of a run, beside the server. That is the same code: here
it is asked for, and what it has seen is shown.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laptime.cli.mistakes import Mistake
from laptime.cli.options import (
    Context,
    Kubeconfig,
    Namespace,
    Output,
    OutputOption,
    Timeout,
    connect,
    longest_of,
    name_beside,
    namespace_of,
    program_name,
)
from laptime.cli.signals import INTERRUPTED

if TYPE_CHECKING:
    from rich.table import Table

    from laptime.api.answers import CheckedAnswer
    from laptime.api.loads import Protocol
    from laptime.catalog import Scenario
    from laptime.cli.cluster_access import Cluster
    from laptime.cli.manifest_file import Manifest
    from laptime.cli.runs import Run

_SUFFIX = "-verify"
_PATIENCE_SECONDS = 2.0
"""So long an address may take to listen."""
_LAST_PORT = 65535
_KEPT = (
    "scenario",
    "topology",
    "loads",
    "generator",
    "repetitions",
    "startupTimeout",
    "placement",
    "egress",
    "imagePullSecrets",
)
"""What of a run says how its servers are deployed and checked, or that it is within its bounds.

No load is sent, but caps look at the resources of the generator, and the API server at how many
trials the repetitions make: without them a run that is accepted would have a check that is not.
"""


def verify(
    file: Annotated[
        Path | None,
        typer.Argument(help="Manifest of a BenchmarkRun, its scenario beside it; - reads stdin."),
    ] = None,
    servers: Annotated[
        list[str] | None, typer.Option("--server", help="Only this one; can be repeated.")
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            "--address", help="Check what answers there, such as http://localhost:8080: no cluster."
        ),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the run that did it, with the answers.")
    ] = False,
    timeout: Timeout = None,
    namespace: Namespace = None,
    output: OutputOption = Output.TABLE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Deploy the servers of a run, check them, and show each answer beside what was expected.

    Nothing is measured, and what was deployed is deleted. The exit code is 0 when all answers were
    right, else 1. Without a file: what runs in a Job of a run.
    """
    if file is None:
        from laptime.cli import verify_job
        from laptime.verification.verify import ENVIRONMENT_VARIABLE

        if ENVIRONMENT_VARIABLE not in os.environ:
            raise Mistake(f"Which run? {program_name()} verify FILE")
        raise typer.Exit(verify_job.main())
    from laptime.cli.changed_work import other_work
    from laptime.cli.manifest_file import read_manifest
    from laptime.cli.patience import patiently
    from laptime.cli.printing import say

    longest = longest_of(timeout)
    manifest = read_manifest(file)
    if address is not None:
        if keep or servers:
            raise Mistake("--keep and --server are for servers in a cluster: leave --address out")
        raise typer.Exit(_show(*_at(address, manifest), output))
    cluster = connect(kubeconfig, context)
    target = namespace_of(namespace, manifest.namespace, cluster)
    wanted = checking(manifest.run, servers or [])
    run = _followed(cluster, target, manifest, wanted, output, longest)
    began = run.status.scenario_hash is not None
    other = other_work(manifest, run) if began else None
    stays = f"{run.name} stays. Delete it:  {_deletion(cluster, target, run.name)}"
    code = 1
    try:
        if other is None:
            code = _show(_answers(cluster, run), _verdicts(run), output)
        if not keep:
            patiently(partial(cluster.delete_run, run))
    except Mistake as mistake:
        # What was found out is said by then: it took minutes.
        say(f"{mistake}\n{stays}", err=True)
    except INTERRUPTED:
        say(stays, err=True)
        raise
    if other is not None:
        raise Mistake(
            f"{run.name} checked other work than that of its file: {other} Somebody changed what "
            "is in the cluster under that name meanwhile: give it a name of its own in the file."
        )
    raise typer.Exit(code)


def _answers(cluster: Cluster, run: Run) -> dict[str, list[CheckedAnswer]]:
    """Return the answers of servers; none where they cannot be had: the status has the verdict."""
    from laptime.cli.patience import patiently
    from laptime.cli.printing import say

    try:
        return patiently(partial(cluster.answers, run))
    except Mistake as mistake:
        say(f"The answers cannot be shown: {mistake}", err=True)
        return {}


def _deletion(cluster: Cluster, namespace: str, name: str) -> str:
    """Return the command that deletes a run."""
    # With the namespace in any case: what is deleted is gone.
    return f"kubectl delete br {name} -n {namespace}{cluster.chosen}"


def checking(run: dict[str, Any], servers: Sequence[str]) -> dict[str, Any]:
    """Return the run that checks the servers of a run, or those of these names alone.

    Raises:
        Mistake: it has no server of such a name.
    """
    from laptime.cli.runs import CHECKS_ANNOTATION

    spec = run.get("spec") or {}
    there = [one for one in spec.get("servers") or [] if isinstance(one, dict)]
    names = [one.get("name") for one in there]
    for name in servers:
        if name not in names:
            raise Mistake(f"there is no server {name}; there is {', '.join(map(str, names))}")
    chosen = [one for one in there if not servers or one.get("name") in servers]
    kept = {key: spec[key] for key in _KEPT if key in spec}
    name = str(run["metadata"]["name"])
    return {
        **{key: run[key] for key in ("apiVersion", "kind")},
        "metadata": {"name": name_beside(name, _SUFFIX), "annotations": {CHECKS_ANNOTATION: name}},
        "spec": {**kept, "servers": chosen, "verifyOnly": True},
    }


def _followed(
    cluster: Cluster,
    namespace: str,
    manifest: Manifest,
    wanted: dict[str, Any],
    output: Output,
    longest: float,
) -> Run:
    """Apply the run that checks, and return it when it is over."""
    from laptime.cli.display import open_display
    from laptime.cli.follow import LEFT, follow, goes_on
    from laptime.cli.patience import patiently
    from laptime.cli.printing import PlainConsole

    name = str(wanted["metadata"]["name"])
    about = str(manifest.run["metadata"]["name"])
    delete = _deletion(cluster, namespace, name)
    before = cluster.run(namespace, name)
    if before is not None:
        if before.spec is None or not before.spec.verify_only:
            raise Mistake(f"{name} is there already, and measures: give the run another name")
        if before.checks != about:
            raise Mistake(
                f"{name} is there already, and was not made by `verify` for {about}: give the run "
                f"another name, or delete it:  {delete}"
            )
        if not before.over and not before.deleting:
            # It may be a colleague's, or that of a job of CI.
            raise Mistake(
                f"{name} is there already, and checks since {before.created}: wait until it is "
                f"over, or delete it:  {delete}"
            )
        patiently(partial(cluster.delete_run, before))
    console = PlainConsole(stderr=output is not Output.TABLE)

    def say(what: str) -> None:
        words = f"{what} in the cluster. Delete it:  {delete}"
        console.print(words, highlight=False, markup=False, soft_wrap=True)

    try:
        applied = patiently(partial(cluster.apply_file, namespace, manifest, wanted))
    except INTERRUPTED:
        say("It may have been applied by now")
        raise
    try:
        with open_display(console, name) as display:
            return follow(
                lambda: cluster.run(applied.namespace, name),
                display,
                cluster.turns_before,
                longest=longest,
                chosen=cluster.chosen,
            )
    except LEFT as ended:
        if goes_on(ended):
            say("It goes on")
        raise


def _verdicts(run: Run) -> dict[str, str | None]:
    """Return of each server what was wrong; None of one whose answers were right."""
    from laptime.api.status import ConditionType, ServerState

    ended = run.status.condition(ConditionType.SUCCEEDED)
    words = f"{ended.reason}: {ended.message}" if ended is not None else "it was not checked"
    return {
        one.name: None
        if one.state is ServerState.VERIFIED
        else f"{one.reason}: {one.message}"
        if one.reason
        else words
        for one in run.status.servers or []
    }


def _at(
    address: str, manifest: Manifest
) -> tuple[dict[str, list[CheckedAnswer]], dict[str, str | None]]:
    """Check what answers at an address, from here."""
    from laptime.verification.verify import Client, Task
    from laptime.verification.verify import verify as verify_answers

    _check_address(address)
    scenario = _scenario(manifest)
    answers: list[CheckedAnswer] = []
    task = Task(
        target=address,
        health_path=None,
        wait_seconds=_PATIENCE_SECONDS,
        checks=scenario.checks,
        values=scenario.check_values,
        bodies=scenario.bodies_asked_for,
        protocols=_protocols(manifest),
    )
    verdict = verify_answers(task, client=Client.of(os.environ), show=answers.append)
    wrong = None if verdict.ok else f"{verdict.reason}: {verdict.message}"
    return {address: answers}, {address: wrong}


def _protocols(manifest: Manifest) -> list[Protocol]:
    """Return over which protocols the loads of a run are sent, as in a run."""
    from laptime.api.loads import Protocol

    loads = (manifest.run.get("spec") or {}).get("loads") or []
    said = [one.get("protocol", Protocol.HTTP1) for one in loads if isinstance(one, dict)]
    return [one for one in Protocol if one in said] or [Protocol.HTTP1]


def _check_address(address: str) -> None:
    import httpx

    try:
        url = httpx.URL(address)
        known = url.scheme in ("http", "https") and url.host and (url.port or 1) <= _LAST_PORT
    except (httpx.InvalidURL, ValueError):
        known = False
    if not known:
        raise Mistake(
            f"{address!r} is no address: write --address http://HOST:PORT, such as "
            "http://localhost:8080"
        )


def _scenario(manifest: Manifest) -> Scenario:
    from laptime.catalog import scenarios
    from laptime.cli.validate_command import valid_scenarios

    name = str((manifest.run.get("spec") or {}).get("scenario"))
    own = valid_scenarios(list(manifest.scenarios), list(manifest.config_maps)).scenarios
    found = own.get(name) or scenarios().get(name)
    if found is None:
        raise Mistake(
            f"scenario {name} is not in the file, and none of that name comes with Laptime "
            f"({', '.join(scenarios())}): add it to the file"
        )
    return found


def _show(
    answers: dict[str, list[CheckedAnswer]], verdicts: dict[str, str | None], output: Output
) -> int:
    """Print the answers, and return the exit code: 1 when one was wrong."""
    from laptime.cli.printing import print_all, print_document

    if output is not Output.TABLE:
        document = [
            {
                "server": name,
                "right": wrong is None,
                **({} if wrong is None else {"message": wrong}),
                "answers": [one.to_wire() for one in answers.get(name, [])],
            }
            for name, wrong in verdicts.items()
        ]
        print_document(document, output)
    else:
        for name, wrong in verdicts.items():
            print_all(_lines(name, answers.get(name, []), wrong))
    return int(not verdicts or any(wrong is not None for wrong in verdicts.values()))


def _lines(name: str, answers: Sequence[CheckedAnswer], wrong: str | None) -> Iterator[Any]:
    from rich.text import Text

    right = sum(one.right for one in answers)
    if answers:
        yield _table(answers)
    if wrong is None:
        # The verdict is that of the status: it stands also where the answers cannot be had.
        many = f"{right} " if answers else ""
        yield Text(f"{name}: all {many}answers are right")
    elif answers:
        yield Text(f"{name}: {right} of {len(answers)} answers are right. {wrong}")
    else:
        yield Text(f"{name}: {wrong}")


def _table(answers: Iterable[CheckedAnswer]) -> Table:
    from laptime.cli.printing import plain_table

    rows = (
        (
            f"{one.check}\n{one.request}",
            one.expected,
            one.answered,
            "right" if one.right else f"WRONG\n{one.said}",
        )
        for one in answers
    )
    return plain_table(("CHECK", "EXPECTED", "ANSWERED", ""), rows)
