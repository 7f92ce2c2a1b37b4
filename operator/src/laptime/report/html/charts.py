"""The charts of one load, each drawn for a wide page and for a narrow one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from laptime.analysis import wording
from laptime.analysis.repeated import fewest_values
from laptime.api.loads import PacedLoad
from laptime.api.results import Interval, ResultRow
from laptime.measure import Histogram
from laptime.report.html.drawing import canvas, to_svg
from laptime.report.html.palette import INK, MUTED, SURFACE, look

WIDE, NARROW = 920, 350
_LOG_FROM_RATIO = 5.0
"""Figures that differ by more than this are drawn on a logarithmic axis."""
_FEW_ANSWERS = 10
_ENDS = " Requests without a right answer are slower than all others: there a curve ends."
_POINTS_PER_CURVE = 160


@dataclass(frozen=True)
class Chart:
    """A chart as the page shows it."""

    wide: str
    narrow: str
    title: str
    caption: str


def factor_chart(rows: Sequence[ResultRow], servers: Sequence[str], name: str) -> Chart | None:
    """Return each server's factor with its interval, and the published one; None without any."""
    shown = [row for row in rows if row.factor is not None]
    if len(shown) < 2:
        return None
    said = "; ".join(f"{row.server} {wording.factor(row.factor)}" for row in shown if row.factor)
    published = any(row.published_factor is not None for row in shown)
    any_open = any(row.factor is not None and _is_open(row.factor) for row in shown)

    def draw(figure: Figure, axes: Axes, narrow: bool) -> None:
        values: list[float] = [1.0]
        further: list[tuple[Interval, int, str]] = []
        for place, row in enumerate(reversed(shown)):
            factor, style = row.factor, look(servers, row.server)
            if factor is None:
                continue
            low, high = factor.low or factor.value, factor.high or factor.value
            # An interval that is far too wide must not make everything else a dot.
            values += [max(low, factor.value / 10), min(high, factor.value * 10)]
            axes.plot([low, high], [place, place], color=style.colour, linewidth=3)
            if _is_open(factor):
                # To the edge, which is known when all are there.
                further.append((factor, place, style.colour))
            axes.plot(factor.value, place, style.marker, color=style.colour, markersize=9)
            if row.published_factor is not None:
                values.append(row.published_factor)
                axes.plot(
                    row.published_factor, place, "D", markersize=13, markerfacecolor=SURFACE,
                    markeredgecolor=INK, markeredgewidth=1.5, zorder=1.9,
                )  # fmt: skip
            if narrow:
                text = f"{row.server}  {wording.factor(factor)}"
                axes.text(
                    0, place + 0.34, text, transform=axes.get_yaxis_transform(), va="center",
                    bbox={"facecolor": SURFACE, "edgecolor": "none", "pad": 1},
                )  # fmt: skip
            else:
                text = wording.factor(factor)
                axes.text(1.02, place, text, transform=axes.get_yaxis_transform(), va="center")
        axes.axvline(1, color=MUTED, linewidth=1, linestyle=(0, (3, 3)), zorder=1)
        axes.set_ylim(-0.6, len(shown) - 0.3)
        names = [] if narrow else [row.server for row in reversed(shown)]
        axes.set_yticks(range(len(names)), names)
        axes.tick_params(axis="y", length=0, labelcolor=INK)
        axes.spines["left"].set_visible(False)
        _scale(axes, "x", values, "x", from_zero=False)
        edges = axes.get_xlim()
        for factor, place, colour in further:
            edge = edges[0] if factor.low is None else edges[1]
            axes.plot([factor.value, edge], [place, place], color=colour, linewidth=3)
        axes.set_xlabel(f"{wording.metric(shown[0].compared_by)} divided by the baseline's")

    height = 70 + len(shown) * 34
    return Chart(
        *_both(draw, (height, 60 + len(shown) * 48), name, "Factor of each server", said),
        "Factor against the baseline",
        "Dot and bar: the measured factor and its 95 % interval, paired by repetition. "
        + ("Hollow diamond: the published factor. " if published else "")
        + ("Less is faster. " if shown[0].compared_by.is_latency else "")
        + "A bar that crosses the dashed line at 1x means: no difference was seen."
        + (" One that goes to the edge has no known end there." if any_open else ""),
    )


def _is_open(factor: Interval) -> bool:
    """Return whether one end is not known, of a search that found no upper one."""
    return (factor.low is None) is not (factor.high is None)


