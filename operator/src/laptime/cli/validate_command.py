"""`laptime validate`: would the API server take what is in this file, and would it fit together?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laptime.api import KIND, SCENARIO_KIND
from laptime.cli.mistakes import INSTALL_THE_PROGRAM, Mistake, Unreachable
from laptime.cli.options import (
    Context,
    Kubeconfig,
    Namespace,
    connect,
    namespace_of,
    program_name,
)
from laptime.cli.own_schemas import as_taken, scenario_schema, violations

if TYPE_CHECKING:
    from laptime.catalog import Scenario
    from laptime.cli.cluster_access import Cluster
    from laptime.cli.manifest_file import Manifest

Elsewhere = Callable[[str], Mapping[str, str | None]]
"""Returns what a ConfigMap that is not in the file holds, by key; a Mistake says why it cannot."""


def validate(
    file: Annotated[
        Path,
        typer.Argument(
            help="Manifest of a BenchmarkRun, of BenchmarkScenarios, or of both; - reads stdin."
        ),
    ],
    server: Annotated[
        bool,
        typer.Option(
            "--server",
            help="Ask the API server too, which stores nothing, read the scenario and ConfigMaps "
            "that are not in the file, and say how small a difference the run would find, by the "
            "noise of earlier ones.",
        ),
    ] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Check a manifest without a cluster: fields, bounds, rules, and whether all fits together.

    A run is checked against its scenario where that is in the file or comes with Laptime, with
    --server also where it is in the namespace. What only a cluster knows (images, room on the
    nodes) shows when it runs.
    """
    from laptime.api.spec import BenchmarkRunSpec
    from laptime.cli.foresight import what_it_would_find
    from laptime.cli.manifest_file import manifest_of, read_documents, source_of
    from laptime.cli.printing import say

    found = read_documents(file)

    @cache
    def connected() -> Cluster:
        return connect(kubeconfig, context)

    def target() -> str:
        own = found[KIND][0]["metadata"].get("namespace") if found[KIND] else None
        return namespace_of(namespace, own, connected())

    def elsewhere(name: str) -> Mapping[str, str | None]:
        if not server:
            raise Mistake("it is not in this file; --server reads it in the namespace of the run")
        return connected().config_map_texts(target(), name)

    valid = valid_scenarios(found[SCENARIO_KIND], found["ConfigMap"], elsewhere)
    scenarios = valid.scenarios
    for name in scenarios:
        say(f"Scenario {name} is valid{_unchecked(valid.checked)}.")
        for one in valid.unread[name]:
            say(one)
    if not found[KIND] and scenarios and not server:
        return
    manifest = manifest_of(found, source_of(file))
    said, checked = violations(manifest.run)
    if said:
        raise _refused(manifest.name, said)
    spec = as_taken(manifest.run)["spec"]
    unread: str | None = None
    if server and spec["scenario"] not in scenarios:
        stored, unread = _stored(connected(), target(), spec["scenario"])
        if stored is not None:
            its = _valid_of_namespace(target(), stored, found["ConfigMap"], elsewhere)
            scenarios |= its.scenarios
            for name, lines in its.unread.items():
                for one in (f"Scenario {name} is that of namespace {target()}.", *lines):
                    say(one)
    said, unknown = misfits_of(spec, scenarios, target() if server else None)
    if unread:
        # One that comes with Laptime is known, and nearly always the one that is meant.
        unknown = unread
    if said:
        raise _refused(manifest.name, said)
    if server:
        cluster = connected()
        _ask(cluster, target(), manifest)
        say(f"{manifest.name} is valid, and {cluster.server} would take it.")
    else:
        say(f"{manifest.name} is valid{_unchecked(checked)}.")
    if unknown:
        say(unknown)
    for lead in leads_of(manifest.name, spec, found["ConfigMap"]):
        say(lead)
    for stays in stays_of(spec, scenarios):
        say(stays)
    if checked or server:
        say(expected_length(manifest.name, spec, scenarios.get(spec["scenario"])))
    if server:
        asked = BenchmarkRunSpec.model_validate(spec).with_control()
        try:
            own = scenarios.get(asked.scenario)
            lines = what_it_would_find(cluster, target(), manifest.name, asked, own)
        except Mistake as mistake:
            # Whoever may apply runs need not be allowed to read those of others.
            lines = [f"What it would find is not known: {mistake}"]
        for line in lines:
            say(line)


def _stored(
    cluster: Cluster, namespace: str, name: str
) -> tuple[dict[str, Any] | None, str | None]:
    """Return the scenario that a namespace has of its own by a name, or why it was not read.

    Raises:
        Unreachable: nobody answers.
    """
    try:
        return cluster.scenario(namespace, name), None
    except Unreachable:
        raise
    except Mistake as mistake:
        # Whoever may apply runs need not be allowed to read scenarios.
        return None, f"Whether the run fits its scenario was not checked: {mistake}"


