"""The page: complete in itself, its figures those of the status, readable by everybody."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, pairwise
from math import dist
from operator import mul

import pytest
import yaml

from laptime.analysis import summarise, wording
from laptime.api.causes import Cause, LimitedBy
from laptime.api.loads import RampLoad, StairsLoad
from laptime.api.metrics import Metric
from laptime.api.reasons import REASONS
from laptime.api.results import Interval, ResultRow, RowState, Validity
from laptime.api.script import ComparedBy, ScriptFigures
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import KeptScript
from laptime.api.usage import ComponentUsage, CoresOverTime, NodeUsage, RowUsage, Source, TrialUsage
from laptime.measure import Histogram
from laptime.plan import Trial, plan_trials
from laptime.report import (
    Experiment,
    Report,
    read_results,
    status_rows,
    to_json,
    to_markdown,
)
from laptime.report.contents import LEFT_OUT
from laptime.report.html import to_html
from laptime.report.html.charts import (
    cpu_chart,
    factor_chart,
    latency_chart,
    mean_by_second,
    throughput_chart,
)
from laptime.report.html.isolation import own_cpus
from laptime.report.html.limits import usage, watchers
from laptime.report.html.page import manifest_to_repeat
from laptime.report.html.palette import (
    DARK_SERVERS,
    DARK_SURFACE,
    LIGHT_SERVERS,
    LIGHT_SURFACE,
    look,
)
from tests.analysis.runs import Outcome, make_spec, run, steady
from tests.report.html_tree import Element, parse, table
from tests.report.sample import SPEC, WRONG, recorded

REPORT, PAYLOADS = recorded()
SMALL = recorded(small=True)
BLINDNESSES = {
    "none": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
"""What light is to the colour-blind, by Machado, Oliveira and Fernandes (2009)."""


# Drawn when a test asks for it: each process of pytest imports this module, and it takes seconds.
@cache
def whole_html() -> str:
    return to_html(REPORT, PAYLOADS)


@cache
def whole_page() -> Element:
    return parse(whole_html())


@cache
def without_trials() -> Element:
    return parse(to_html(replace(REPORT, trials=[], left_out=("trials",)), {}))


MISSING = "No published factor beside mine: figures are published of presets, and this is none."


def results(load: str) -> dict[str, dict[str, str]]:
    head, *lines = table(whole_page().by_id(f"load-{load}").all("table")[0])
    return {line[0].split()[0]: dict(zip(head, line, strict=True)) for line in lines}


class TestCompleteInItself:
    def test_nothing_is_loaded_from_anywhere(self) -> None:
        for element in whole_page().iter():
            for name, value in element.attributes.items():
                if name in ("src", "srcset", "href", "action", "data", "poster"):
                    assert value.startswith(("#", "data:,")), (element.tag, name, value)
        (style,) = whole_page().all("style")
        assert "@import" not in style.text
        assert re.findall(r"url\((?!#)", whole_html()) == []
        assert "//" not in re.sub(r"<pre.*?</pre>", "", whole_html(), flags=re.S)

    def test_no_script_is_in_it(self) -> None:
        assert whole_page().all("script") == []
        handlers = [
            name
            for element in whole_page().iter()
            for name in element.attributes
            if name.startswith("on")
        ]
        assert handlers == []

    def test_what_a_server_said_is_shown_and_does_nothing_else(self) -> None:
        assert "<script>alert" not in whole_html()
        assert " ".join(WRONG.split()) in whole_page().text

    def test_the_same_report_is_the_same_page(self) -> None:
        assert to_html(*SMALL) == to_html(*SMALL)


class TestFigures:
    @pytest.mark.parametrize("load", ["closed", "open"])
    def test_they_are_those_of_the_status(self, load: str) -> None:
        shown = results(load)
        factor = "Factor" if load == "closed" else "P99 factor"
        rows = [row for row in status_rows(REPORT.summary.rows) if row.load == load]
        assert list(shown) == [row.server for row in rows]
        for row in rows:
            line = shown[row.server]
            if row.requests_per_second is None or row.latency is None:
                assert line["Requests/s"] == line["p99"] == line[factor] == "-"
                continue
            if row.factor is None:
                # The baseline's p99 fell among requests without a right answer.
                assert (load, line[factor]) == ("open", "-")
                assert shown["fastapi"]["p99"] == "failed (5x)"
                continue
            assert line["Requests/s"] == wording.with_interval(row.requests_per_second)
            assert line[factor] == wording.factor(row.factor)
            assert line["p50"] == wording.latency_figure(row.response_time(Metric.P50), ends=True)
            assert line["p99.9"] == wording.latency_figure(
                row.response_time(Metric.P999), ends=True
            )
            assert line["Validity"] == row.validity

    def test_the_verdict_stands_first_as_sentences(self) -> None:
        (heading,), (further,) = whole_page().all("h1"), whole_page().all("p", class_="further")
        said = f"{heading.text} {further.text}".lower().replace(". ", "; ")
        assert said == f"{REPORT.summary.verdict}.".lower()
        assert heading.text.startswith("axum and axum-again cannot be told apart")

    def test_servers_that_are_tied_share_a_letter(self) -> None:
        groups = {server: line["Group"] for server, line in results("closed").items()}
        assert groups == {
            "fastapi": "C", "fastapi-async": "B", "axum": "A", "axum-again": "A", "mine": "-",
        }  # fmt: skip

    def test_published_factors_stand_beside_the_measured_ones(self) -> None:
        assert results("closed")["axum"]["Published"] == "25.1x"
        assert "Published" not in results("open")["axum"]

    def test_why_a_published_factor_is_missing_stands_below_the_table(self) -> None:
        for load, times in (("closed", 1), ("open", 0)):
            said = [one.text for one in whole_page().by_id(f"load-{load}").all("p")]
            assert said.count(MISSING) == times

    def test_the_published_order_stands_beside_the_measured_one(self) -> None:
        published = "axum, axum-again, fastapi-async, fastapi"
        said = [
            one.text
            for one in whole_page().by_id("load-closed").all("p")
            if "order as published" in one.text
        ]
        (text,) = said
        assert text.startswith(f"Same order as published: yes. Published: {published}; measured: ")
        assert "Same order" not in whole_page().by_id("load-open").text

    def test_percentiles_of_the_table_are_those_of_the_merged_histograms(self) -> None:
        details, _ = whole_page().by_id("load-closed").all("details")
        head, fastapi, *_ = table(details.all("table")[0])
        shown = dict(zip(head, fastapi, strict=True))
        latency = next(r.latency for r in REPORT.summary.rows if r.server == "fastapi")
        assert latency is not None
        assert shown["50 %"] == wording.latency(latency.p50_seconds)
        assert shown["99.9 %"] == wording.latency(latency.p999_seconds)
        assert shown["100 %"] == wording.latency(latency.max_seconds)

    def test_percentiles_are_of_all_requests_in_rows_table_and_curve(self) -> None:
        """A server that sheds a third of its load has not the curve of one that is well."""
        times = tuple(range(1001, 2001))
        spec = make_spec("a", "b", repetitions=3)
        trials, results, payloads = run(
            spec, lambda t: Outcome(1000.0, times, errors=500 if t.server == "a" else 0)
        )
        summary = summarise(spec, trials, results, payloads, None, {})
        page = to_html(Report("demo", "default", spec, 1, summary, results), payloads)
        load = parse(page).by_id("load-closed")
        head, row, _ = table(load.all("table")[0])
        shares, percentiles, of_b = table(load.all("details")[0].all("table")[0])
        in_row = dict(zip(head, row, strict=True))
        in_table = dict(zip(shares, percentiles, strict=True))
        assert in_row["p50"].partition(" (")[0] == in_table["50 %"]
        assert in_row["p90"] == "failed (3x)"
        assert [in_table[one] for one in ("75 %", "90 %", "100 %")] == ["failed"] * 3
        assert "failed" not in of_b
        assert f"a: half of the requests within {in_table['50 %']}, 99 % failed; b: " in page
        assert "there a curve ends" in load.text

    @pytest.mark.parametrize(("answers", "known"), [(33, False), (34, True)])
    def test_percentiles_of_too_few_requests_are_in_no_table(
        self, answers: int, known: bool
    ) -> None:
        """They would be the slowest answer; that of a trial is so where all together have one."""
        spec = make_spec("a", repetitions=3)
        times = (1000,) * answers
        trials, results, payloads = run(spec, lambda _: Outcome(100.0, times))
        summary = summarise(spec, trials, results, payloads, None, {})
        page = parse(to_html(Report("demo", "default", spec, 1, summary, results), payloads))
        shares, of_a = table(page.by_id("load-closed").all("details")[0].all("table")[0])
        shown = dict(zip(shares, of_a, strict=True))
        assert [shown[one] for one in ("50 %", "95 %", "100 %")] == ["1.00 ms"] * 3
        assert shown["99 %"] == ("1.00 ms" if known else "-")
        assert (shown["99.5 %"], shown["99.99 %"]) == ("-", "-")
        said = f"99 % {'within 1.00 ms' if known else 'too few to say'}"
        assert said in page.by_id("load-closed").text
        head, *lines = table(page.by_id("environment").all("table")[0])
        assert {dict(zip(head, line, strict=True))["p99"] for line in lines} == {"-"}

    def test_times_from_due_stand_beside_those_from_sent(self) -> None:
        due, sent = "p99, due", "p99, sent"
        head, *lines = table(whole_page().by_id("load-open").all("table")[1])
        shown = {line[0]: dict(zip(head, line, strict=True)) for line in lines}
        for row in (row for row in REPORT.summary.rows if row.load == "open" and row.latency):
            assert row.uncorrected_figures is not None
            assert row.lateness_p99_seconds is not None
            line = shown[row.server]
            assert line[due] == results("open")[row.server]["p99"]
            assert line[sent] == wording.latency_figure(row.uncorrected_figures.p99, ends=True)
            assert line["lateness p99"] == wording.latency(row.lateness_p99_seconds)
        assert shown["fastapi"]["p50, due"] != shown["fastapi"]["p50, sent"]
        # So many requests failed that neither has a p99.
        assert shown["fastapi"][due] == shown["fastapi"][sent] == "failed (5x)"
        assert "from when it was sent" not in whole_page().by_id("load-closed").text

    def test_a_search_has_its_bounds_and_where_it_broke(self) -> None:
        (found,) = [
            one for one in whole_page().by_id("load-limit").all("table") if "search" in one.text
        ]
        head, fastapi, *_ = table(found)
        # The lowest that was met is that of the first repetition, the highest that of the fifth.
        expected = [612 * 0.91, 612 * 0.95 * 1.05, 612 * 0.91 * 2]
        assert fastapi == ["fastapi", *(wording.number(rate) for rate in expected)]
        assert head[1:] == ["met up to", "missed from", "fewer completed than arrived from"]

    def test_cpu_over_time_is_the_mean_of_the_repetitions_at_each_second(self) -> None:
        for part, name in (("server", "cpu"), ("postgres", "cpu-postgres")):
            said = whole_page().by_id(f"chart-open-{name}-wide-description").text
            for server in ("fastapi", "axum"):
                curves = [
                    used.cores_over_time.cores
                    for trial in REPORT.trials
                    if (trial.server, trial.load) == (server, "open") and trial.usage
                    if (used := trial.usage.component(part, server)) and used.cores_over_time
                ]
                assert len(curves) == 5
                means = [sum(one or 0.0 for one in at) / 5 for at in zip(*curves, strict=True)]
                low, high = wording.cores(min(means)), wording.cores(max(means))
                assert f"{server}: between {low} and {high}" in said

    def test_every_doubt_and_failure_is_said(self) -> None:
        doubts = whole_page().by_id("load-open").all("div", class_="doubts")[0].text
        assert "fastapi, doubtful: " in doubts
        assert "mine, failed: WrongAnswer: GET /" in doubts
        assert f"WrongAnswer: {REASONS['WrongAnswer'].advice.replace('`', '')}" in doubts

    def test_what_limited_whom_has_its_evidence(self) -> None:
        cause = results("closed")["fastapi"]["Limited by (suspected)"]
        assert cause == wording.cause(Cause.SERVER_CPU)
        limited = next(
            one for one in whole_page().by_id("load-closed").all("table") if "Evidence" in one.text
        )
        assert table(limited)[1] == [
            "fastapi", wording.cause(Cause.SERVER_CPU), "5 of 5",
            "the server used 0.98 of its 1 core", wording.cause(Cause.NODE),
        ]  # fmt: skip
        text = whole_page().by_id("load-closed").text
        assert "The pods were watched by the agent." in text
        assert "laptime explain proves it" in whole_page().by_id("reading").text

    def test_objectives_are_met_or_missed(self) -> None:
        lines = table(whole_page().by_id("objectives").all("table")[0])[1:]
        assert [line[:2] for line in lines] == [["met", "axum"], ["missed", "fastapi"]]

    def test_all_trials_are_listed_in_their_order(self) -> None:
        lines = table(whole_page().by_id("environment").all("table")[0])[1:]
        assert [line[0] for line in lines] == [str(one.ordinal) for one in REPORT.trials]

    def test_each_part_has_the_nodes_that_it_ran_on(self) -> None:
        (used,) = [
            one for one in whole_page().by_id("load-closed").all("table") if "each part" in one.text
        ]
        head, *lines = table(used)
        assert head[-1] == "Node"
        assert {(line[1], line[-1]) for line in lines} == {
            ("server", "node-1"),
            ("postgres", "node-2, node-3"),
        }

    def test_what_else_the_nodes_did_has_its_figures_and_a_word(self) -> None:
        section = whole_page().by_id("isolation")
        last = max(REPORT.trials, key=lambda one: one.ordinal)
        most = last.ordinal / 100
        assert (
            f"By the worst trial: shared: others used at least {0.2 + most:.2g} of the 8 CPUs of "
            f"node node-1 meanwhile (trial {last.trial})."
        ) in section.text
        head, line = table(section.all("table")[0])
        first = min(one.ordinal for one in REPORT.trials) / 100
        assert dict(zip(head, line, strict=True)) == {
            "Node": "node-1",
            "Trials": str(len(REPORT.trials)),
            "CPUs": "8",
            "Others": f"{0.2 + first:.2f} to {0.2 + most:.2f}",
            "Other pods": f"{0.1 + first:.2f} to {0.1 + most:.2f}",
            "Those in namespace team": f"web-<1> ({most:.2f})",
            "Stolen": "0.1%",
            "Stood still": "0.00 s",
            "Pressure": "5.00%",
            "Frequency": "2.50 GHz",
            "Fixed work": f"{200 + 10 * first:.0f} to {200 + 10 * most:.0f} µs",
            "Clock ahead": "12.0 ms",
        }
        words = [line[8] for line in table(whole_page().by_id("environment").all("table")[0])]
        assert words == ["Nodes", *(wording.quietness(one.isolation) for one in REPORT.trials)]
        assert {"quiet", "shared"} <= set(words)

    @pytest.mark.parametrize(
        ("told", "said"),
        [
            ({}, ""),
            (
                {"axum": (0, 0), "fastapi": (0, 0)},
                "No part of the run had CPUs for itself: other pods could run on all of them.",
            ),
            (
                {"axum": (2, 2), "fastapi": (1, 2), "postgres": (0, 0)},
                "CPUs that no other pod could run on: server axum 2, server fastapi 1 to 2, "
                "postgres none.",
            ),
        ],
    )
    def test_which_parts_had_cpus_for_themselves(
        self, told: dict[str, tuple[int, int]], said: str
    ) -> None:
        trials = REPORT.trials[:2]
        parts = [
            [
                ComponentUsage(
                    component="postgres" if name == "postgres" else "server",
                    server=None if name == "postgres" else name,
                    pods=1,
                    exclusive_cpus=cpus[number],
                )
                for name, cpus in told.items()
            ]
            for number in range(2)
        ]
        changed = [
            trial.model_copy(
                update={"usage": trial.usage.model_copy(update={"components": components})}
            )
            for trial, components in zip(trials, parts, strict=True)
            if trial.usage is not None
        ]
        assert len(changed) == 2
        assert own_cpus(changed) == said

    def test_the_manifest_measures_the_same_again_in_the_same_order(self) -> None:
        (pre,) = whole_page().by_id("repeat").all("pre")
        raw = pre.children[0]
        assert isinstance(raw, str)
        manifest = yaml.safe_load(raw)
        assert manifest["kind"] == "BenchmarkRun"
        again = BenchmarkRunSpec.model_validate(manifest["spec"])
        assert again == SPEC.model_copy(update={"seed": REPORT.seed})

    def test_the_environment_is_there(self) -> None:
        text = whole_page().by_id("environment").text
        assert "6.12.0" in text
        assert "Seed of the order42" in text


class TestForEverybody:
    def test_a_load_may_have_the_name_of_another_part_of_the_page(self) -> None:
        loads = [SPEC.loads[0].model_copy(update={"name": "environment"})]
        spec = SPEC.model_copy(update={"loads": loads, "objectives": []})
        rows = tuple(row.model_copy(update={"load": "environment"}) for row in REPORT.summary.rows)
        summary = replace(REPORT.summary, rows=rows[:5])
        page = parse(to_html(replace(REPORT, spec=spec, summary=summary, trials=[]), {}))
        ids = [one.attributes["id"] for one in page.iter() if "id" in one.attributes]
        assert len(ids) == len(set(ids))

    def test_ids_are_unique_and_all_references_are_met(self) -> None:
        ids = [one.attributes["id"] for one in whole_page().iter() if "id" in one.attributes]
        assert len(ids) == len(set(ids))
        for element in whole_page().iter():
            for name, value in element.attributes.items():
                for target in re.findall(r"url\(#([^)]+)\)", value):
                    assert target in ids
                if name == "href" and value.startswith("#"):
                    assert value[1:] in ids
                if name == "aria-labelledby":
                    assert set(value.split()) <= set(ids)

    def test_every_chart_has_a_title_and_says_its_figures(self) -> None:
        charts = whole_page().all("svg")
        # Of each load factors, times, throughput, CPU of servers and Postgres; wide and narrow.
        # Under the open load there is no factor: the baseline's p99 fell among failed requests.
        assert len(charts) == 4 * 5 * 2 - 2
        for chart in charts:
            assert chart.attributes["role"] == "img"
            title, description = chart.all("title")[0].text, chart.all("desc")[0].text
            assert title
            assert "fastapi" in description

    def test_every_heading_of_a_table_has_its_scope(self) -> None:
        assert {one.attributes.get("scope") for one in whole_page().all("th")} == {"col", "row"}
        assert len(whole_page().all("caption")) == len(whole_page().all("table"))

    def test_what_scrolls_can_be_scrolled_by_keyboard_and_has_a_name(self) -> None:
        for one in whole_page().all("div", class_="scroll"):
            assert one.attributes["tabindex"] == "0"
            assert one.attributes["aria-label"]

    def test_headings_leave_no_level_out(self) -> None:
        levels = [int(one.tag[1]) for one in whole_page().iter() if re.fullmatch("h[1-6]", one.tag)]
        assert levels[0] == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))

    def test_paper_is_light_whatever_the_screen_is(self) -> None:
        (style,) = whole_page().all("style")
        dark = re.findall(r"@media ([^{]*prefers-color-scheme: dark[^{]*)", style.text)
        assert [media.split()[0] for media in dark] == ["screen"]

    def test_charts_have_no_colour_of_their_own(self) -> None:
        for chart in whole_page().all("svg"):
            for element in chart.iter():
                assert "#" not in re.sub(r"url\(#", "", element.attributes.get("style", ""))

    @pytest.mark.parametrize(
        ("colour", "surface"),
        [
            *((one, LIGHT_SURFACE) for one in LIGHT_SERVERS),
            *((one, DARK_SURFACE) for one in DARK_SERVERS),
        ],
    )
    def test_colours_of_servers_stand_out(self, colour: str, surface: str) -> None:
        assert contrast(colour, surface) >= 3

    @pytest.mark.parametrize("colours", [LIGHT_SERVERS, DARK_SERVERS])
    def test_colours_of_servers_can_be_told_apart_on_grey_paper(
        self, colours: tuple[str, ...]
    ) -> None:
        ranked = sorted(lab(linear(one))[0] for one in colours)
        assert all(after - before >= 2 for before, after in pairwise(ranked))
        first = sorted(lab(linear(one))[0] for one in colours[:4])
        assert all(after - before >= 5 for before, after in pairwise(first))

    @pytest.mark.parametrize("colours", [LIGHT_SERVERS, DARK_SERVERS])
    @pytest.mark.parametrize("blindness", BLINDNESSES)
    def test_colours_of_servers_can_be_told_apart_by_the_colour_blind(
        self, colours: tuple[str, ...], blindness: str
    ) -> None:
        seen = [
            lab([sum(map(mul, row, linear(one))) for row in BLINDNESSES[blindness]])
            for one in colours
        ]
        nearest = min(dist(one, other) for one, other in combinations(seen, 2))
        assert nearest >= 10

    def test_a_server_has_one_colour_everywhere_and_no_two_look_alike(self) -> None:
        servers = [f"s{n}" for n in range(32)]
        looks = [look(servers, server) for server in servers]
        assert len({(one.colour, one.dash) for one in looks}) == 32


def linear(colour: str) -> list[float]:
    """Return the shares of red, green and blue light in a colour."""
    channels = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def lab(light: Sequence[float]) -> tuple[float, float, float]:
    """Return lightness and hue of light as CIELAB, in which distances are those that are seen."""
    x, y, z = (
        sum(map(mul, row, (min(1.0, max(0.0, one)) for one in light)))
        for row in (
            (0.4339, 0.3762, 0.1899),
            (0.2126, 0.7152, 0.0722),
            (0.0178, 0.1095, 0.8727),
        )
    )
    fx, fy, fz = (c ** (1 / 3) if c > 0.008856 else 7.787 * c + 16 / 116 for c in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours by WCAG 2.2."""

    def luminance(colour: str) -> float:
        return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear(colour), strict=True))

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_page_says_why_cpu_and_cause_of_a_row_may_be_off() -> None:
    why = "readings are incomplete in 4 of 5 repetitions: Prometheus has no answer"
    usage = RowUsage(source=Source.AGENT, cores_mean=0.97, unwatched=4, doubts=[why])
    first, row, *others = SMALL[0].summary.rows
    row = row.model_copy(update={"usage": usage, "validity": Validity.VALID})
    summary = replace(SMALL[0].summary, rows=(first, row, *others))
    load = parse(to_html(replace(SMALL[0], summary=summary), {})).by_id(f"load-{row.load}")
    assert f"CPU, memory and cause: {why}" in load.text
    assert "valid, partly watched" in load.text


