"""Figures of all trials: intervals, factors, validity. Pure."""

from laptime.analysis.stopping import trials_so_far
from laptime.analysis.summary import Summary, summarise

__all__ = ["Summary", "summarise", "trials_so_far"]
