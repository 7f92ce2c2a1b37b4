"""HDR histograms of response times: decoded, merged without loss, read.

The wire form is HdrHistogram's V2, compressed, base64 (the Java implementation's
`encodeIntoCompressedByteBuffer`): https://github.com/HdrHistogram/HdrHistogram. Decoded here and
not by a library, because what a generator printed is not trusted: every length is bounded.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from laptime.api.results import Latency, ResponseTimes

_COMPRESSED_COOKIE = 0x1C849304
_PLAIN_COOKIE = 0x1C849303
_WORD_SIZE_BITS = 0xF0
_WORD_SIZE = 0x10
_HEADER = struct.Struct(">IIIIQQd")

_SUB_BUCKET_BITS = 11
"""2,048 sub-buckets: three significant digits."""
_HALF = 1 << (_SUB_BUCKET_BITS - 1)
_HIGHEST_MICROSECONDS = 3_600_000_000
_CELLS = 24 * _HALF
"""Cells of a histogram of 1 µs … 1 h, with one bucket to spare."""
MAX_HISTOGRAM_BYTES = _HEADER.size + 9 * _CELLS
"""Of a histogram that is not compressed."""


class HistogramError(ValueError):
    """The text is no histogram as the generator writes them; the message says why."""


@dataclass(frozen=True)
class Histogram:
    """Counts of microseconds in cells of at most 0.1 % width."""

    counts: Mapping[int, int] = field(default_factory=dict)

    @staticmethod
    def decode(text: str) -> Histogram:
        """Return the histogram that the base64 text carries.

        Raises:
            HistogramError: it is not a V2 histogram of 1 µs … 1 h with three digits.
        """
        return Histogram(_cells(unpack_histogram(text)[_HEADER.size :]))

    def encode(self) -> str:
        """Return the text that `decode` reads; HdrHistogram's other implementations do as well."""
        body = bytearray()
        empty = -1
        for cell in sorted(self.counts):
            gap = cell - empty - 1
            if gap:
                body += _encoded(-gap)
            body += _encoded(self.counts[cell])
            empty = cell
        header = _HEADER.pack(
            _PLAIN_COOKIE | _WORD_SIZE, len(body), 0, 3, 1, _HIGHEST_MICROSECONDS, 1.0
        )
        return pack_histogram(header + bytes(body))

    @staticmethod
    def of_microseconds(values: Iterable[int]) -> Histogram:
        """Return the histogram of these values; each counts as at least 1 µs, at most 1 h."""
        return Histogram(
            Counter(_cell_of(min(max(value, 1), _HIGHEST_MICROSECONDS)) for value in values)
        )

    @staticmethod
    def merged(histograms: Iterable[Histogram]) -> Histogram:
        """Return the histogram of all values together; nothing is lost."""
        total: Counter[int] = Counter()
        for histogram in histograms:
            total.update(histogram.counts)
        return Histogram(total)

    @property
    def total(self) -> int:
        """Number of values."""
        return sum(self.counts.values())

    def quantile_seconds(self, q: float) -> float:
        """Return the value at or below which the share q (0 … 1) of all values lies.

        As HdrHistogram does: the highest value of the cell, so never too good. 0 for no values.
        """
        return self.quantiles_seconds([q])[0]

    def quantiles_seconds(self, qs: Sequence[float]) -> list[float]:
        """Return the values of many shares, in ascending order, in one pass over the cells."""
        total = self.total
        values: list[float] = []
        cells = iter(sorted(self.counts))
        seen, highest = 0, 0
        for q in qs:
            wanted = _rank(q, total)
            while seen < wanted and (cell := next(cells, None)) is not None:
                seen += self.counts[cell]
                highest = _bounds(cell)[1]
            values.append(highest / 1e6)
        return values

    def quantiles_with(self, failed: int, qs: Sequence[float]) -> list[float | None]:
        """Return the quantiles over these right answers and `failed` requests that had none.

        Those count as slower than all others: a share, in ascending order, that falls on one is
        None.
        """
        total = self.total
        ranks = [_rank(q, total + failed) for q in qs]
        known = self.quantiles_seconds([rank / total for rank in ranks if rank <= total])
        return [*known, *[None] * (len(ranks) - len(known))]

    def mean_seconds(self) -> float:
        """Return the mean, each value taken as the middle of its cell. 0 for no values."""
        total = self.total
        if total == 0:
            return 0.0
        microseconds = sum(sum(_bounds(cell)) / 2 * n for cell, n in self.counts.items())
        return microseconds / total / 1e6

    def response_times(self, failed: int = 0) -> ResponseTimes | None:
        """Return the percentiles over these right answers and the requests that had none.

        `failed` requests count as slower than all others: a percentile that falls on one is None.
        None for no values.
        """
        answers = self.latency()
        if answers is None:
            return None
        p50, p80, p90, p99, p999 = self.quantiles_with(failed, (0.5, 0.8, 0.9, 0.99, 0.999))
        return ResponseTimes(
            min_seconds=answers.min_seconds,
            mean_seconds=answers.mean_seconds,
            p50_seconds=p50,
            p80_seconds=p80,
            p90_seconds=p90,
            p99_seconds=p99,
            p999_seconds=p999,
            max_seconds=answers.max_seconds,
        )

    def latency(self) -> Latency | None:
        """Return the percentiles of these values that Laptime reports; None for no values."""
        if self.total == 0:
            return None
        p50, p80, p90, p99, p999, longest = self.quantiles_seconds(
            (0.5, 0.8, 0.9, 0.99, 0.999, 1.0)
        )
        return Latency(
            min_seconds=_bounds(min(self.counts))[0] / 1e6,
            mean_seconds=self.mean_seconds(),
            p50_seconds=p50,
            p80_seconds=p80,
            p90_seconds=p90,
            p99_seconds=p99,
            p999_seconds=p999,
            max_seconds=longest,
        )


