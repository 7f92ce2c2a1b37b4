"""The folder of `report --stored`: of one run, and with nothing of another one."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from laptime.cli.mistakes import Mistake

if TYPE_CHECKING:
    from laptime.cli.cluster_access import Cluster
    from laptime.cli.runs import Run

_RECORD = Path("laptime-run.json")
"""In a folder with what a run has stored: which run that is, and which files are its."""
_SHORT = 8
"""Characters of a uid that tell two runs of a name apart."""


def write_stored(cluster: Cluster, found: Run, folder: Path) -> None:
    """Write all that a run has stored to a folder: its files, and a folder for each ConfigMap.

    Raises:
        Mistake: the folder has what another run has stored, or cannot be written.
    """
    archive = cluster.stored(found)
    texts = {Path(name): text for name, text in archive.files.items()}
    for one in archive.objects:
        for key, text in (one.get("data") or {}).items():
            texts[Path(one["metadata"]["name"]) / key] = text
    for path in texts:
        # Whoever may write ConfigMaps may have changed the names.
        if path.is_absolute() or any(set(part) <= {"."} for part in path.parts) or path == _RECORD:
            raise Mistake(f"The run has stored something under a name that is none: {path}")
    record = {"run": found.name, "namespace": found.namespace, "uid": found.uid}
    about = json.dumps(record | {"files": sorted(map(str, texts))}, indent=1)
    _make_room(folder, found, {_RECORD, *texts})
    # The record first: of what is cut off it is known whose it is.
    for path, text in {_RECORD: about, **texts}.items():
        file = folder / path
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise Mistake(f"Cannot write {file}: {error.strerror}") from error
    typer.echo(f"Wrote {len(texts)} files to {shlex.quote(str(folder))}", err=True)


def _make_room(folder: Path, found: Run, wanted: Collection[Path]) -> None:
    """Delete what was written to a folder for this run before, and is not `wanted` any more.

    Raises:
        Mistake: there are files that were not written for this run.
    """
    ours = _recorded(folder, found)
    of_trials = {path.name for path in wanted if len(path.parts) > 1}
    # What a link leads to is somewhere else, and somebody else's.
    inner = [one for one in folder.glob("*/*") if not one.parent.is_symlink()]
    there = sorted([*folder.glob("*"), *inner])
    for file in there:
        path = file.relative_to(folder)
        taken = path in wanted or (len(path.parts) > 1 and path.name in of_trials)
        if taken and path not in ours and file.is_file():
            raise Mistake(
                f"{file} was not written by --stored for this run, or by another version, and "
                "figures of two runs are not mixed: write "
                f"--stored {found.name}-{found.uid[:_SHORT]}, or delete what is there"
            )
    for file in there:
        if file.relative_to(folder) in ours.difference(wanted):
            try:
                file.unlink()
            except OSError as error:
                raise Mistake(f"Cannot delete {file}: {error.strerror}") from error
            with contextlib.suppress(OSError):
                # Unless something else is in it.
                file.parent.rmdir()


def _recorded(folder: Path, found: Run) -> set[Path]:
    """Return what was written to a folder for this very run: nothing where it has another one's."""
    try:
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        if record["uid"] != found.uid:
            return set()
        return {_RECORD, *map(Path, record["files"])}
    except (OSError, ValueError, LookupError, TypeError):
        # There is none, or somebody has written another one.
        return set()