def test_what_was_tried_since_stands_beside_what_is_suspected() -> None:
    report, payloads = SMALL
    row = next(one for one in report.summary.rows if one.limited_by is not None)
    said = ["confirmed: 1.62x (1.54 to 1.70) with 10 <b>connections", "refuted: 1.00x with 2"]
    tried = [Experiment("shop-axum-explain", row.server, row.load, said)]
    text = to_html(replace(report, experiments=tried), payloads)
    load = parse(text).by_id(f"load-{row.load}")
    assert "Tried since" in load.text
    assert "confirmed: 1.62x (1.54 to 1.70) with 10 <b>connections (shop-axum-explain)" in load.text
    assert "<b>connections" not in text
    assert "Tried since" not in parse(to_html(*SMALL)).by_id(f"load-{row.load}").text


class TestWhatIsMissing:
    def test_that_nobody_watched_is_said(self) -> None:
        report, payloads = recorded(watched=False, small=True)
        page = parse(to_html(report, payloads))
        assert "Nobody watched the pods" in page.by_id("load-closed").text
        assert "CPU over time" not in page.by_id("load-closed").text
        assert "CPU of the other parts" not in page.by_id("load-closed").text
        assert "Limited by (suspected)" in page.by_id("load-closed").text
        isolation = page.by_id("isolation")
        assert "By the worst trial: not known: its version of Laptime did not" in isolation.text
        assert isolation.all("table") == []

    @pytest.mark.parametrize(
        ("nodes", "said"),
        [
            (
                [],
                "agent.enabled and prometheus.enabled turn it on, for the namespaces of watching.",
            ),
            (
                [NodeUsage(node="n1", cpus=2)],
                "Their nodes were watched: the chart value watching.namespaces has to name",
            ),
        ],
    )
    def test_which_value_of_the_chart_has_pods_watched_is_said(
        self, nodes: list[NodeUsage], said: str
    ) -> None:
        report, _ = recorded(watched=False, small=True)
        usage = TrialUsage(source=Source.NOBODY, complete=False, nodes=nodes)
        trials = [one.model_copy(update={"usage": usage}) for one in report.trials]
        assert said in watchers(trials)

    def test_without_the_generators_results_there_are_tables_and_factors(self) -> None:
        page = parse(to_html(SMALL[0], {}))
        assert "were not at hand: no curves" in page.by_id("load-closed").text
        assert [h.text for h in page.by_id("load-closed").all("figure")[0].all("h3")] == [
            "Factor against the baseline"
        ]

    def test_groups_are_about_the_figure_of_the_factors_whatever_was_left_out(self) -> None:
        """All servers of a script with arrivals have the same throughput: it says nothing."""
        spec = BenchmarkRunSpec.model_validate(
            {
                "scenario": "users",
                "servers": [{"name": name, "preset": "axum-sqlx"} for name in "abc"],
                "loads": [{"name": "own", "script": {"configMap": "mine"}}],
                "repetitions": 5,
            }
        )
        median = {"a": 5000, "b": 2000, "c": 1000}

        def script(trial: Trial) -> Outcome:
            wobble = 1 + 0.002 * (trial.ordinal * 7 % 5)
            return Outcome(100 * wobble, (int(median[trial.server] * wobble),) * 300)

        said = ScriptFigures(warmup_named=True, compared_by=ComparedBy.LATENCY)
        trials, results, payloads = run(spec, script)
        results = [one.model_copy(update={"script": said}) for one in results]
        summary = summarise(spec, trials, results, payloads, None, {})
        text = to_json(Report("demo", "team", spec, 1, summary, results))
        document = json.loads(text)
        for trial in document["trials"]:
            del trial["script"]
        document["leftOut"] = ["trials.script"]
        for stored in (text, json.dumps(document)):
            load = parse(to_html(read_results(stored)[1], payloads)).by_id("load-own")
            head, *lines = table(load.all("table")[0])
            groups = [dict(zip(head, line, strict=True))["Group"] for line in lines]
            assert groups == ["C", "B", "A"]
            assert "cannot be told apart by p99: all pairs" in load.text
        assert (
            without_trials().by_id("load-open").all("abbr")[0].attributes["title"].endswith("p99")
        )

    def test_what_did_not_fit_into_the_results_is_named(self) -> None:
        report = SMALL[0]
        for most in (10_000, 60_000):
            _, smaller = read_results(to_json(report, most), report.spec)
            assert smaller.left_out
            said = [
                parse(to_html(smaller, {})).all("dl", class_="facts")[0].text,
                to_markdown(smaller).partition("\n- Not here: ")[2].partition("\n")[0],
            ]
            for one in set(smaller.left_out) - {"spec"}:
                assert all(LEFT_OUT[one] in text for text in said)
        assert "Not here" not in parse(to_html(report, {})).text
        assert "Not here" not in to_markdown(report)

    def test_a_run_with_nothing_measured_has_a_page(self) -> None:
        trials = plan_trials("demo", SPEC, 1)
        report = Report("demo", "team", SPEC, 1, summarise(SPEC, trials, [], {}, None, {}), [])
        page = parse(to_html(report, {}))
        assert page.all("h1")[0].text == "Nothing is measured yet."
        assert page.all("svg") == []
        assert "Isolation" not in page.text
        assert page.all("p", class_="note") == []

    def test_of_a_load_that_was_not_begun_it_says_nothing_of_who_watched(self) -> None:
        report, payloads = REPORT, PAYLOADS
        begun = [one for one in report.trials if one.load == "closed"]
        summary = summarise(
            report.spec, plan_trials("demo", report.spec, 1), begun, payloads, None, {}, "Cancelled"
        )
        page = parse(to_html(replace(report, summary=summary, trials=begun), payloads))
        notes = {
            section.attributes["id"]: [note.text for note in section.all("p", class_="note")]
            for section in page.all("section")
            if section.attributes["id"].startswith("load-")
        }
        assert notes.pop("load-closed")
        assert notes
        assert all(not said for said in notes.values())

    def test_single_repetitions_have_no_groups(self) -> None:
        report, payloads = SMALL
        first = [trial for trial in report.trials if trial.repetition == 1]
        page = parse(to_html(replace(report, trials=first), payloads))
        assert "nobody knows how far chance goes" in page.by_id("load-closed").text

    def test_charts_without_figures_are_left_out(self) -> None:
        assert factor_chart([], ["a"], "x") is None
        assert latency_chart({"a": Histogram()}, {}, ["a"], "x") is None
        assert throughput_chart({"a": [{0: 5}]}, ["a"], "x") is None
        assert cpu_chart({"a": [{0: 0.5}]}, ["a"], "x") is None


