"""Latencies in the buckets that Prometheus has for native histograms (its schema 7).

Each power of two has 128 buckets: one is 0.54 % wide, and so is the most that a percentile is off.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

SCHEMA = 7
_LOWEST, _HIGHEST = -2600, 1600
"""Buckets of less than 1 µs and of more than an hour: no generator counts there."""


class SparseHistogram(Counter[int]):
    """Counts by bucket: bucket i has what is above 2^((i-1)/128) s and at most 2^(i/128) s."""

    @classmethod
    def decode(cls, numbers: Sequence[int]) -> SparseHistogram:
        """Return the histogram that a generator wrote as gaps and counts in turn.

        What is no bucket of 1 µs … 1 h is left out: whoever wrote it need not be trusted.
        """
        counts = cls()
        bucket = 0
        for gap, count in zip(numbers[::2], numbers[1::2], strict=False):
            bucket += gap
            if _LOWEST <= bucket <= _HIGHEST and count > 0:
                counts[bucket] += count
        return counts

    def encode(self) -> list[int]:
        """Return the gaps and counts, in turn, that `decode` reads."""
        numbers: list[int] = []
        before = 0
        for bucket in sorted(self):
            numbers += (bucket - before, self[bucket])
            before = bucket
        return numbers

    def quantile(self, share: float) -> float:
        """Return the response time in seconds that a share (0 to 1) of the values did not exceed.

        It is the middle of the bucket, by ratio, in which that one of the values lies (the nearest
        rank), and so at most 0.3 % off.

        Raises:
            ValueError: there are no values.
        """
        wanted = max(1, math.ceil(share * self.total()))
        count = 0
        for bucket in sorted(self):
            count += self[bucket]
            if count >= wanted:
                return math.exp2((bucket - 0.5) / 2**SCHEMA)
        raise ValueError("no values have no quantile")

    def seconds(self) -> float:
        """Return the sum of all values, each taken in the middle of its bucket."""
        return math.fsum(
            count * math.exp2((bucket - 0.5) / 2**SCHEMA) for bucket, count in self.items()
        )
