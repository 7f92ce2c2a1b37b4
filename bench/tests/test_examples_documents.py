"""The documents of docs/results: complete, and without the name of a machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from documents import BEGIN, END, Place, benchmark_document, index_line, updated_index
from machine import cpu_model, describe_nodes, without_names
from made_up import AS_PUBLISHED, measured

from laptime.api.causes import Cause, LimitedBy
from laptime.catalog import scenarios

PLACE = Place(machine="Example 9000, 2 cores", version="0.1.0", date="2026-11-21")
REPORT = "# users\n\n**axum is fastest**\n\n## Load closed\n\n#not a heading\n"
INDEX = Path(__file__).parents[2] / "docs" / "results" / "README.md"


def node(name: str = "host-7", boot: str = "b1", cpu: str = "2") -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "status": {
            "capacity": {"cpu": cpu, "memory": "8388608Ki"},
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": boot,
                "kernelVersion": "6.12.0",
                "kubeletVersion": "v1.34.4",
            },
        },
    }


PATH = "users.yaml"


def test_a_document_says_where_and_how_long_and_has_both_sides() -> None:
    text = benchmark_document(measured(), REPORT, PLACE, PATH)
    assert text.startswith("# users\n")
    assert "- Machine: Example 9000, 2 cores" in text
    assert "- Measured 2026-11-21 by Laptime 0.1.0, in 3m10s" in text
    assert (
        "| axum | 10.0x (9.90 to 10.1) | 25.1x | 4,000 (3,960 to 4,040) | 15,363 | server CPU |"
        in text
    )
    assert "Same order: **yes**. Published: axum, async, sync" in text
    said = "- axum, limited by server CPU (suspected): the server used 0.98 of its 1 core \\| on"
    assert said in text
    unknown = LimitedBy(cause=Cause.UNKNOWN, evidence="nobody watched")
    text = benchmark_document(measured(limited_by=unknown), REPORT, PLACE, PATH)
    assert "- axum, limited by unknown: nobody watched" in text


@pytest.mark.parametrize(("axum", "said"), [(4000.0, ""), (1601.0, "undecided"), (900.0, "no")])
def test_another_order_has_no_cause_without_an_experiment(axum: float, said: str) -> None:
    text = benchmark_document(measured({**AS_PUBLISHED, "axum": axum}), REPORT, PLACE, PATH)
    (line,) = (one for one in text.splitlines() if one.startswith("Same order: "))
    assert line.startswith(f"Same order: **{said or 'yes'}**.")
    assert ("Why is **open**" in line) is bool(said)


def test_the_report_of_the_product_follows_below_headings_of_its_own() -> None:
    text = benchmark_document(measured(), REPORT, PLACE, PATH)
    assert text.endswith(
        "## The report of the run\n\n**axum is fastest**\n\n### Load closed\n\n#not a heading\n"
    )
    assert [line for line in text.splitlines() if line.startswith("# ")] == ["# users"]


def test_where_nobody_has_published_figures_the_report_stands_alone() -> None:
    found = measured()
    unpublished = scenarios()["users"].model_copy(update={"published": None})
    alone = replace(found, report=replace(found.report, scenario=unpublished, published=None))
    text = benchmark_document(alone, REPORT, PLACE, "shop/shop.yaml")
    assert "- Run: [`shop/shop.yaml`](../../examples/shop/shop.yaml)" in text
    assert [line for line in text.splitlines() if line.startswith("#")][:3] == [
        "# users",
        "## The report of the run",
        "### Load closed",
    ]


def test_a_load_without_a_published_order_says_so() -> None:
    text = benchmark_document(measured(connections=7), REPORT, PLACE, PATH)
    assert "The source has no order of these servers" in text


def test_the_index_keeps_what_was_measured_before() -> None:
    empty = f"before\n{BEGIN}\n{END}\nafter\n"
    line = index_line(measured(), PLACE)
    assert line == (
        "| [users](users.md) | 2026-11-21 | 3m10s | axum is fastest: 10.0x "
        "| yes under 1 of 1 load |"
    )
    one = updated_index(empty, {"users": line})
    both = updated_index(one, {"sleep": "| [sleep](sleep.md) | x |"})
    assert both.startswith(f"before\n{BEGIN}\n| benchmark |")
    assert both.endswith(f"{line}\n| [sleep](sleep.md) | x |\n{END}\nafter\n")
    turned = index_line(measured({**AS_PUBLISHED, "axum": 900.0}), PLACE)
    again = updated_index(both, {"users": turned})
    assert again.count("[users]") == 1
    assert "no under 1 of 1 load" in again


def test_the_index_of_the_repository_has_a_place_for_it() -> None:
    text = INDEX.read_text(encoding="utf-8")
    assert updated_index(text, {}) == text
    with pytest.raises(ValueError, match="between the lines"):
        updated_index("# Nothing", {})


def test_a_machine_is_described_without_its_name() -> None:
    text = describe_nodes([node()], {"b1": "Example 9000"})
    assert text == (
        "Example 9000, 2 cores (amd64), 8.0 GiB of memory, Linux 6.12.0, Kubernetes v1.34.4"
    )


def test_the_cpu_of_another_machine_is_not_claimed_to_be_this_one() -> None:
    assert describe_nodes([node()], {"b2": "Example 9000"}).startswith("2 cores (amd64)")


def test_nodes_that_are_alike_are_counted() -> None:
    text = describe_nodes([node(), node("other"), node("third", cpu="1")], {})
    assert text.startswith("2 nodes with 2 cores (amd64)")
    assert "; 1 core (amd64)" in text


def test_the_model_of_the_cpu_is_read() -> None:
    assert cpu_model("processor\t: 0\nmodel name\t: Example  9000\n\n") == "Example 9000"
    assert cpu_model("processor\t: 0\nBogoMIPS\t: 50\n") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("busy: host-7 (0.98)", "busy: node (0.98)"),
        ("busy: host-7.example.org", "busy: node"),
        ("host-70 and my-host-7 are others", "host-70 and my-host-7 are others"),
        ("docker.io/laptime/agent on laptime", "docker.io/laptime/agent on laptime"),
    ],
)
def test_names_of_machines_are_taken_out(text: str, expected: str) -> None:
    assert without_names(text, ["host-7.example.org", "laptime", ""]) == expected