class TestWhatIsInvalid:
    """What a row leaves out is in no other figure of the page either."""

    def of_a(self, invalid: Sequence[int], causes: Sequence[Cause] = ()) -> Element:
        """Return the load of a page on which `a` was much faster where it is invalid."""
        spec = make_spec("a", "b", repetitions=5)

        def script(trial: Trial) -> Outcome:
            fast = trial.server == "a" and trial.repetition in invalid
            return Outcome(20_000, (100,) * 20_000) if fast else Outcome(1000, (1000,) * 2000)

        trials, results, payloads = run(spec, script)
        for place, one in enumerate(results):
            found: dict[str, object] = {}
            if one.server == "a" and one.repetition in invalid:
                found["validity"] = Validity.INVALID
            if causes:
                cause = causes[one.repetition - 1]
                found["limited_by"] = LimitedBy(cause=cause, evidence="seen")
            results[place] = one.model_copy(update=found)
        summary = summarise(spec, trials, results, payloads, None, {})
        report = Report("demo", "default", spec, 1, summary, results)
        return parse(to_html(report, payloads)).by_id("load-closed")

    def percentile(self, load: Element) -> str:
        head, of_a, _ = table(load.all("details")[0].all("table")[0])
        return dict(zip(head, of_a, strict=True))["50 %"]

    def test_a_percentile_is_that_of_the_row(self) -> None:
        load = self.of_a(invalid=[3])
        head, of_a, _ = table(load.all("table")[0])
        assert dict(zip(head, of_a, strict=True))["p50"].startswith("1.00 ms")
        assert self.percentile(load) == "1.00 ms"

    def test_where_all_are_invalid_they_are_what_there_is(self) -> None:
        assert self.percentile(self.of_a(invalid=[1, 2, 3, 4, 5])) == "100 us"

    def test_a_cause_is_that_of_so_many_repetitions_as_its_evidence_says(self) -> None:
        cpu, node = Cause.SERVER_CPU, Cause.NODE
        load = self.of_a(invalid=[4, 5], causes=[cpu, cpu, node, cpu, cpu])
        limited = next(one for one in load.all("table") if "Evidence" in one.text)
        said = "seen (so in 2 of 3 repetitions)"
        assert table(limited)[1][1:4] == [wording.cause(cpu), "2 of 3", said]

    def test_no_line_is_drawn_of_it(self) -> None:
        report, payloads = SMALL
        left_out = [one for one in report.trials if one.server == "axum" and one.repetition > 3]
        marked = [
            one.model_copy(update={"validity": Validity.INVALID}) if one in left_out else one
            for one in report.trials
        ]
        rest = [one for one in report.trials if one not in left_out]
        pages = [to_html(replace(report, trials=trials), payloads) for trials in (marked, rest)]
        drawn = [re.findall("<svg.*?</svg>", page, re.S) for page in pages]
        assert len(drawn[0]) >= 8
        assert drawn[0] == drawn[1]


