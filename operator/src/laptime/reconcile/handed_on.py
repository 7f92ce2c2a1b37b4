"""The seconds of trials that are over, for Prometheus to fetch, each under its own time.

A scrape gets each trial once: what Prometheus has is not shown again. Whether it arrived is asked
of Prometheus itself (reconcile/readings.py), and what did not is shown again to everybody. That is
one of those who read: what it has is shown to the others for a while, as to the second of a pair.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from laptime.measure.each_second import (
    ELAPSED,
    ERRORS,
    LATENCY,
    QUANTILE,
    REQUESTS,
    TrialSeconds,
)
from laptime.measure.sparse_histogram import SCHEMA, SparseHistogram

PROTOBUF = "application/vnd.google.protobuf"
PROTOBUF_TYPE = f"{PROTOBUF}; proto=io.prometheus.client.MetricFamily; encoding=delimited"
TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

MOST_BYTES = 8 * 2**20
"""Of one answer; what is more waits for the next one."""
_READER_SECONDS = 150.0
"""Whoever has not asked for so long does not read any more."""
LINGER_SECONDS = 75.0
"""As long a trial is shown after somebody has it: another reader may scrape once a minute."""
_MOST_READERS = 50
_GAUGE, _GAUGE_HISTOGRAM = 1, 5
_HELP = {
    REQUESTS: "Requests that ended in the second before this moment, warm-up included; whole: the "
    "phase had all of that second.",
    ERRORS: "Requests without a right answer in time of that second, by kind; dropped: given up "
    "unsent, and none of the requests that ended; none: there were no errors at all.",
    ELAPSED: "Seconds since the phase of the trial began, of whole seconds alone.",
    LATENCY: "Response times of the right answers of that second.",
    QUANTILE: "Quantiles of the response times of the right answers of that whole second.",
}
_ESCAPED = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})

Key = tuple[str, ...]
"""Namespace, run and attempt of a trial."""


@dataclass(frozen=True)
class _Offer:
    """A trial's seconds in both of the formats that Prometheus may ask for."""

    protobuf: bytes
    text: bytes

    @staticmethod
    def of(series: TrialSeconds) -> _Offer:
        return _Offer(_protobuf(series), _text(series))


