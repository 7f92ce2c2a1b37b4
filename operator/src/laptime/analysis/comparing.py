"""One model of all servers by one figure: factors, and who is faster for sure. Pure.

A logarithm is a server's mean, plus what its repetition did to all, plus noise. Each server has a
variance of its own, but is never taken to be steadier than all of them are together: a few
repetitions that lie close together by chance must not make a claim. Two servers are told apart
where their means differ by more standard errors than the studentized range of that many servers
allows (J. W. Tukey, The Problem of Multiple Comparisons, 1953), and more than Student's t would
allow for these two alone. A tenth of the 5 % is kept for pairs alone (Bonferroni), so that one wild
server does not hide what two steady ones show. So all answers hold at once with 95 %, also that
about the best one of all, and also where one server is much noisier than the others. From as many
repetitions on as Wilcoxon's signed ranks need, these are used instead. What else was tried, and how
often each erred: docs/decisions/0010-one-model-of-a-run.md and 0044-claims-in-few-repetitions.md.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from laptime.analysis.blocks import fullest, measured_apart
from laptime.analysis.distributions import student_quantile, studentized_range_quantile
from laptime.analysis.logs import (
    ByRepetition,
    at_least,
    has_no_end,
    interval_of,
    left_open,
    unbounded,
)
from laptime.analysis.looks import ONCE, Looks
from laptime.analysis.statistics import (
    NOTICEABLE_RATIO,
    claim_confidence,
    claims,
    interval_of_log_mean,
    interval_of_logs,
    paired_logs,
    signed_ranks_suffice,
)
from laptime.api.results import Interval

Scores = Mapping[str, ByRepetition]
"""Logarithms by server and repetition, more being better."""


PAIRS_SHARE = 0.1
"""Share of the errors that pairs alone may make."""
POWER = 0.8
"""A difference counts as found when it would be in four of five such runs."""
NOISIER = 1.5
"""From this ratio of variances on a server's noise is taken to be its own, known by its own
repetitions alone."""


@dataclass(frozen=True)
class Noise:
    """How far one trial of a server lies from the next, but for what its repetition did to all."""

    variance: float
    """Of a logarithm."""
    repetitions: int
    degrees: int
    """Of freedom, with which it is known."""


@dataclass(frozen=True)
class _Model:
    """What all servers with the same repetitions say together."""

    means: Mapping[str, float]
    variances: Mapping[str, float]
    noisy: frozenset[str]
    """Servers that are noisier than all of them together."""
    together: float
    """The variance of all of them together."""
    repetitions: int
    degrees: int

    def error(self, one: str, other: str) -> float:
        """Return the standard error of the difference of two means."""
        return math.sqrt((self.variances[one] + self.variances[other]) / self.repetitions)


class Comparison:
    """Servers compared by one figure, all with all.

    `looks` say how much may be wrong of what is known by now: 5 %, or less where a run looks at its
    results again and again. Intervals have the confidence that this leaves.
    """

    def __init__(self, scores: Scores, looks: Looks = ONCE) -> None:
        self._scores = {name: score for name, score in scores.items() if score}
        self._errors = looks.errors_of(self._scores.values())
        repeated = [name for name, score in self._scores.items() if len(score) > 1]
        self._count = len(repeated)
        self._pairs = self._count * (self._count - 1) // 2
        # Ranks, order and intervals ask the same again.
        self._faster: dict[tuple[str, str], bool] = {}
        self._ratios: dict[tuple[str, str], Interval | None] = {}

    @property
    def servers(self) -> list[str]:
        """The servers that have the figure, in their order."""
        return list(self._scores)

    def ratio(self, one: str, other: str) -> Interval | None:
        """Return the ratio of two servers' figures with its interval; None without a pair.

        Never narrower than what the figures themselves leave open, and without 1 where one is
        faster for sure by what both say of a third. None, too, of two that have too few of their
        repetitions from one time: a ratio without an interval is for a single one. It has no end on
        the side on which a figure may be any amount more than was found; claims know of that.
        """
        found = self._between(one, other)
        if found is None or found.low is None or found.high is None:
            return found
        # Never beyond what it is around, whatever others say.
        low = min(max([found.low, *self._steps(one, other)]), max(found.low, found.value))
        above = [1 / step for step in self._steps(other, one)]
        high = max(min([found.high, *above]), min(found.high, found.value))
        found = found.model_copy(update={"low": low, "high": high})
        return found if one == other else unbounded(found, self._scores[one], self._scores[other])

    def _steps(self, one: str, other: str) -> list[float]:
        """Return how far apart two servers are at least, by each third that lies between for sure.

        Above 1 each. All claims hold at once, so what follows from two of them does as well. None
        where what the two did themselves says otherwise, as few repetitions in common can.
        """
        own = self._between(one, other)
        if own is None or own.value <= 1:
            return []
        return [
            (first.low or 1.0) * (second.low or 1.0)
            for third in self._scores
            if self._is_claimed(one, third) and self._is_claimed(third, other)
            if (first := self._between(one, third)) and (second := self._between(third, other))
        ]

    def _between(self, one: str, other: str) -> Interval | None:
        """Return the ratio of two servers by what they did themselves; None as for `ratio`."""
        if (one, other) not in self._ratios:
            self._ratios[one, other] = self._left_open_between(one, other)
        return self._ratios[one, other]

    def _left_open_between(self, one: str, other: str) -> Interval | None:
        if measured_apart(self._scores.get(one, {}), self._scores.get(other, {})):
            return None
        found = self._by_chance(one, other)
        if found is None or one == other:
            return found
        return at_least(found, left_open(self._scores[one], self._scores[other]))

    def _by_chance(self, one: str, other: str) -> Interval | None:
        logs = paired_logs(self._scores.get(one, {}), self._scores.get(other, {}))
        model = self._model_of(one, other)
        if not logs:
            return None
        confidence = 1 - self._errors
        if one == other or model is None or signed_ranks_suffice(len(logs), confidence):
            return interval_of_logs(logs, confidence)
        if any(claims(self._alone(way)) for way in (logs, [-log for log in logs])):
            return interval_of_logs(logs, confidence)
        degrees = model.repetitions - 1 if model.noisy & {one, other} else model.degrees
        half = student_quantile(degrees, 0.5 + confidence / 2) * model.error(one, other)
        return interval_of_log_mean(model.means[one] - model.means[other], half)

    def is_faster(self, one: str, other: str) -> bool:
        """Return whether a server is faster than another for sure, and noticeably.

        Never where the interval of their ratio holds 1: from as many repetitions on as that is one
        of signed ranks, it can be wider than what the model asks for. Nor where the other may do
        any amount more than was found. One that is faster than a third, which is faster than the
        other, is: where trials are missing, those two may have too few in common to say it.
        """
        return self._is_claimed(one, other) or bool(self._steps(one, other))

    def _is_claimed(self, one: str, other: str) -> bool:
        """Return whether what two servers did themselves says that one is faster."""
        if has_no_end(self._scores.get(other, {})):
            return False
        if (one, other) not in self._faster:
            faster = any(map(claims, self._at_once(one, other)))
            ratio = self._between(one, other) if faster else None
            self._faster[one, other] = ratio is not None and (ratio.low or 0.0) > 1
        return self._faster[one, other]

    def can_be_told_apart(self, one: str, other: str) -> bool:
        """Return whether one of two servers is faster than the other for sure."""
        return self.is_faster(one, other) or self.is_faster(other, one)

    def are_alike(self, one: str, other: str, ratio: float) -> bool:
        """Return whether two servers differ by less than this ratio for sure.

        With the same certainty as they are told apart: all such answers of a table hold at once.
        """
        if has_no_end(self._scores.get(one, {}), self._scores.get(other, {})):
            return False
        within = self.left_open(one, other)
        return any(
            _is_within(at_least(found, within), ratio) for found in self._at_once(one, other)
        )

    def is_in_vain(self, one: str, other: str, ratio: float | None) -> bool:
        """Return whether no further repetition would tell two servers apart or prove them alike.

        That is: what their figures leave open however often they are measured is as large as the
        ratio, and as far as chance goes they differ by less than it for sure. Or the slower one may
        do any amount more than was found, or both: that stays so.
        """
        endless = [has_no_end(self._scores.get(name, {})) for name in (one, other)]
        if any(endless):
            found = self.ratio(one, other)
            slower = 1 if found is None or found.value > 1 else 0
            return all(endless) or endless[slower]
        if ratio is None:
            return False
        open_anyway = self.left_open(one, other) >= math.log(ratio)
        return open_anyway and any(_is_within(found, ratio) for found in self._at_once(one, other))

    def left_open(self, one: str, other: str) -> float:
        """Return what the figures of two servers leave open of their ratio, as a logarithm."""
        return left_open(self._scores.get(one, {}), self._scores.get(other, {}))

    def _at_once(self, one: str, other: str) -> list[Interval]:
        """Return intervals of the ratio of two servers that hold at once with those of all pairs.

        Each of them does, so either may make a claim; none without two repetitions in common.
        """
        logs = paired_logs(self._scores.get(one, {}), self._scores.get(other, {}))
        if len(logs) < 2:
            return []
        model = self._model_of(one, other)
        if model is None or signed_ranks_suffice(len(logs), 1 - self._errors / self._pairs):
            confidence = claim_confidence(len(logs), self._pairs, self._errors)
            return [interval_of_logs(logs, confidence)]
        needed = self._critical(model.repetitions, model) * model.error(one, other)
        together = interval_of_log_mean(model.means[one] - model.means[other], needed)
        return [together, self._alone(logs)]

    def _alone(self, logs: Sequence[float]) -> Interval:
        """Return the interval by what a pair did itself, of the errors that are kept for that."""
        of = round(self._pairs / PAIRS_SHARE)
        return interval_of_logs(logs, claim_confidence(len(logs), of, self._errors))

    def factors(self, baseline: str) -> dict[str, Interval]:
        """Return the ratio of each server to the baseline, as they stand on one page.

        Intervals of servers that cannot be told apart overlap: where chance would have it otherwise
        they are made wider, so that nobody reads a difference out of them that is not claimed. Of
        two that were measured at different times nothing is read: their rows say so.
        """
        found = {name: self.ratio(name, baseline) for name in self._scores}
        known = {name: ratio for name, ratio in found.items() if ratio is not None}
        return self.overlapping(known, fixed=baseline)

    def estimates(self) -> dict[str, Interval]:
        """Return what each server's figure is around, as they stand on one page; as above."""
        return self.overlapping({name: self.estimate(name) for name in self._scores})

    def estimate(self, name: str) -> Interval:
        """Return what a server's figure is around, as it is and not as it is drawn."""
        logs = self._scores[name]
        return unbounded(interval_of(logs, 1 - self._errors), logs)

    def overlapping(
        self,
        intervals: Mapping[str, Interval],
        fixed: str | None = None,
        stays: str | None = None,
    ) -> dict[str, Interval]:
        """Return these intervals of its servers, those that are not told apart made to overlap.

        They are figures, or factors to the server `fixed`. That of the server `stays` is left as
        it is: others are drawn all the way to it.
        """
        ends = {name: [one.low, one.high] for name, one in intervals.items()}
        for pair in combinations(ends, 2):
            below, above = sorted(pair, key=lambda name: intervals[name].value)
            low, high = intervals[below].high, intervals[above].low
            if low is None or high is None or high <= low or self.can_be_told_apart(*pair):
                continue
            if measured_apart(*(self._scores[name] for name in pair)):
                # Nobody compares them, and each is known as well as it was measured.
                continue
            middle = math.sqrt(low * high)
            if stays in pair:
                middle = low if stays == below else high
            if fixed is not None:
                # Who is told apart from the baseline is not drawn across it, so the other one is
                # drawn all the way; two on either side of it are told apart by that.
                apart = self.is_faster(fixed, below), self.is_faster(above, fixed)
                if all(apart):
                    continue
                middle = low if apart[0] and middle >= 1 else middle
                middle = high if apart[1] and middle <= 1 else middle
            for name, end, place in ((below, middle, 1), (above, middle, 0)):
                if fixed in pair:
                    end = 1.0  # the baseline's factor is exactly that
                kept = ends[name][place]
                assert kept is not None
                ends[name][place] = max(kept, end) if place else min(kept, end)
        return {
            name: one.model_copy(update={"low": ends[name][0], "high": ends[name][1]})
            for name, one in intervals.items()
        }

    @property
    def noise(self) -> Noise | None:
        """How noisy trials are, of all servers together; None without two that were repeated."""
        found = self._fit
        if found is None:
            return None
        return Noise(found.together, found.repetitions, found.degrees)

    @property
    def _model(self) -> _Model | None:
        """The model that servers are compared in; None below three of them: these are a pair."""
        return self._fit if self._fit is not None and len(self._fit.means) > 2 else None

    @cached_property
    def _fit(self) -> _Model | None:
        """Return the model of the servers that have all repetitions; None below two of them.

        While a repetition goes on some have one more than others, which is left out; and so is a
        repetition that one of them lacks for good. Who lacks more is compared in pairs.
        """
        scores = fullest(self._scores)
        most = max((len(score) for score in scores.values()), default=0)
        members = [name for name, score in scores.items() if len(score) >= max(2, most - 1)]
        if len(members) < 2:
            return None
        common = set.intersection(*(set(scores[name]) for name in members))
        if len(common) < 2:
            return None
        table = [[scores[name][block] for name in members] for block in common]
        return _fitted(members, table)

    def _model_of(self, one: str, other: str) -> _Model | None:
        model = self._model
        return model if model and one in model.means and other in model.means else None

    def _critical(self, repetitions: int, model: _Model | None) -> float:
        """Return how many standard errors two servers must differ by in so many repetitions.

        `model` is the one that they are compared in; None: they are compared as a pair.
        """
        in_model = 0 if model is None else len(model.means)
        return critical(self._count, repetitions, self._errors, in_model)

    def deviation(self, one: str, other: str) -> float | None:
        """Return the standard deviation of what a repetition says of the ratio of two servers.

        Of its logarithm, by the model where there is one. None below two repetitions in common.
        """
        logs = paired_logs(self._scores.get(one, {}), self._scores.get(other, {}))
        if len(logs) < 2:
            return None
        model = self._model_of(one, other)
        if model is not None:
            return model.error(one, other) * math.sqrt(model.repetitions)
        mean = math.fsum(logs) / len(logs)
        return math.sqrt(math.fsum((log - mean) ** 2 for log in logs) / (len(logs) - 1))

    def more_repetitions(self, one: str, other: str, ratio: float, most: int) -> int | None:
        """Return how many more would tell two servers apart that differ by this ratio.

        In four of five such runs, if noise stays as it was; `most` + 1 where more than that are
        needed, None where their noise is not known, or one may do any amount more than was found,
        however often that is. By Student's t, also where it will be signed
        ranks, which need about as many.
        """
        deviation = self.deviation(one, other)
        if deviation is None or has_no_end(self._scores[one], self._scores[other]):
            return None
        made = len(paired_logs(self._scores[one], self._scores[other]))
        open_anyway = left_open(self._scores[one], self._scores[other])
        model = self._model_of(one, other)
        noticeable = math.log(NOTICEABLE_RATIO)

        def too_few(more: int) -> bool:
            count = made + more
            error = deviation / math.sqrt(count)
            claimed = max(self._critical(count, model) * error, open_anyway, noticeable)
            return claimed + student_quantile(count - 1, POWER) * error > math.log(ratio)

        return bisect_left(range(1, most + 1), True, key=lambda more: not too_few(more)) + 1


