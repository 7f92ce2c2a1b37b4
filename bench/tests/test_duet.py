"""What `make bench-duet` judges, and what makes it fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from math import exp
from pathlib import Path

import pytest
from duet.run import BURNERS, FEWEST, TURNS, Entry, Way, manifest, read, table, widths


def way(factor: float, half: float) -> Way:
    return Way(factor, factor * exp(-half), factor * exp(half), 60.0, 12, 0.6, 0.0)


def rounds(wide: list[float], factors: list[float]) -> list[Entry]:
    return [
        Entry(
            "c",
            0.0,
            {"interleaved": way(4.0, 0.5), "duet": way(4.0, 0.5 * width)},
            {"interleaved": way(4.0, 0.02), "duet": way(4.0 * factor, 0.02)},
        )
        for width, factor in zip(wide, factors, strict=True)
    ]


GOOD = [1.0, 1.01, 0.99, 1.0, 1.0]


def test_an_interval_half_as_wide_is_good_and_a_wider_one_is_not() -> None:
    assert widths(rounds([0.3], [1.0])[0]) == pytest.approx(0.3)
    assert table(rounds([0.3, 0.4, 0.5, 0.9, 0.2], GOOD))[1] is True
    assert table(rounds([0.3, 0.6, 0.6, 0.9, 0.2], GOOD))[1] is False


def test_a_factor_that_differs_on_a_quiet_machine_is_a_miss() -> None:
    narrow = [0.3] * 5
    assert table(rounds(narrow, [1.1, 1.11, 1.09, 1.1, 1.1]))[1] is False
    # Nor is one good of which nobody knows whether it differs.
    assert table(rounds(narrow, [0.8, 1.25, 0.9, 1.1, 1.0]))[1] is False


def test_a_round_without_noise_says_nothing_of_noise() -> None:
    wide = rounds([1.5], [1.0])[0]
    calm = replace(wide, noisy={**wide.noisy, "interleaved": way(4.0, 0.03)})
    good = rounds([0.3] * 5, GOOD)
    assert table([*good, wide, wide, wide, wide, wide, wide])[1] is False
    found, verdict = table([*good, *[calm] * 6])
    assert verdict is True
    assert any("6 rounds were not noisy" in one for one in found)
    assert table([*good[:4], *[calm] * 6])[1] is None


def test_few_rounds_say_nothing() -> None:
    assert table(rounds([0.3] * (FEWEST - 1), GOOD[: FEWEST - 1]))[1] is None
    assert table(rounds([0.3], [1.0]))[1] is None


def test_an_entry_is_read_as_it_was_written() -> None:
    (entry,) = rounds([0.3], [1.0])
    assert read(asdict(entry)) == entry


def test_both_ways_have_the_same_time() -> None:
    # Two trials at the same time take as long as one.
    in_turn, together = (manifest(one)["spec"]["repetitions"] for one in ("interleaved", "duet"))
    assert (in_turn, together) == (TURNS, 2 * TURNS)


NEIGHBOUR = """
import multiprocessing, time
import duet.run
duet.run.SPELL = 0.05
with duet.run.neighbour(1):
    print(*(one.pid for one in multiprocessing.active_children()), flush=True)
    time.sleep(600)
"""


def test_the_noisy_neighbour_goes_with_a_bench_that_is_killed() -> None:
    command, path = [sys.executable, "-c", NEIGHBOUR], ":".join(sys.path)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    ) as bench:
        assert bench.stdout is not None
        burners = [Path("/proc") / pid for pid in bench.stdout.readline().split()]
        assert len(burners) == BURNERS
        assert all(map(running, burners))
        bench.kill()
    end = time.monotonic() + 20
    try:
        while any(map(running, burners)):
            assert time.monotonic() < end, "they use the CPU for ever"
            time.sleep(0.05)
    finally:
        for one in filter(running, burners):
            os.kill(int(one.name), signal.SIGKILL)


def running(process: Path) -> bool:
    """Return whether a process is there that was not ended."""
    try:
        return process.joinpath("stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