def latency_chart(
    histograms: Mapping[str, Histogram],
    failed: Mapping[str, int],
    servers: Sequence[str],
    name: str,
) -> Chart | None:
    """Return the response times by percentile, of all repetitions merged; None without any.

    Of all requests: the `failed` ones had no right answer, and a curve ends where they begin.
    """
    shown = {server: one for server, one in histograms.items() if one.total > 1}
    if not shown:
        return None
    requests = {server: one.total + failed.get(server, 0) for server, one in shown.items()}
    most = max(requests.values())

    def within(server: str, share: float) -> str:
        if requests[server] < fewest_values(share):
            return "too few to say"
        (time,) = shown[server].quantiles_with(failed.get(server, 0), [share])
        return "failed" if time is None else f"within {wording.latency(time)}"

    said = "; ".join(
        f"{server}: half of the requests {within(server, 0.5)}, 99 % {within(server, 0.99)}"
        for server in shown
    )

    def draw(figure: Figure, axes: Axes, narrow: bool) -> None:
        values: list[float] = []
        for server, histogram in shown.items():
            style = look(servers, server)
            asked = requests[server]
            steps = [asked ** (n / _POINTS_PER_CURVE) for n in range(_POINTS_PER_CURVE + 1)]
            quantiles = histogram.quantiles_with(
                asked - histogram.total, [1 - 1 / s for s in steps]
            )
            times = [time for time in quantiles if time is not None]
            steps = steps[: len(times)]
            values += times
            sure = sum(1 for step in steps if step <= max(2, asked / _FEW_ANSWERS))
            axes.plot(
                steps[:sure], times[:sure], color=style.colour, linestyle=style.dash, linewidth=2,
                marker=style.marker, markevery=(12, 32), markersize=6, label=server,
            )  # fmt: skip
            axes.plot(steps[sure - 1 :], times[sure - 1 :], color=style.colour, linewidth=0.8)
        axes.set_xscale("log")
        axes.set_xlim(1, most)
        ticks = {1: "0 %", 2: "50 %", 10: "90 %", 100: "99 %", 1000: "99.9 %", 10_000: "99.99 %",
                 100_000: "99.999 %", 1_000_000: "99.9999 %"}  # fmt: skip
        if narrow:
            del ticks[2]
        near = {place: text for place, text in ticks.items() if place <= most}
        axes.xaxis.set_major_locator(FixedLocator(list(near)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticklabels(list(near.values()))
        _scale(axes, "y", values, "", from_zero=True, seconds=True)
        axes.set_xlabel("share of the requests answered within this time")
        axes.set_ylabel("response time")
        axes.grid(True)
        _legend(figure, axes, narrow)

    heights = _with_legend(360, list(shown))
    return Chart(
        *_both(draw, heights, name, "Response times by percentile", said),
        "Response times by percentile",
        "From the merged histograms of all repetitions, warm-up left out. The axis gives each "
        "further nine the same room. Thin: fewer than ten requests are slower, so chance rules."
        + (_ENDS if any(failed.get(server) for server in shown) else ""),
    )


def throughput_chart(
    seconds: Mapping[str, Sequence[Mapping[int, int]]],
    servers: Sequence[str],
    name: str,
    changing: PacedLoad | None = None,
) -> Chart | None:
    """Return right answers by second of the measured phase; None when no trial has two seconds.

    `seconds` holds, by server, the counts by second of each repetition. The rate that a load which
    changes it asks for is drawn beside them.
    """
    words = _Words(
        "Throughput over time",
        "Right answers by second",
        "right answers per second",
        "Thick: the mean of all repetitions, as far as each of them goes; thin: each repetition. "
        + (
            "Dashed grey: the rate that was asked for. A server keeps up as long as it is on it."
            if changing
            else "A line that rises was not warm yet, one that falls was running into something."
        ),
    )
    # On a logarithmic axis an even change would be a curve.
    linear = changing is not None
    return _over_time(seconds, servers, name, words, wording.number, changing, linear=linear)


def cpu_chart(
    seconds: Mapping[str, Sequence[Mapping[int, float]]],
    servers: Sequence[str],
    name: str,
    part: str | None = None,
) -> Chart | None:
    """Return the CPU cores in use by second; None when no trial has two seconds of them.

    Of the servers themselves, or of another `part` such as postgres. `seconds` holds, by server
    that was measured, the cores by second of each repetition.
    """
    words = _Words(
        "CPU over time" if part is None else f"CPU of {part} over time",
        f"CPU cores that {part or 'each server'} used, by second",
        "CPU cores",
        "Thick: the mean of all repetitions, as far as each of them goes; thin: each repetition. "
        + (
            "A line that is flat at the limit of its server says that the CPU was full."
            if part is None
            else "Each line is of the time in which that server was measured."
        ),
    )
    return _over_time(seconds, servers, name, words, wording.cores, linear=True)


@dataclass(frozen=True)
class _Words:
    title: str
    read_title: str
    """For those who do not see it."""
    axis: str
    caption: str


def _over_time(
    seconds: Mapping[str, Sequence[Mapping[int, float]]],
    servers: Sequence[str],
    name: str,
    words: _Words,
    number: Callable[[float], str],
    changing: PacedLoad | None = None,
    *,
    linear: bool = False,
) -> Chart | None:
    """Return a figure by second of the measured phase, of each repetition and their mean."""
    shown = {
        server: [one for one in repetitions if len(one) > 1]
        for server, repetitions in seconds.items()
        if any(len(one) > 1 for one in repetitions)
    }
    if not shown:
        return None
    means = {server: _mean_of_all(repetitions) for server, repetitions in shown.items()}
    said = "; ".join(
        f"{server}: between {number(min(mean.values()))} and {number(max(mean.values()))}"
        for server, mean in means.items()
    )
    last = max(max(one) for repetitions in shown.values() for one in repetitions)
    # In the middle of each second.
    asked = {t: changing.rate_at(t + 0.5) for t in range(last + 1)} if changing else {}

    def draw(figure: Figure, axes: Axes, narrow: bool) -> None:
        values = list(asked.values())
        if asked:
            axes.plot(
                list(asked),
                list(asked.values()),
                color=MUTED,
                linestyle=(0, (3, 3)),
                linewidth=1.5,
                zorder=3,
            )
        for server, repetitions in shown.items():
            style = look(servers, server)
            for one in repetitions:
                values += one.values()
                axes.plot(*_with_gaps(one), color=style.colour, linewidth=0.8, alpha=0.55)
            mean = means[server]
            axes.plot(
                *_with_gaps(mean), color=style.colour, linestyle=style.dash,
                linewidth=2.4, marker=style.marker, markersize=5, label=server,
                markevery=max(1, len(mean) // 12),
            )  # fmt: skip
        _scale(axes, "y", values, "", from_zero=True, linear=linear)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6 if narrow else 12))
        axes.set_xlabel("second of the measured phase")
        axes.set_ylabel(words.axis)
        axes.grid(True)
        _legend(figure, axes, narrow)

    heights = _with_legend(320, list(shown))
    return Chart(*_both(draw, heights, name, words.read_title, said), words.title, words.caption)


def _with_gaps(by_second: Mapping[int, float]) -> tuple[list[int], list[float]]:
    """Return seconds and values; a second without one breaks the line."""
    seconds = list(range(min(by_second), max(by_second) + 1))
    return seconds, [by_second.get(second, math.nan) for second in seconds]


def _mean_of_all(repetitions: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """Return their mean by second, as far as each of them goes: after that it would be of some."""
    end = min(max(one) for one in repetitions)
    return {t: mean for t, mean in mean_by_second(repetitions).items() if t <= end}


def mean_by_second(repetitions: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """Return the mean of the repetitions at each second that any of them has."""
    every = sorted({second for one in repetitions for second in one})
    found = {t: [one[t] for one in repetitions if t in one] for t in every}
    return {t: sum(values) / len(values) for t, values in found.items()}


def _both(
    draw: Callable[[Figure, Axes, bool], None],
    heights: tuple[int, int],
    name: str,
    title: str,
    description: str,
) -> tuple[str, str]:
    drawings = []
    for width, height, narrow in ((WIDE, heights[0], False), (NARROW, heights[1], True)):
        unique = f"{name}-{'narrow' if narrow else 'wide'}"
        with canvas(width, height, unique) as (figure, axes):
            draw(figure, axes, narrow)
            drawings.append(to_svg(figure, unique, title, description))
    return drawings[0], drawings[1]


def _columns(names: Sequence[str], narrow: bool) -> int:
    width = (NARROW if narrow else WIDE) - 40
    return max(1, min(len(names), width // (50 + 8 * max(map(len, names)))))


def _with_legend(height: int, names: Sequence[str]) -> tuple[int, int]:
    wide, narrow = (-(-len(names) // _columns(names, one)) for one in (False, True))
    return height + 20 * wide, height - 40 + 20 * narrow


def _legend(figure: Figure, axes: Axes, narrow: bool) -> None:
    handles, names = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        names,
        loc="outside upper left",
        ncols=_columns([str(one) for one in names], narrow),
    )


def _scale(
    axes: Axes,
    which: str,
    values: Sequence[float],
    unit: str,
    *,
    from_zero: bool,
    seconds: bool = False,
    linear: bool = False,
) -> None:
    """Give an axis a scale that suits its values, and ticks as people read them."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    above = [value for value in values if value > 0]
    low, high = min(above, default=1.0), max(above, default=1.0)
    limits = axes.set_xlim if which == "x" else axes.set_ylim
    if not linear and high / low > _LOG_FROM_RATIO:
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
        subs = (1, 2, 5) if high / low < 200 else (1, 3)
        axis.set_major_locator(LogLocator(base=10, subs=subs if high / low < 5000 else (1,)))
        axis.set_minor_locator(NullLocator())
        limits(low / 1.25, high * 1.25)
    else:
        room = 0.08 * (high if from_zero else high - low) or 0.1 * high
        limits(0 if from_zero else low - room, high + room)
        axis.set_major_locator(MaxNLocator(nbins=5, min_n_ticks=3))

    def words(value: float, _: object = None) -> str:
        if seconds:
            return wording.latency(value) if value > 0 else "0"
        return f"{value:,.12g}{unit}"

    axis.set_major_formatter(FuncFormatter(words))
    if which == "x":
        axes.grid(True, axis="x")