class HandedOn:
    """What is shown to whom. It is filled by the event loop, and read by scrapes in threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._offers: dict[Key, _Offer] = {}
        self._shown: dict[str, set[Key]] = {}
        self._leaving: dict[Key, float] = {}
        """When those that are withdrawn are shown no more."""
        self._asked_at: dict[str, float] = {}
        self._began = clock()

    def offer(self, key: Key, series: TrialSeconds) -> None:
        """Show a trial to everybody, again if it was shown before."""
        made = _Offer.of(series)
        with self._lock:
            self._drop_those_that_left()
            self._offers[key] = made
            self._leaving.pop(key, None)
            self._not_shown(key)

    def again(self, key: Key) -> None:
        """Show a trial that is offered to everybody once more, as it was written out then."""
        with self._lock:
            self._not_shown(key)

    def _not_shown(self, key: Key) -> None:
        for shown in self._shown.values():
            shown.discard(key)

    def withdraw(self, key: Key) -> None:
        """Show a trial no more, but for a while to those who have not seen it."""
        with self._lock:
            self._drop_those_that_left()
            if key in self._offers:
                self._leaving[key] = self._clock() + LINGER_SECONDS

    def _drop_those_that_left(self) -> None:
        now = self._clock()
        for key in [one for one, at in self._leaving.items() if at <= now]:
            del self._leaving[key], self._offers[key]
            self._not_shown(key)

    def clear(self) -> None:
        """Show nothing."""
        with self._lock:
            self._offers.clear()
            self._leaving.clear()
            self._shown.clear()

    def was_shown(self, key: Key) -> bool:
        """Whether anybody has fetched it since it was offered last."""
        with self._lock:
            return any(key in shown for shown in self._shown.values())

    @property
    def read(self) -> bool:
        """Whether anybody fetches at all; of a new process nobody knows, and somebody may."""
        with self._lock:
            newest = max(self._asked_at.values(), default=self._began)
        return self._clock() - newest < _READER_SECONDS

    def answer(self, reader: str, accept: str) -> tuple[str, bytes]:
        """Return content type and body for a scrape of a reader that takes certain formats."""
        now = self._clock()
        binary = PROTOBUF in accept
        with self._lock:
            self._asked_at.pop(reader, None)
            self._asked_at[reader] = now
            for gone, at in list(self._asked_at.items()):
                if now - at > _READER_SECONDS or len(self._asked_at) > _MOST_READERS:
                    del self._asked_at[gone]
                    self._shown.pop(gone, None)
            self._drop_those_that_left()
            shown = self._shown.setdefault(reader, set())
            parts: list[bytes] = []
            for key, offer in self._offers.items():
                part = offer.protobuf if binary else offer.text
                if key in shown or (parts and sum(map(len, parts)) + len(part) > MOST_BYTES):
                    continue
                parts.append(part)
                shown.add(key)
        return (PROTOBUF_TYPE if binary else TEXT_TYPE), b"".join(parts)


def _series(
    series: TrialSeconds,
) -> Iterator[tuple[str, dict[str, str], Iterable[tuple[int, float | SparseHistogram]]]]:
    """Yield metric, labels and samples of each series, metric by metric."""
    for name, phase in series.phases.items():
        # Whoever draws leaves out what would look like a breakdown, at any step: by a label, since
        # a step that is a mean of several seconds cannot be told by when it is.
        whole = {at for at, _ in phase.elapsed}
        for value in (True, False):
            labels = {**series.labels, "phase": name, "whole": str(value).lower()}
            yield REQUESTS, labels, [one for one in phase.requests if (one[0] in whole) is value]
    for name, phase in series.phases.items():
        for kind, samples in phase.errors.items():
            yield ERRORS, {**series.labels, "phase": name, "kind": kind}, samples
    for name, phase in series.phases.items():
        yield ELAPSED, {**series.labels, "phase": name}, phase.elapsed
    for name, phase in series.phases.items():
        yield LATENCY, {**series.labels, "phase": name}, phase.latency
    for name, phase in series.phases.items():
        for quantile, times in phase.quantiles.items():
            yield QUANTILE, {**series.labels, "phase": name, "quantile": quantile}, times


def _text(series: TrialSeconds) -> bytes:
    """Return the counts in Prometheus' text format, which has no native histograms."""
    lines: list[str] = []
    for metric, labels, samples in _series(series):
        if metric == LATENCY:
            continue
        if not lines or not lines[-1].startswith(metric):
            lines.append(f"# TYPE {metric} gauge\n")
        pairs = ",".join(f'{name}="{text.translate(_ESCAPED)}"' for name, text in labels.items())
        lines += [f"{metric}{{{pairs}}} {value} {at}\n" for at, value in samples]
    return "".join(lines).encode()


# Prometheus' protobuf format (prometheus/client_model, metrics.proto), as far as it is needed ----


def _protobuf(series: TrialSeconds) -> bytes:
    families: dict[str, list[bytes]] = {}
    for metric, labels, samples in _series(series):
        metrics = families.setdefault(metric, [])
        named = b"".join(
            _part(1, _part(1, name.encode()) + _part(2, text.encode()))
            for name, text in labels.items()
        )
        for at, value in samples:
            figure = (
                _part(7, _histogram(value))
                if isinstance(value, SparseHistogram)
                else _part(2, _double(1, float(value)))
            )
            metrics.append(_part(4, named + figure + _number(6, at)))
    delimited = b""
    for metric, metrics in families.items():
        if not metrics:
            continue
        kind = _GAUGE_HISTOGRAM if metric == LATENCY else _GAUGE
        head = _part(1, metric.encode()) + _part(2, _HELP[metric].encode()) + _number(3, kind)
        family = head + b"".join(metrics)
        delimited += _varint(len(family)) + family
    return delimited


def _histogram(counts: SparseHistogram) -> bytes:
    """Return the message of a native histogram with whole counts."""
    spans: list[list[int]] = []
    deltas = b""
    before = count = 0
    end: int | None = None
    for bucket in sorted(counts):
        if end is not None and bucket == end:
            spans[-1][1] += 1
        else:
            spans.append([bucket if end is None else bucket - end, 1])
        end = bucket + 1
        deltas += _varint(_zigzag(counts[bucket] - before))
        before = counts[bucket]
        count += before
    return b"".join(
        (
            _number(1, count),
            _double(2, counts.seconds()),
            _number(5, _zigzag(SCHEMA)),
            *(_part(12, _number(1, _zigzag(gap)) + _number(2, length)) for gap, length in spans),
            _part(13, deltas),
        )
    )


def _part(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _zigzag(value: int) -> int:
    return (value << 1) ^ (value >> 63)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