def _valid_of_namespace(
    namespace: str,
    document: dict[str, Any],
    config_maps: list[dict[str, Any]],
    elsewhere: Elsewhere,
) -> Valid:
    """Return the scenario that a namespace has, and what of it was not read.

    Raises:
        Mistake: it is one that no run can have.
    """
    try:
        return valid_scenarios([document], config_maps, elsewhere)
    except Mistake as mistake:
        raise Mistake(f"In namespace {namespace}: {mistake}") from mistake


def _ask(cluster: Cluster, namespace: str, manifest: Manifest) -> None:
    """Have the API server judge a run; Mistake when it would refuse it as a new one as well."""
    try:
        cluster.check_run(namespace, manifest.run)
    except Unreachable:
        raise
    except Mistake as refused:
        # A run that is there of that name may be changed in few things, but can be deleted first.
        try:
            there = cluster.run(namespace, manifest.name)
        except Mistake:
            there = None
        if there is None:
            raise refused
        cluster.check_run(namespace, manifest.run, anew=True)


def _refused(name: str, said: list[str]) -> Mistake:
    lines = "\n".join(f"  {one}" for one in said)
    return Mistake(f"{name} would be refused.\n{lines}")


def _unchecked(checked: bool) -> str:
    if checked:
        return ""
    return (
        f"; its rules were not checked: {INSTALL_THE_PROGRAM}, or "
        f"{program_name()} validate --server"
    )


@dataclass
class Valid:
    """The scenarios of a file, none of which would be refused."""

    scenarios: dict[str, Scenario] = field(default_factory=dict)
    checked: bool = True
    """Whether the rules of their CRD could be checked."""
    unread: dict[str, list[str]] = field(default_factory=dict)
    """By scenario what could not be read of it, a sentence each: these texts are not checked."""


def valid_scenarios(
    documents: list[dict[str, Any]],
    config_maps: list[dict[str, Any]],
    elsewhere: Elsewhere | None = None,
) -> Valid:
    """Return the scenarios of a file, and what of them could not be checked.

    Without `elsewhere` all that they take from ConfigMaps has to be in the file.

    Raises:
        Mistake: one of them would be refused.
    """
    from laptime.catalog import config_maps_of, document_spec, scenario_of
    from laptime.catalog.problems import scenario_problems
    from laptime.cli.unread_texts import with_stand_ins

    valid = Valid()
    in_file = {one["metadata"]["name"]: one.get("data") or {} for one in config_maps}
    no_texts = {one["metadata"]["name"]: one.get("binaryData") or {} for one in config_maps}
    for document in documents:
        name = str(document["metadata"]["name"])
        document = as_taken(document, scenario_schema())
        said, valid.checked = violations(document, scenario_schema())
        if said:
            raise _refused(f"Scenario {name}", said)
        texts: dict[tuple[str, str], str] = {}
        lost: list[str] = []
        unread: dict[tuple[str, str], str] = {}
        for one in config_maps_of(document_spec(document)):
            key = (one.name, one.key)
            what = f"key {one.key} of ConfigMap {one.name}"
            if one.key in in_file.get(one.name, {}):
                texts[key] = in_file[one.name][one.key]
            elif one.key in no_texts.get(one.name, {}):
                lost.append(one.no_text)
            elif elsewhere is None or one.name in in_file:
                lost.append(
                    f"it takes {what}, which is not in this file: add it, so that all can be "
                    "checked"
                )
            else:
                try:
                    text = _text(elsewhere(one.name), one.name, one.key)
                except Unreachable:
                    raise
                except Mistake as mistake:
                    unread[key] = f"Not checked: {what}: {' '.join(str(mistake).split())}."
                else:
                    if text is None:
                        lost.append(one.no_text)
                    else:
                        texts[key] = text
        if lost:
            raise _refused(f"Scenario {name}", lost)
        complete, stand_ins = with_stand_ins(document, unread)
        scenario = scenario_of(complete, {**texts, **stand_ins})
        if said := scenario_problems(scenario):
            raise _refused(f"Scenario {name}", said)
        valid.scenarios[name] = scenario
        valid.unread[name] = list(unread.values())
    return valid


def _text(there: Mapping[str, str | None], name: str, key: str) -> str | None:
    if key not in there:
        raise Mistake(f"ConfigMap {name} has {', '.join(sorted(there)) or 'no keys'}")
    return there[key]


