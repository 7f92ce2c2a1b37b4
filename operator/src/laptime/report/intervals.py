"""How value and interval of a figure are found, in words."""

from __future__ import annotations

from laptime.analysis.looks import looks_of
from laptime.analysis.statistics import SIGNED_RANK_REPETITIONS, signed_ranks_suffice
from laptime.api.spec import BenchmarkRunSpec


def intervals_said(spec: BenchmarkRunSpec) -> str:
    """Return how value and interval of a figure are found in a run, as the end of a sentence.

    What they are called by, 95 %, is what holds of all that a run says. Where it stops by its
    results each interval has to be surer than that by itself, and ranks begin later.
    """
    looks = looks_of(spec)
    said = (
        "the geometric mean of the repetitions with its 95 % confidence interval, by Student's t "
        "of their logarithms"
    )
    most = max(spec.most_repetitions, SIGNED_RANK_REPETITIONS)
    with_ranks = (
        count
        for count in range(2, most + 1)
        if signed_ranks_suffice(count, 1 - looks.errors(count))
    )
    first = next(with_ranks, None)
    if first is not None:
        said += (
            f"; from {first} repetitions on the Hodges-Lehmann estimate, by Wilcoxon's signed ranks"
        )
    sure = " to ".join(
        dict.fromkeys(
            f"{100 * (1 - share):.3g}" for share in (max(looks.shares), min(looks.shares))
        )
    )
    if spec.precision is not None:
        said += (
            f". By itself each is one of {sure} %: the run stopped by their widths, and those that "
            "are too narrow by chance stop it first"
        )
    elif spec.stop_when is not None:
        said += (
            f". By itself each is one of {sure} %: the run looked at them after each repetition, "
            "and those of all looks hold at once with 95 %"
        )
    return said
