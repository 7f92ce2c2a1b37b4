"""What connections waited for inside Postgres, by the names that Postgres gives it."""

from __future__ import annotations

import random

import pytest

from laptime.api.causes import Cause
from laptime.api.evidence import DatabaseEvidence
from laptime.measure.waits import one_lock_in_use, waits_by_kind


def database(waits: dict[str, float]) -> DatabaseEvidence:
    return DatabaseEvidence(
        connections_max=40, active_mean=sum(waits.values()), on_cpu_mean=0.0, waits=waits
    )


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("Lock:tuple", Cause.POSTGRES_LOCKS),
        ("Lock:transactionid", Cause.POSTGRES_LOCKS),
        ("Lock:extend", Cause.POSTGRES_LOCKS),
        ("LWLock:BufferContent", Cause.POSTGRES_LOCKS),
        ("LWLock:LockManager", Cause.POSTGRES_LOCKS),
        ("IPC:ProcArrayGroupUpdate", Cause.POSTGRES_LOCKS),
        ("Timeout:SpinDelay", Cause.POSTGRES_LOCKS),
        ("IO:DataFileRead", Cause.POSTGRES_IO),
        ("IO:BufFileWrite", Cause.POSTGRES_IO),
        ("IO:SLRURead", Cause.POSTGRES_IO),
        ("IPC:BufferIO", Cause.POSTGRES_IO),
        ("IPC:BufferIo", Cause.POSTGRES_IO),
        ("IO:WALSync", Cause.POSTGRES_WAL),
        ("IO:WalSync", Cause.POSTGRES_WAL),
        ("IO:WalWrite", Cause.POSTGRES_WAL),
        ("LWLock:WALWrite", Cause.POSTGRES_WAL),
        ("LWLock:WALInsert", Cause.POSTGRES_WAL),
    ],
)
def test_each_wait_is_of_a_kind(name: str, cause: Cause) -> None:
    (found,) = waits_by_kind(database({name: 2.0}))
    assert (found.cause, found.connections) == (cause, 2.0)
    assert f"({name} 2.0)" in found.said


@pytest.mark.parametrize(
    "name", ["Timeout:PgSleep", "Client:ClientRead", "Client:ClientWrite", "IPC:ExecuteGather"]
)
def test_what_a_statement_or_the_server_waits_for_is_of_no_kind(name: str) -> None:
    assert waits_by_kind(database({name: 2.0})) == []


def test_the_most_frequent_kind_comes_first_with_its_most_frequent_event() -> None:
    found = waits_by_kind(
        database({"IO:WALSync": 0.9, "LWLock:WALWrite": 1.5, "Lock:tuple": 2.0, "IO:Dsm": 0.01})
    )
    causes = [one.cause for one in found]
    assert causes == [Cause.POSTGRES_WAL, Cause.POSTGRES_LOCKS, Cause.POSTGRES_IO]
    assert found[0].said == "the write-ahead log (LWLock:WALWrite 1.5, IO:WALSync 0.9)"


def simulated(customers: int, kept: float, between: float, seed: int) -> tuple[float, float]:
    """Share of the time in which the lock is taken, and its mean queue, from a simulation."""
    draw = random.Random(seed)
    elapsed = busy = queue = 0.0
    present = 0
    for _ in range(200_000):
        arriving, leaving = (customers - present) / between, (1 / kept if present else 0.0)
        step = draw.expovariate(arriving + leaving)
        elapsed += step
        busy += step * (present > 0)
        queue += step * max(0, present - 1)
        present += 1 if draw.random() < arriving / (arriving + leaving) else -1
    return busy / elapsed, queue / elapsed


@pytest.mark.parametrize("between", [0.5, 2.0, 8.0])
@pytest.mark.parametrize("customers", [2, 5, 20])
def test_one_lock_is_taken_for_as_long_as_a_simulation_says(customers: int, between: float) -> None:
    busy, queue = simulated(customers, 1.0, between, seed=1)
    assert one_lock_in_use(customers, queue) == pytest.approx(busy, abs=0.02)


@pytest.mark.parametrize("customers", [2, 3, 4, 5, 8, 20, 100, 1000])
def test_where_half_wait_for_one_lock_it_is_in_use_nearly_always(customers: int) -> None:
    assert one_lock_in_use(customers, customers / 2) >= 0.98


def test_a_lock_that_nobody_waits_for_or_that_all_wait_for() -> None:
    assert one_lock_in_use(5, 0.0) == 0.0
    assert one_lock_in_use(5, 4.0) == 1.0
    assert one_lock_in_use(0, 3.0) == 1.0