def test_repetitions_of_different_spans_and_gaps_have_one_mean() -> None:
    fine = CoresOverTime(span_seconds=1, cores=[0.2, 0.4, None, 0.8, 1.0])
    coarse = CoresOverTime(span_seconds=2, cores=[0.6, 0.4])
    mean = mean_by_second([fine.by_second(), coarse.by_second()])
    assert mean == pytest.approx({0: 0.4, 1: 0.5, 2: 0.4, 3: 0.6, 4: 1.0})


def test_the_mean_of_all_repetitions_ends_where_one_of_them_does() -> None:
    """One went on alone, faster than before: that is in its own line."""
    short, long = {0: 100, 1: 200}, {0: 300, 1: 200, 2: 900, 3: 900}
    seconds = {"a": [short, long]}
    for chart in (throughput_chart(seconds, ["a"], "x"), cpu_chart(seconds, ["a"], "x")):
        assert chart is not None
        assert "a: between 200 and 200" in chart.wide


def test_a_second_without_samples_breaks_the_line() -> None:
    whole, broken = (
        cpu_chart({"a": [{t: 0.5 + t / 10 for t in seconds}]}, ["a"], "x")
        for seconds in (range(6), (0, 1, 4, 5))
    )
    assert whole is not None
    assert broken is not None

    def moves(drawing: str) -> int:
        paths = parse(drawing).all("path")
        return sum(one.attributes.get("d", "").count("M") for one in paths)

    assert moves(broken.wide) > moves(whole.wide)


