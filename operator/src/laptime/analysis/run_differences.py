"""In what else two runs differ, and what is the same in both. Pure.

From the specs, and of what they do not say from the trials and what the runs began with.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from laptime.api.base import Model
from laptime.api.images import bits
from laptime.api.placement import Nodes, RunPlacement
from laptime.api.results import TrialResult
from laptime.api.server import Server
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import KeptScript
from laptime.api.text import shown

_MOST_SETTINGS = 8
"""Of one server, load or topology that differ: who changes more compares two of them."""

_MOST_OF_A_SETTING = 120
"""Characters; the name of an image with its digest has some hundred."""


def what_differs(
    before: BenchmarkRunSpec,
    after: BenchmarkRunSpec,
    works: tuple[str | None, str | None] = (None, None),
    placements: tuple[RunPlacement | None, RunPlacement | None] = (None, None),
    scripts: tuple[Sequence[KeptScript], Sequence[KeptScript]] = ((), ()),
) -> list[str]:
    """Return what else the two runs differ in: then a change need not be one of the server.

    `works` are the hashes of their scenarios, None where nobody knows it; `placements` are where
    they were let be measured, None where that was said of none; `scripts` are the ConfigMaps that
    they began with, none where an older version measured.
    """
    said = []
    if before.scenario != after.scenario:
        said.append(f"the scenario: {before.scenario} and {after.scenario}")
    elif _work_changed(works):
        said.append(
            f"the work: scenario {before.scenario} was changed between them ({works[0]} and "
            f"{works[1]})"
        )
    hashes = [{one.config_map: one.hash for one in each} for each in scripts]
    said += [
        f"the script: ConfigMap {name} was changed between them ({hashes[0][name]} and "
        f"{hashes[1][name]})"
        for name in _changed_scripts(*scripts)
    ]
    said += placed_otherwise(*placements)
    nodes = [one.nodes or Nodes.FIXED for one in (before, after)]
    if nodes[0] is not nodes[1]:
        said.append(f"the nodes: {nodes[0]} and {nodes[1]}")
    if before.topology != after.topology:
        said.append(f"the topology: {_apart(before.topology, after.topology)}")
    if before.generator != after.generator:
        said.append(f"the generator: {_apart(before.generator, after.generator)}")
    said += _changed(
        "server",
        {one.name: _as_deployed(one) for one in before.servers},
        {one.name: _as_deployed(one) for one in after.servers},
    )
    said += _changed(
        "load", {one.name: one for one in before.loads}, {one.name: one for one in after.loads}
    )
    return said


def same_in_both(
    before: BenchmarkRunSpec,
    after: BenchmarkRunSpec,
    trials: tuple[Sequence[TrialResult], Sequence[TrialResult]],
    works: tuple[str | None, str | None] = (None, None),
    scripts: tuple[Sequence[KeptScript], Sequence[KeptScript]] = ((), ()),
) -> set[tuple[str, str]]:
    """Return the servers and loads that are the same in both runs: the rest as in `what_differs`.

    Whatever those of a run share may be another one: nodes, Postgres, or Laptime. What is the same
    is known of a server by the ID of its image, which nobody tells of a Service that was there
    before, nor of older results. One that was measured beside another server at the same time is
    not itself alone: it has what the other one leaves it.
    """
    if before.scenario != after.scenario or before.generator != after.generator:
        return set()
    script_images = [{_bits(one, "script") for one in of_run} for of_run in trials]
    if _work_changed(works) or _changed_scripts(*scripts) or script_images[0] != script_images[1]:
        return set()
    images = [_server_images(of_run) for of_run in trials]
    beside_another = {one.server for of_run in trials for one in of_run if one.beside is not None}
    servers = [
        one.name
        for one in before.servers
        for other in after.servers
        if one.name == other.name and _as_deployed(one) == _as_deployed(other)
        if images[0].get(one.name) and images[0].get(one.name) == images[1].get(one.name)
        if len(images[0][one.name]) == 1 and one.name not in beside_another
    ]
    return {
        (server, load.name) for server in servers for load in before.loads if load in after.loads
    }


def other_images(
    spec: BenchmarkRunSpec,
    before: Sequence[TrialResult],
    after: Sequence[TrialResult],
    later: BenchmarkRunSpec,
) -> list[str]:
    """Return which images were other ones, of those that the specs name in one way or not at all.

    By their IDs: a tag may have moved, and those of tiers, generators and presets come with a
    version of Laptime. Older versions do not say them.
    """
    named = [{one.name: one.image for one in each.servers} for each in (spec, later)]
    moved = {name for name in named[0] if name in named[1] and named[0][name] == named[1][name]}
    used = [_images(trials, moved) for trials in (before, after)]
    return [
        f"the image of {part}: {' and '.join(_image_ids(each[part]) for each in used)}"
        for part in sorted(used[0].keys() & used[1].keys())
        if set(map(bits, used[0][part])) != set(map(bits, used[1][part]))
    ]


def other_cpus(before: Sequence[TrialResult], after: Sequence[TrialResult]) -> list[str]:
    """Return that the nodes had other CPUs, where both runs know those of all their nodes."""
    models = [_cpu_models(trials) for trials in (before, after)]
    if not all(models) or models[0] == models[1]:
        return []
    return [f"the CPUs: {' and '.join(' or '.join(sorted(each)) for each in models)}"]


def _cpu_models(trials: Sequence[TrialResult]) -> set[str]:
    """Return what CPUs the nodes of a run had; none where one of them never told."""
    known: dict[str, set[str]] = {}
    for one in trials:
        for node in one.usage.nodes if one.usage else ():
            known.setdefault(node.node, set()).update(
                [shown(node.cpu_model)] if node.cpu_model else []
            )
    return set().union(*known.values()) if all(known.values()) else set()


def _bits(trial: TrialResult, part: str) -> frozenset[str] | None:
    image = trial.images.get(part)
    return bits(image) if image is not None else None


def _server_images(trials: Sequence[TrialResult]) -> dict[str, set[frozenset[str] | None]]:
    """Return the bits of the images of each server, without those that are not known."""
    found: dict[str, set[frozenset[str] | None]] = {}
    for one in trials:
        if one.figures is not None:
            found.setdefault(one.server, set()).add(_bits(one, "server"))
    return {server: each for server, each in found.items() if None not in each}


def _work_changed(works: tuple[str | None, str | None]) -> bool:
    return None not in works and works[0] != works[1]


def _changed_scripts(before: Sequence[KeptScript], after: Sequence[KeptScript]) -> list[str]:
    """Return the names of the ConfigMaps of both that are not what they were."""
    hashes = [{one.config_map: one.hash for one in each} for each in (before, after)]
    return [
        name
        for name in sorted(hashes[0].keys() & hashes[1].keys())
        if hashes[0][name] != hashes[1][name]
    ]


def _images(trials: Sequence[TrialResult], servers: Collection[str]) -> dict[str, set[str]]:
    """Return the IDs of images by what they are for, of servers only those of these names."""
    found: dict[str, set[str]] = {}
    for one in trials:
        for part, image in one.images.items():
            if part != "server":
                found.setdefault(shown(part), set()).add(image)
            elif one.server in servers:
                found.setdefault(f"server {one.server}", set()).add(image)
    return found


def _image_ids(images: Collection[str]) -> str:
    return " or ".join(shown(one, _MOST_OF_A_SETTING) for one in sorted(images))


def placed_otherwise(before: RunPlacement | None, after: RunPlacement | None) -> list[str]:
    """Return in what the placements of two runs differ; None: a run had none."""
    if (before and before.name) != (after and after.name):
        names = " and ".join(one.name if one else "none" for one in (before, after))
        return [f"the placement: {names}"]
    if (before and before.lane) != (after and after.lane):
        lanes = " and ".join((one and one.lane) or "none" for one in (before, after))
        return [f"the lane: {lanes}"]
    rules = {one.rules for one in (before, after) if one and one.rules}
    if before is not None and len(rules) > 1:
        return [f"the placement: {before.name} was changed between them"]
    return []


def _as_deployed(server: Server) -> Server:
    return server.model_copy(update={"workers": server.worker_count})


def _changed(what: str, before: Mapping[str, Model], after: Mapping[str, Model]) -> list[str]:
    changed = [name for name in before if name in after and before[name] != after[name]]
    only = [name for name in {**before, **after} if (name in before) != (name in after)]
    return [
        *(
            f"{what} {name}: {apart}"
            for name in changed
            if (apart := _apart(before[name], after[name]))
        ),
        *(f"{what} {name} is in one of them only" for name in only),
    ]


def _apart(before: Model, after: Model) -> str:
    """Return in which settings two of a kind differ: `image mine:41 and mine:42`."""
    settings = [dict(_settings(one.to_wire())) for one in (before, after)]
    names = [name for name in {**settings[0], **settings[1]} if _differs(name, settings)]
    said = [_both(name, *(one.get(name) for one in settings)) for name in names]
    more = [f"{len(said) - _MOST_SETTINGS} more"] if len(said) > _MOST_SETTINGS else []
    return ", ".join([*said[:_MOST_SETTINGS], *more])


def _both(name: str, before: str | None, after: str | None) -> str:
    values = ["none" if one is None else shown(one, _MOST_OF_A_SETTING) for one in (before, after)]
    # What variables and words of a program hold may be credentials.
    if ".env." in f".{name}" or name in ("command", "args") or values[0] == values[1]:
        return f"{name} is another one"
    return f"{name} {' and '.join(values)}"


def _differs(name: str, settings: Sequence[Mapping[str, str]]) -> bool:
    return len({one.get(name) for one in settings}) > 1


def _settings(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the settings in a part of a spec, as one writes them: `pgbouncer.poolSize`, `25`."""
    if isinstance(value, dict) and value:
        for key, one in value.items():
            yield from _settings(one, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and all(isinstance(one, dict) and "name" in one for one in value):
        for one in value:
            rest = {key: part for key, part in one.items() if key != "name"}
            yield from _settings(rest, f"{path}.{shown(one['name'])}")
    elif path:
        yield path, value if isinstance(value, str) and value else json.dumps(value)


def paired_otherwise(before: Sequence[TrialResult], after: Sequence[TrialResult]) -> list[str]:
    """Return which servers had the machine alone in one of two runs, and with another one beside.

    By the trials themselves: where a server of a duet is out, the other one is measured alone.
    """
    kinds = [_measured_beside(trials) for trials in (before, after)]
    return [
        f"the pairing: {server} under {load} was measured "
        + " and then ".join(
            "beside another server" if kind[server, load] else "alone" for kind in kinds
        )
        for server, load in sorted(kinds[0].keys() & kinds[1].keys())
        if kinds[0][server, load] is not kinds[1][server, load]
    ]


def _measured_beside(trials: Sequence[TrialResult]) -> dict[tuple[str, str], bool]:
    return {
        (one.server, one.load): one.beside is not None for one in trials if one.figures is not None
    }
