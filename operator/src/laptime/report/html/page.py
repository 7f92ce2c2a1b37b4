"""The report as one HTML file: nothing is loaded from anywhere, and no script is in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import yaml
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from laptime import __version__
from laptime.analysis import wording
from laptime.analysis.repeated import fewest_answers
from laptime.api import API_VERSION, KIND
from laptime.api.metrics import Metric
from laptime.api.profile import Profile
from laptime.api.results import TrialResult
from laptime.catalog import scenarios
from laptime.report.contents import Report
from laptime.report.feeders import document_to_fill, what_to_fill
from laptime.report.html.isolation import node_lines, own_cpus
from laptime.report.html.limits import watchers
from laptime.report.html.palette import (
    DARK_SERVERS,
    DARK_SURFACE,
    LIGHT_SERVERS,
    LIGHT_SURFACE,
    server_variables,
)
from laptime.report.html.profiles import shown_profiles
from laptime.report.html.sections import SHARES, section
from laptime.report.intervals import intervals_said
from laptime.report.markdown import scenario_said, tiers
from laptime.report.published import published_tables

_TEMPLATE = "page.html.j2"
_STYLE = "style.css"
_TRIALS_LEFT_OUT = (
    "The trials did not fit into the results of the run: what each part used is not shown here."
)

_ORDERS = ("cancel", "suspend", "retry", "ttlSecondsAfterFinished")
"""Of a spec: what became of this run. Another one that has them ends at once, waits or is gone."""


def to_html(report: Report, payloads: Mapping[str, str], profiles: Sequence[Profile] = ()) -> str:
    """Return the report as HTML, the same for the same report.

    `payloads` are the generator's results (base64 of gzipped JSON) by trial: response times and
    throughput over time are drawn from them, and left out where they are missing.
    """
    spec = report.spec
    begin, end = report.measured_between
    # Autoescape: messages come from servers that nobody vouches for.
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(_resource(_TEMPLATE))
    return template.render(
        report=report,
        spec=spec,
        summary=report.summary,
        verdict=_sentences(report),
        style=Markup(_style()),
        version=__version__,
        begin=begin,
        end=end,
        scenario=scenario_said(report),
        intervals=intervals_said(report.spec),
        tiers=tiers(report),
        sections=[section(report, load, payloads) for load in spec.loads],
        shares=[f"{share * 100:g} %" for share in SHARES],
        watchers=watchers(report.trials) if report.trials_known else _TRIALS_LEFT_OUT,
        nodes=sorted({n.node for t in report.trials if t.usage for n in t.usage.nodes}),
        isolation=wording.isolation(report.summary.isolation) if report.measured else "",
        node_lines=node_lines(report.trials),
        own_cpus=own_cpus(report.trials),
        published=published_tables(report.published) if report.published else [],
        profiles=shown_profiles(profiles),
        manifest=manifest_to_repeat(report),
        # Charts are made here, out of figures and escaped names.
        Markup=Markup,
        number=wording.number,
        p99=_p99,
        quietness=wording.quietness,
        control=wording.control,
    )


def _p99(trial: TrialResult) -> str:
    """Return the p99 of a trial in words; of too few requests it is the slowest one, and none."""
    figures = trial.figures
    if figures is None or figures.latency is None:
        return "-"
    if figures.requests < fewest_answers(Metric.P99):
        return "-"
    return wording.latency(figures.latency.p99_seconds)


def manifest_to_repeat(report: Report) -> str:
    """Return the BenchmarkRun that measures the same again in the same order, as YAML.

    A scenario that does not come with Laptime stands before it. What is missing of it, and
    ConfigMaps of scripts, is said in comments at the beginning.
    """
    spec: dict[str, Any] = {**report.spec.to_wire(), "seed": report.seed}
    for name in _ORDERS:
        spec.pop(name, None)
    # The operator adds the control itself, and refuses a server of that name.
    spec["servers"] = [one for one in spec["servers"] if one["name"] != report.spec.control_name]
    document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": report.name, "namespace": report.namespace},
        "spec": spec,
    }
    documents = [document]
    if report.scenario is not None and not report.scenario.builtin:
        documents.insert(0, document_to_fill(report.scenario, report.namespace, report.feeders))
    text: str = yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, width=100)
    return "".join(f"# {' '.join(line.split())}\n" for line in _missing(report)) + text


def _missing(report: Report) -> list[str]:
    """Return what whoever repeats the run has to have besides its manifest, in lines."""
    return [*_missing_scenario(report), *_missing_scripts(report)]


def _missing_scripts(report: Report) -> list[str]:
    hashes = {one.config_map: one.hash for one in report.scripts}
    return [
        f"It needs ConfigMap {name} in namespace {report.namespace} as it was when the run began"
        # Results of older versions do not say it.
        + (f" (hash {hashes[name]})." if name in hashes else ".")
        for name in report.spec.script_config_maps
    ]


def _missing_scenario(report: Report) -> list[str]:
    scenario, where = report.scenario, report.namespace
    as_it_was = f"scenario {report.spec.scenario} as it was (work {report.scenario_hash})"
    if scenario is not None and not scenario.builtin and report.feeders:
        return [
            "What feeders hold is in no report, since it may be secret.",
            f"While namespace {where} has {as_it_was}, the BenchmarkRun alone is enough.",
            "Else write first what its feeders held:",
            *what_to_fill(scenario, where, report.feeders),
        ]
    # Results of older versions do not say whether it comes with Laptime.
    of_laptime = scenarios().get(report.spec.scenario)
    ours = report.scenario_builtin or (of_laptime and of_laptime.hash == report.scenario_hash)
    if scenario is None and report.scenario_hash and not ours:
        command = f"kubectl laptime report {report.name} -n {where} --stored FOLDER"
        return [
            f"It needs {as_it_was},",
            f"which did not fit into the results: {command}",
            "writes it as scenario.json, without the rows of feeders.",
        ]
    return []


def _sentences(report: Report) -> tuple[str, str]:
    """Return the first sentence of the verdict, for the heading, and the others."""
    names = {server.name for server in report.spec.servers}

    def sentence(part: str) -> str:
        # The name of a server is not written differently because it stands first.
        is_name = part.partition(" ")[0].rstrip(",") in names
        return f"{part}." if is_name else f"{part[:1].upper()}{part[1:]}."

    first, *others = [sentence(part) for part in report.summary.verdict.split("; ")]
    return first, " ".join(others)


def _style() -> str:
    colours = {
        "light-servers": server_variables(LIGHT_SERVERS),
        "dark-servers": server_variables(DARK_SERVERS),
        "light-surface": f"--surface:{LIGHT_SURFACE};",
        "dark-surface": f"--surface:{DARK_SURFACE};",
    }
    style = _resource(_STYLE)
    for name, declarations in colours.items():
        style = style.replace(f"/*{name}*/", declarations)
    return style


def _resource(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")
