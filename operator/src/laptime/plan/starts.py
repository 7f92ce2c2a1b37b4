"""Where a search begins: a part of the design of the experiment, as the order of the trials is."""

from __future__ import annotations

import hashlib
import math

from laptime.api.loads import SaturationLoad
from laptime.plan.trials import Trial


def start_rate(search: SaturationLoad, seed: int, trial: Trial) -> float:
    """Return the requests per second of a search's first step: drawn from the octave below its own.

    A search doubles and bisects by ratio, so the first rate says on which rates it can end.
    Uniformly drawn by their logarithm, these lie everywhere with the same chance: the error of a
    search is then within its step, has the mean 0 and does not depend on what the server can do
    (W. R. Bennett, Spectra of Quantized Signals, Bell System Technical Journal 27, 1948; L. G.
    Roberts, Picture Coding Using Pseudo-Random Noise, IRE Transactions on Information Theory 8(2),
    1962). It is drawn anew for each server as for each repetition: with the same rates for all of
    them like servers would end on the same one each time, and a difference of less than a step
    would look like none, for sure. Another attempt of a trial begins where the first one did. To
    0.01/s, at least 1/s, so that of a first rate of 1/s the octave above it is drawn from, as far
    as the search may go.
    """
    drawn = f"{seed}/start/{trial.repetition}/{trial.server}/{trial.load}"
    place = int.from_bytes(hashlib.sha256(drawn.encode()).digest()[:8]) / 2**64
    drawn_rate = max(2, search.start_rate) * math.exp2(-place)
    return min(float(search.max_rate), max(1.0, round(drawn_rate, 2)))
