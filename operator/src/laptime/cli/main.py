"""`laptime` and `kubectl laptime`: measure, watch and report runs; the commands of the image.

Exit codes: 0 the run succeeded, 1 it failed or something is to be mended first, 2 an objective
was missed or something is worse, 3 that is not known of one, 130 interrupted, 143 and 129 ended by
SIGTERM and by SIGHUP.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from laptime import __version__
from laptime.cli.catalogue_commands import list_scenarios, schema, servers
from laptime.cli.compare_command import compare
from laptime.cli.completion import VARIABLE, Shell, completion_script, prepare_completion
from laptime.cli.explain_command import explain
from laptime.cli.init_command import init
from laptime.cli.mistakes import Mistake
from laptime.cli.options import program_name
from laptime.cli.report_command import report
from laptime.cli.run_commands import run, watch
from laptime.cli.streams import open_streams
from laptime.cli.validate_command import validate
from laptime.cli.verify_command import verify
from laptime.cli.wish_commands import cancel, resume, retry, suspend

# `laptime verify` runs once per server of every run: what only the other commands need is imported
# where it is used.

app = typer.Typer(
    name="laptime",
    help="Which server is faster, by how much, how sure: benchmarks in Kubernetes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_IN_CLUSTER = "In the cluster"
_AFTER_THE_COMMAND = {
    "-n": "NAMESPACE",
    "--namespace": "NAMESPACE",
    "--context": "CONTEXT",
    "--kubeconfig": "KUBECONFIG",
}
"""Options of the commands that kubectl takes before its own as well, and what their values are."""

app.command()(run)
app.command()(watch)
app.command()(suspend)
app.command()(resume)
app.command()(cancel)
app.command()(retry)
app.command()(report)
app.command()(compare)
app.command()(explain)
app.command()(servers)
app.command("scenarios")(list_scenarios)
app.command()(validate)
app.command()(verify)
app.command()(init)
app.command()(schema)


@app.command()
def completion(
    shell: Annotated[Shell, typer.Argument(help="Which shell.")],
) -> None:
    """Print the script that completes the words of `laptime` in a shell.

    In bash: source <(laptime completion bash)
    """
    typer.echo(completion_script(shell))


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


@app.command(rich_help_panel=_IN_CLUSTER)
def operator() -> None:
    """Run the operator (in its pod)."""
    from laptime.handlers import run_operator

    run_operator()


@app.command(rich_help_panel=_IN_CLUSTER)
def profile() -> None:
    """Ask a server under load for a profile (in a Job of a run)."""
    from laptime.measure.profile import main as ask_for_profile

    raise typer.Exit(ask_for_profile())


@app.command(rich_help_panel=_IN_CLUSTER)
def make_sqlite(sql_folder: Path, file: Path) -> None:
    """Make the SQLite database of a server (in the server's pod, before it starts)."""
    from laptime.measure.sqlite_file import make_database

    make_database(sql_folder, file)


@app.command(rich_help_panel=_IN_CLUSTER)
def prepare(file: Path) -> None:
    """Bring the database of a run to the same state (in the Job of a script, before it)."""
    from laptime.measure.prepare import prepare_database

    if problem := prepare_database(file):
        typer.echo(problem.to_line(), err=True)
        raise typer.Exit(1)


def main() -> None:
    """Run the command line, and end the process with its exit code."""
    open_streams()
    sys.exit(run_command(sys.argv[1:]))


def run_command(arguments: list[str]) -> int:
    """Run one command and return its exit code; mistakes are printed, not raised."""
    prepare_completion()
    try:
        code = app(
            args=arguments,
            prog_name=program_name(),
            complete_var=VARIABLE,
            standalone_mode=False,
        )
    except Mistake as mistake:
        _complain(str(mistake))
        return 1
    except typer.TyperException as error:
        # A wrong option is no missed objective: not the exit code 2 that shells are used to.
        if message := error.format_message():
            _complain(f"{message}{_misplaced(arguments)}")
        return 1
    except RecursionError:
        _complain("what was read is nested too deeply, or contains itself: write it flatter")
        return 1
    except (KeyboardInterrupt, typer.Abort):
        return 130
    return code if isinstance(code, int) else 0


def complete() -> None:
    """Print the words that the environment, as a shell sets it, asks for."""
    prepare_completion()
    with contextlib.suppress(SystemExit):
        app(args=[], prog_name="laptime", complete_var=VARIABLE, standalone_mode=False)


def _misplaced(arguments: list[str]) -> str:
    """Return where an option belongs that kubectl takes before its command; else nothing."""
    first = arguments[0].partition("=")[0] if arguments else ""
    # -nbench is -n bench.
    option = first if first.startswith("--") else first[:2]
    if option not in _AFTER_THE_COMMAND:
        return ""
    value = _AFTER_THE_COMMAND[option]
    return f". It goes after the command:  {program_name()} run FILE {option} {value}"


def _complain(text: str) -> None:
    from laptime.cli.printing import PlainConsole

    PlainConsole(stderr=True).print(
        f"[bold red]Error:[/] {escape(text)}", highlight=False, soft_wrap=True
    )