LINE, BAR = "stroke-dasharray", "stroke: var(--server-1); stroke-width: 3"
"""How the line at 1x is drawn, and the bar of the second server."""


@pytest.mark.parametrize(
    ("factor", "crosses"),
    [
        (Interval(value=0.82, low=0.81, high=0.83), False),
        (Interval(value=0.82, low=0.81), True),
        (Interval(value=0.82, high=0.83), False),
        (Interval(value=1.2, high=1.3), True),
    ],
)
def test_a_bar_without_an_end_goes_to_the_edge(factor: Interval, crosses: bool) -> None:
    """One that is not told apart from the baseline crosses the line at 1x, as others do."""
    rows = [
        ResultRow(server=name, load="limit", state=RowState.MEASURED, factor=one)
        for name, one in (("base", Interval(value=1.0, low=1.0, high=1.0)), ("b", factor))
    ]
    chart = factor_chart(rows, ["base", "b"], "x")
    assert chart is not None
    assert ("no known end" in chart.caption) is (None in (factor.low, factor.high))
    reach: dict[str, list[float]] = {}
    for path in parse(chart.wide).all("path"):
        style = path.attributes.get("style", "")
        for kind in (LINE, BAR):
            if kind in style:
                # From one side to the other, each with its height.
                numbers = re.findall(r"[\d.]+", path.attributes["d"])
                reach.setdefault(kind, []).extend(map(float, numbers[::2]))
    assert (min(reach[BAR]) < reach[LINE][0] < max(reach[BAR])) is crosses


