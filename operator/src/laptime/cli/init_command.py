"""`laptime init`: a run to begin with, made from what there is already."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from laptime.cli.mistakes import Mistake


def init(
    source: Annotated[
        Path,
        typer.Option("--from", help="Manifest with a TestRun of k6-operator in it; - reads stdin."),
    ],
) -> None:
    """Print a run that does what a TestRun of k6-operator does, with what is left out and why.

    ConfigMaps beside it are printed as well. What is left out, and what is still to be written,
    stands in comments before the run.
    """
    import yaml

    from laptime.cli.manifest_file import read_any
    from laptime.cli.printing import say
    from laptime.cli.testrun import is_testrun, translated

    documents = read_any(source)
    testruns = [one for one in documents if is_testrun(one)]
    if len(testruns) != 1:
        raise Mistake(
            f"{source} holds {len(testruns) or 'no'} TestRun{'s' if len(testruns) > 1 else ''} of "
            "k6-operator (k6.io): give a file with exactly one"
        )
    found = translated(testruns[0])
    for one in documents:
        if isinstance(one, dict) and one.get("kind") == "ConfigMap":
            say(_yaml(yaml, one) + "---")
        elif not is_testrun(one):
            kind = one.get("kind", "?") if isinstance(one, dict) else "?"
            found.left_out.append(
                f"the {kind} beside the TestRun: apply it yourself if it is needed"
            )
    say(_comment("Write before it is run:", found.to_write))
    if found.left_out:
        say(_comment("Left out of the TestRun:", found.left_out))
    say(_yaml(yaml, found.run))


def _yaml(yaml: Any, document: dict[str, Any]) -> str:
    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    return text


def _comment(title: str, lines: list[str]) -> str:
    # What a TestRun says must not leave the comment that it is quoted in.
    quoted = (f"# - {' '.join(line.split())}" for line in lines)
    return "\n".join([f"# {title}", *quoted])