def misfits_of(
    spec: dict[str, Any], own: Mapping[str, Scenario], looked_in: str | None = None
) -> tuple[list[str], str | None]:
    """Return what of a valid spec does not fit its scenario, or why that cannot be said.

    `looked_in` is the namespace whose scenario would be among its `own`, if it had it.
    """
    from laptime.api.spec import BenchmarkRunSpec
    from laptime.catalog import scenarios
    from laptime.plan import load_problems, misfits

    asked = BenchmarkRunSpec.model_validate(spec)
    scenario = own.get(asked.scenario) or scenarios().get(asked.scenario)
    if scenario is None:
        if looked_in is None:
            where, then = "not in the file", "whether the run fits it was not checked"
        else:
            where = f"neither in the file nor in namespace {looked_in}"
            then = "apply it before the run"
        return [], (
            f"Scenario {asked.scenario} is {where} and none of that name comes with "
            f"Laptime ({', '.join(scenarios())}): {then}."
        )
    return [*misfits(asked, scenario), *load_problems(asked, scenario)], None


def refuse_misfits(cluster: Cluster, namespace: str, manifest: Manifest) -> None:
    """Refuse what the operator would refuse of a file that the API server takes.

    What cannot be read is left to the operator: a scenario that only others may read, and what a
    newer version wrote.

    Raises:
        Mistake: the scenario is wrong, or the run does not fit it; or nobody answers.
    """
    if violations(manifest.run)[0]:
        return
    spec = as_taken(manifest.run)["spec"]
    documents, config_maps = [*manifest.scenarios], [*manifest.config_maps]
    stored: dict[str, Any] | None = None
    if all(one["metadata"]["name"] != spec["scenario"] for one in documents):
        # Also by the name of one that comes with Laptime.
        stored, unread = _stored(cluster, namespace, spec["scenario"])
        if unread:
            return
    judged = [*documents, *([] if stored is None else [stored])]
    if any(violations(one, scenario_schema())[0] for one in judged):
        return

    def elsewhere(name: str) -> Mapping[str, str | None]:
        return cluster.config_map_texts(namespace, name)

    scenarios = valid_scenarios(documents, config_maps, elsewhere).scenarios
    if stored is not None:
        its = _valid_of_namespace(namespace, stored, config_maps, elsewhere)
        scenarios |= its.scenarios
    said, _ = misfits_of(spec, scenarios)
    if said:
        raise _refused(manifest.name, said)


def leads_of(name: str, spec: dict[str, Any], config_maps: list[dict[str, Any]]) -> list[str]:
    """Return where scripts lead to that are in the same file, a line for each."""
    from laptime.api.spec import BenchmarkRunSpec
    from laptime.plan import may_reach, script_leads

    asked = BenchmarkRunSpec.model_validate(spec)
    there = {one["metadata"]["name"]: one for one in config_maps}
    lines: list[str] = []
    for load in asked.loads:
        if load.script is None or not set(load.script.config_maps) <= set(there):
            continue
        sources = [there[one] for one in load.script.config_maps]
        leads = script_leads(load.script, sources, [f"{name}-"])
        lines += [
            f"Load {load.name}: {one}, where pods of the run may have no way to (spec.egress)."
            for one in (*leads.imports, *leads.names)
            if not may_reach(one.host, asked.egress)
        ]
    return lines


def stays_of(spec: dict[str, Any], own: Mapping[str, Scenario]) -> list[str]:
    """Return what the loads of a valid spec leave in Postgres, a line for it."""
    from laptime.api.spec import BenchmarkRunSpec
    from laptime.catalog import scenarios
    from laptime.plan import left_behind

    asked = BenchmarkRunSpec.model_validate(spec)
    scenario = own.get(asked.scenario) or scenarios().get(asked.scenario)
    stays = scenario and left_behind(asked, scenario)
    return [f"{stays[0].upper()}{stays[1:]}."] if stays else []


def expected_length(name: str, spec: dict[str, Any], own: Scenario | None = None) -> str:
    """Return how many trials a valid spec makes and about how long they take, in a sentence.

    `own` is its scenario where it is the user's: in those that come with Laptime nobody thinks.
    """
    from laptime.api.durations import format_duration
    from laptime.api.spec import BenchmarkRunSpec
    from laptime.catalog import UNKNOWN
    from laptime.plan import (
        USUAL_RATE,
        plan_profiles,
        plan_trials,
        profiling_seconds,
        remaining_seconds,
    )

    asked = BenchmarkRunSpec.model_validate(spec).with_control()
    if asked.verify_only:
        return f"It checks {len(asked.servers)} servers and measures nothing (verifyOnly)."
    # The order of the trials, which the seed decides, changes nothing.
    trials = plan_trials(name, asked, seed=0)
    least = "at least " if asked.by_results else ""
    profiling = profiling_seconds(asked, plan_profiles(name, asked))
    length = format_duration(remaining_seconds(asked, trials, {}, own or UNKNOWN) + profiling)
    text = f"{least}{len(trials)} trials, about {length}"
    if any(load.closed is not None and load.closed.requests for load in asked.loads):
        text += f"; those bound by requests are reckoned with {USUAL_RATE:,.0f} requests/s"
    return f"It takes {text}."