def test_the_rate_that_a_ramp_asks_for_is_drawn_beside_the_answers() -> None:
    ramp = RampLoad.model_validate({"from": 100, "to": 900, "duration": "8s"})
    answers = {"a": [{0: 150, 1: 250, 2: 350}]}
    charts = [throughput_chart(answers, ["a"], "x", one) for one in (None, ramp)]
    plain, drawn = (parse(chart.wide) for chart in charts if chart is not None)
    assert len(drawn.all("path")) > len(plain.all("path"))
    assert [chart is not None and "asked for" in chart.caption for chart in charts] == [False, True]


def test_the_rates_of_stairs_are_drawn_beside_the_answers() -> None:
    steps = [{"rate": 100, "duration": "2s"}, {"rate": 400, "duration": "1s"}]
    stairs = StairsLoad.model_validate({"steps": steps})
    assert [stairs.rate_at(second + 0.5) for second in range(4)] == [100, 100, 400, 400]
    chart = throughput_chart({"a": [{0: 99, 1: 100, 2: 350}]}, ["a"], "x", stairs)
    assert chart is not None
    assert "asked for" in chart.caption


def test_the_largest_number_of_servers_fits_its_legend() -> None:
    servers = [f"server-number-{n:05d}" for n in range(32)]
    histograms = {
        name: Histogram.of_microseconds([1000 + n * 50] * 500) for n, name in enumerate(servers)
    }
    chart = latency_chart(histograms, {}, servers, "many")
    assert chart is not None
    drawn: Element = parse(chart.narrow)
    assert all(server in drawn.text for server in servers)


