"""How evenly the work of a server was spread over its worker processes, as a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from laptime.api.results import Validity
from laptime.api.server import Server
from laptime.api.usage import ComponentUsage, ProcessUsage, Source, TrialUsage
from laptime.report.html import to_html
from laptime.report.markdown import to_markdown
from laptime.report.processes import process_tables
from tests.report.html_tree import parse
from tests.report.sample import recorded

LOAD = "closed"
REPORT, _ = recorded()
FIRST = next(one for one in REPORT.trials if (one.server, one.load) == ("fastapi", LOAD))


def trial(*cores: float, **part: Any) -> Any:
    """Return a trial of a server whose master has worker processes, and a pause beside them."""
    one = ProcessUsage(process=7, parent=1, command="gunicorn", cores=0.01, cores_peak=0.02)
    workers = [
        one.model_copy(update={"process": 10 + n, "parent": 7, "cores": used})
        for n, used in enumerate(cores)
    ]
    pause = one.model_copy(update={"process": 2, "command": "pause", "cores": 0.0})
    every = sorted([one, pause, *workers], key=lambda process: -process.cores)
    used = ComponentUsage(component="server", server="fastapi", pods=1, processes=every, **part)
    usage = TrialUsage(source=Source.AGENT, complete=True, components=[used])
    return FIRST.model_copy(update={"usage": usage})


def server(workers: int) -> Server:
    return Server(name="fastapi", preset="fastapi-sync", workers=workers)


def test_the_busiest_of_each_repetition_come_first() -> None:
    trials = [trial(0.9, 0.3, 0.6), trial(0.2, 1.0, 0.6)]
    (table,) = process_tables(trials, [server(3)], LOAD)
    assert table.headings == ("Server", "Worker processes", "Cores", "The busiest, of their mean")
    assert table.lines == (("fastapi", "3", "0.95, 0.6, 0.25", "1.58x"),)


def test_of_one_worker_or_of_processes_that_nobody_knows_there_is_no_table() -> None:
    assert process_tables([trial(0.9)], [server(1)], LOAD) == []
    assert process_tables([trial(0.9, 0.3)], [server(2)], "other") == []
    # Fewer than the server has workers: they are threads, or not all were followed.
    assert process_tables([trial(0.9, 0.3)], [server(3)], LOAD) == []
    unwatched = FIRST.model_copy(update={"usage": None})
    assert process_tables([unwatched], [server(2)], LOAD) == []


def test_repetitions_in_which_they_are_not_known_are_left_out() -> None:
    (table,) = process_tables([trial(0.9, 0.3), trial(0.5)], [server(2)], LOAD)
    assert table.lines == (("fastapi", "2", "0.9, 0.3", "1.50x"),)


def test_a_repetition_that_does_not_count_in_the_row_does_not_count_here() -> None:
    invalid = trial(0.1, 0.1).model_copy(update={"validity": Validity.INVALID})
    (table,) = process_tables([trial(0.9, 0.3), invalid], [server(2)], LOAD)
    assert table.lines == (("fastapi", "2", "0.9, 0.3", "1.50x"),)


def test_workers_that_nobody_asked_for_are_shown_too() -> None:
    trials = [trial(0.9, 0.8, 0.1, 0.0), trial(0.9, 0.8)]
    (table,) = process_tables(trials, [server(2)], LOAD)
    assert table.lines == (("fastapi", "3", "0.9, 0.8, 0.05", "1.54x"),)


def test_page_and_text_show_the_same_table() -> None:
    servers = [server(2) if one.name == "fastapi" else one for one in REPORT.spec.servers]
    spec = REPORT.spec.model_copy(update={"servers": servers})
    report = replace(REPORT, spec=spec, trials=[trial(0.9, 0.3)])
    assert "| fastapi | 2 | 0.9, 0.3 | 1.50x |" in to_markdown(report)
    page = parse(to_html(report, {}))
    (table,) = [one for one in page.all("table") if "each worker process" in one.text]
    assert "fastapi20.9, 0.31.50x" in table.text