def _is_within(found: Interval, ratio: float) -> bool:
    """Return whether the whole interval of a ratio is nearer to 1 than this one, to either side."""
    known = found.low is not None and found.high is not None
    return known and 1 / ratio < (found.low or 0.0) and (found.high or math.inf) < ratio


def critical(servers: int, repetitions: int, errors: float, in_model: int | None = None) -> float:
    """Return how many standard errors two of some servers must differ by to be told apart.

    In so many repetitions, two or more, where `errors` is the share of runs that may be wrong.
    `in_model` of the servers have all of the repetitions, so that one model is made of them; below
    three there is none, and each pair stands alone.
    """
    members = servers if in_model is None else in_model
    if members < 3:
        pairs = servers * (servers - 1) // 2
        confidence = claim_confidence(repetitions, pairs, errors)
        return student_quantile(repetitions - 1, 0.5 + confidence / 2)
    of_model = errors * (1 - PAIRS_SHARE)
    # As claim_confidence() does it, and for the same reason.
    share = 1 - of_model * (1 - 1 / repetitions)
    together = studentized_range_quantile(share, servers, (repetitions - 1) * (members - 1))
    alone = student_quantile(repetitions - 1, 1 - of_model / 2)
    return max(together / math.sqrt(2), alone)


def _fitted(members: Sequence[str], table: Sequence[Sequence[float]]) -> _Model:
    """Return the model of a table of logarithms, a line for each repetition."""
    count, repetitions = len(members), len(table)
    means = [math.fsum(line[place] for line in table) / repetitions for place in range(count)]
    whole = math.fsum(means) / count
    squares = [0.0] * count
    for line in table:
        shift = math.fsum(line) / count - whole
        for place, (value, mean) in enumerate(zip(line, means, strict=True)):
            squares[place] += (value - mean - shift) ** 2
    # A residual has lost what the repetition's and the server's mean took of it.
    left = (repetitions - 1) * (count - 1) / count
    own = [square / left for square in squares]
    together = math.fsum(own) / count
    return _Model(
        dict(zip(members, means, strict=True)),
        {name: max(one, together) for name, one in zip(members, own, strict=True)},
        frozenset(name for name, one in zip(members, own, strict=True) if one > NOISIER * together),
        together,
        repetitions,
        (repetitions - 1) * (count - 1),
    )