class TestTrialsThatDidNotFit:
    """Of a very large run the trials are left out: the page says so, and nothing about them."""

    def test_says_that_they_are_missing(self) -> None:
        assert "they did not fit into the results of the run" in without_trials().text
        assert "0 of" not in without_trials().text

    def test_says_nothing_that_would_follow_if_there_had_been_none(self) -> None:
        assert "Nobody watched the pods" not in without_trials().text
        assert "at most once" not in without_trials().text
        assert "All 0 trials" not in without_trials().text
        assert "Same order" not in without_trials().text

    def test_keeps_the_rows(self) -> None:
        rates = [row.requests_per_second for row in REPORT.summary.rows]
        said = [wording.with_interval(rate) for rate in rates if rate is not None]
        assert said
        assert [one for one in said if one not in without_trials().text] == []


def test_repetitions_that_precision_added_are_counted() -> None:
    report, payloads = SMALL
    last = report.trials[-1]
    more = [*report.trials, last.model_copy(update={"repetition": last.repetition + 4})]
    spec = report.spec.model_copy(update={"precision": "2%"})
    said = replace(report, spec=spec, trials=more).trials_said
    assert f"in {last.repetition + 4} repetitions" in said
    assert said in parse(to_html(replace(report, spec=spec, trials=more), payloads)).text


