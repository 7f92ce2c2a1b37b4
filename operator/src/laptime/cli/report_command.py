"""`laptime report`: the result of a run as a page, a document or a table."""

from __future__ import annotations

import shlex
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from laptime.api.text import plain_lines
from laptime.cli.mistakes import INSTALL_THE_PROGRAM, Mistake
from laptime.cli.options import (
    Context,
    Kubeconfig,
    Name,
    Namespace,
    connect,
    existing_run,
    namespace_of,
)
from laptime.cli.stored_folder import write_stored

if TYPE_CHECKING:
    from laptime.cli.cluster_access import Cluster
    from laptime.cli.runs import Run

STDOUT = Path("-")


class ReportFormat(StrEnum):
    """What `report` makes of a run."""

    HTML = "html"
    MARKDOWN = "markdown"
    JSON = "json"
    CSV = "csv"
    TABLE = "table"


_BY_SUFFIX = {
    ".html": ReportFormat.HTML,
    ".htm": ReportFormat.HTML,
    ".md": ReportFormat.MARKDOWN,
    ".json": ReportFormat.JSON,
    ".csv": ReportFormat.CSV,
}


def report(
    name: Name,
    format_: Annotated[
        ReportFormat | None,
        typer.Option("--output", "-o", help="Format. Default: by the name of the file, else html."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", "-f", help="File to write, - for the screen. Default of html: RUN.html."
        ),
    ] = None,
    profiles: Annotated[
        Path | None,
        typer.Option(
            "--profiles",
            metavar="FOLDER",
            help="Write the flame graphs of the servers (profile: true) there too, as SVG.",
        ),
    ] = None,
    stored: Annotated[
        Path | None,
        typer.Option(
            "--stored",
            metavar="FOLDER",
            help="Write what the run has stored there too, without rows of feeders.",
        ),
    ] = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Write the result of a run as one page of HTML, or print it in another form.

    A table can be had while the run goes on, everything else when it is over.
    """
    from laptime.cli.printing import say

    chosen = format_ or _format_of(file)
    if file is None and chosen is ReportFormat.HTML:
        file = Path(f"{name}.html")
    cluster = connect(kubeconfig, context)
    target = namespace_of(namespace, None, cluster)
    found = existing_run(cluster, target, name)
    if profiles is not None:
        _write_profiles(cluster, found, profiles)
    if stored is not None:
        write_stored(cluster, found, stored)
    if chosen is ReportFormat.TABLE:
        _print_table(cluster, found, file)
        return
    # Whoever may write ConfigMaps may have changed what is stored.
    text = plain_lines(_text(chosen, found, cluster))
    if file is None or file == STDOUT:
        say(text)
        return
    done = "Replaced" if file.is_file() else "Wrote"
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Mistake(f"Cannot write {file}: {error.strerror}") from error
    say(f"{done} {shlex.quote(str(file))}", err=True)


def _write_profiles(cluster: Cluster, found: Run, folder: Path) -> None:
    from laptime.cli.printing import say
    from laptime.report.flamegraph import profile_picture

    stored = cluster.profiles(found)
    if not stored:
        raise Mistake(
            f"{found.name} has no profiles: write profile: true at a server of its spec, and wait "
            "until the run is over"
        )
    for profile in stored:
        if profile.problem:
            say(f"No profile of {profile.server}: {profile.problem}", err=True)
            continue
        file = folder / f"{found.name}-{profile.server}.svg"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file.write_text(profile_picture(profile), encoding="utf-8")
        except OSError as error:
            raise Mistake(f"Cannot write {file}: {error.strerror}") from error
        except ValueError as error:
            raise Mistake(f"Cannot read the profile of {profile.server}: {error}") from error
        say(f"Wrote {shlex.quote(str(file))}", err=True)


def _format_of(file: Path | None) -> ReportFormat:
    if file is None or file == STDOUT:
        return ReportFormat.HTML
    chosen = _BY_SUFFIX.get(file.suffix.lower())
    if chosen is None:
        formats = ", ".join(ReportFormat)
        raise Mistake(
            f"What shall {file} be? Give it the suffix {', '.join(_BY_SUFFIX)}, "
            f"or say it: --output ({formats})"
        )
    return chosen


def _print_table(cluster: Cluster, found: Run, file: Path | None) -> None:
    from laptime.cli.experiments import experiments_of
    from laptime.cli.printing import open_console, print_all
    from laptime.cli.result_table import result_lines

    if file is not None and file != STDOUT:
        raise Mistake("A table is for the screen: give a file the format markdown or csv.")
    console = open_console()
    print_all(result_lines(found, console, experiments_of(cluster, found)), console)


def _text(chosen: ReportFormat, found: Run, cluster: Cluster) -> str:
    from laptime.cli.stored_results import stored_document, stored_results

    if chosen is ReportFormat.JSON:
        return stored_document(cluster, found)
    report = stored_results(cluster, found).report
    if chosen is ReportFormat.CSV:
        from laptime.report import to_csv

        return to_csv(report.summary.rows)
    from laptime.cli.experiments import experiments_of

    report = replace(report, experiments=experiments_of(cluster, found))
    if chosen is ReportFormat.MARKDOWN:
        from laptime.report import to_markdown

        return to_markdown(report)
    try:
        from laptime.report.html import to_html
    except ImportError as error:
        raise Mistake(
            f"A page of HTML needs more libraries than are here ({error.name} is missing):\n"
            f"  {INSTALL_THE_PROGRAM}\n"
            "Without them: --output markdown, json, csv or table"
        ) from error
    from laptime.cli.environment import environment_of

    environment = {**environment_of(cluster, found, report.trials), **report.environment}
    payloads = cluster.trial_payloads(found)
    profiles = cluster.profiles(found)
    return to_html(replace(report, environment=environment), payloads, profiles)