def _rank(q: float, total: int) -> int:
    """Return which of so many values, from 1 in ascending order, bounds the share q of them."""
    return max(1, math.ceil(q * total - 1e-9))


def _cell_of(microseconds: int) -> int:
    shift = max(0, microseconds.bit_length() - _SUB_BUCKET_BITS)
    return shift * _HALF + (microseconds >> shift)


def _bounds(cell: int) -> tuple[int, int]:
    """Return the lowest and the highest value, in microseconds, that count in a cell."""
    shift = max(0, cell // _HALF - 1)
    lowest = (cell - shift * _HALF) << shift
    return lowest, lowest + (1 << shift) - 1


def pack_histogram(plain: bytes) -> str:
    """Return the text of a histogram that `unpack_histogram` returned."""
    packed = zlib.compress(plain)
    prefix = struct.pack(">II", _COMPRESSED_COOKIE | _WORD_SIZE, len(packed))
    return base64.b64encode(prefix + packed).decode()


def unpack_histogram(text: str) -> bytes:
    """Return the header and the counts of a histogram, neither in base64 nor compressed.

    Raises:
        HistogramError: it is not a V2 histogram of 1 µs … 1 h with three digits.
    """
    try:
        packed = base64.b64decode(text, validate=True)
        cookie, length = struct.unpack_from(">II", packed)
    except (binascii.Error, ValueError, struct.error):
        raise HistogramError("not a histogram in base64") from None
    if cookie & ~_WORD_SIZE_BITS != _COMPRESSED_COOKIE or length != len(packed) - 8:
        raise HistogramError("not a compressed HdrHistogram of version 2")
    inflate = zlib.decompressobj()
    try:
        plain = inflate.decompress(packed[8:], MAX_HISTOGRAM_BYTES + 1)
    except zlib.error as error:
        raise HistogramError(f"cannot be decompressed: {error}") from None
    if len(plain) > MAX_HISTOGRAM_BYTES or not inflate.eof:
        raise HistogramError("cut off, or larger than a histogram of 1 µs … 1 h can be")
    if len(plain) < _HEADER.size:
        raise HistogramError("shorter than its header")
    cookie, length, offset, digits, lowest, highest, _ = _HEADER.unpack_from(plain)
    if cookie & ~_WORD_SIZE_BITS != _PLAIN_COOKIE or length != len(plain) - _HEADER.size:
        raise HistogramError("its header does not fit its length")
    if (offset, digits, lowest, highest) != (0, 3, 1, _HIGHEST_MICROSECONDS):
        raise HistogramError("not a histogram of 1 µs … 1 h with three significant digits")
    return plain


def _cells(plain: bytes) -> dict[int, int]:
    """Read the counts: ZigZag LEB128 numbers, a negative one is a run of empty cells."""
    counts: dict[int, int] = {}
    cell = at = 0
    while at < len(plain):
        number, at = _number(plain, at)
        if number < 0:
            cell -= number
        else:
            if number > 0:
                counts[cell] = number
            cell += 1
        if cell > _CELLS:
            raise HistogramError("it has more cells than 1 µs … 1 h needs")
    return counts


def _encoded(number: int) -> bytes:
    """Return a number as ZigZag LEB128; counts and gaps are far below its nine bytes."""
    value = (number << 1) ^ (number >> 63)
    body = bytearray()
    while value >= 0x80:
        body.append(value & 0x7F | 0x80)
        value >>= 7
    body.append(value)
    return bytes(body)


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return one ZigZag LEB128 number and the place after it; its ninth byte has eight bits."""
    value = 0
    for place in range(9):
        if at + place >= len(data):
            raise HistogramError("it ends within a number")
        byte = data[at + place]
        if place == 8:
            value |= byte << 56
        else:
            value |= (byte & 0x7F) << (7 * place)
        if place == 8 or byte < 0x80:
            return (value >> 1) ^ -(value & 1), at + place + 1
    raise AssertionError("a number ends at its ninth byte")