def test_a_run_with_control_can_be_repeated_as_it_is_printed() -> None:
    spec = make_spec("fastapi", "axum", control=True).with_control()
    rates = {"fastapi": 600.0, "axum": 900.0, "fastapi-control": 601.0}
    trials, results, payloads = run(spec, steady(rates))
    summary = summarise(spec, trials, results, payloads, None, {})
    report = Report("demo", "default", spec, 1, summary, results)
    printed = yaml.safe_load(manifest_to_repeat(report))["spec"]
    assert [one["name"] for one in printed["servers"]] == ["fastapi", "axum"]
    assert BenchmarkRunSpec.model_validate(printed).with_control() == spec.model_copy(
        update={"seed": 1}
    )
    page = parse(to_html(report, payloads))
    facts = page.all("dl", class_="facts")[0].text
    (control,) = summary.control
    assert "can be found" in wording.control(control)
    assert f"Control under closed{wording.control(control)}" in "".join(facts.split("\n"))
    # As in the status, the control is compared with the baseline alone.
    load = page.by_id("load-closed")
    head, *lines = table(load.all("table")[0])
    groups = {line[0].split()[0]: dict(zip(head, line, strict=True))["Group"] for line in lines}
    assert groups == {"axum": "A", "fastapi": "B", "fastapi-control": "-"}


def test_what_each_part_used_is_written_as_in_the_table_of_results() -> None:
    trial = REPORT.trials[0]
    part = ComponentUsage(
        component="server",
        server=trial.server,
        pods=1,
        cores_mean=11.3,
        cores_peak=0.5,
        working_set_bytes=1240 * 2**20,
    )
    used = TrialUsage(source=Source.AGENT, complete=True, components=[part])
    (line,) = usage([trial.model_copy(update={"usage": used})], [trial.server])
    assert (line.cores, line.peak_cores, line.memory) == ("11", "0.50", "1.21 GiB")


def test_a_server_that_answers_less_than_once_a_second_is_not_drawn_as_silent() -> None:
    chart = throughput_chart({"a": [{0: 1, 1: 0}, {0: 0, 1: 1}, {0: 0, 1: 0}]}, ["a"], "x")
    assert chart is not None
    assert "a: between 0.333 and 0.333" in chart.wide


def test_a_run_that_was_cancelled_is_repeated_to_its_end() -> None:
    spec = make_spec("fastapi", "axum")
    ended = {"cancel": True, "suspend": True, "retry": 3, "ttl_seconds_after_finished": 60}
    report = replace(REPORT, spec=spec.model_copy(update=ended))
    *_, printed = yaml.safe_load_all(manifest_to_repeat(report))
    assert BenchmarkRunSpec.model_validate(printed["spec"]) == spec.model_copy(
        update={"seed": report.seed}
    )


def test_a_run_with_scripts_is_repeated_with_those_that_it_began_with() -> None:
    script = {"configMap": "bench", "key": "s.js", "files": ["lib"], "duration": "10s"}
    loads = [{"name": "k6", "script": script}]
    wire = {**make_spec("axum").to_wire(), "loads": loads}
    spec = BenchmarkRunSpec.model_validate(wire)
    kept = [KeptScript(config_map=name, hash=f"of-{name}") for name in ("bench", "lib")]
    report = replace(REPORT, spec=spec, scripts=kept)
    needed = [f"# It needs ConfigMap {one} in namespace {report.namespace} as it was when the run "
              f"began (hash of-{one})." for one in ("bench", "lib")]  # fmt: skip
    said = [one for one in manifest_to_repeat(report).splitlines() if one.startswith("# It needs")]
    assert said == needed
    # As an older version has stored it.
    older = manifest_to_repeat(replace(report, scripts=()))
    assert "It needs ConfigMap bench in namespace" in older
    assert "hash" not in older


def test_of_a_single_server_nobody_says_that_it_was_measured_once() -> None:
    spec = make_spec("axum")
    trials, results, payloads = run(spec, steady({"axum": 900.0}))
    summary = summarise(spec, trials, results, payloads, None, {})
    text = parse(to_html(Report("demo", "default", spec, 1, summary, results), payloads)).text
    assert "nobody knows how far chance goes" not in text
