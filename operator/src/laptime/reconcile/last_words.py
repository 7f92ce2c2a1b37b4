"""What containers say when they end, without the rows of feeders that they were sent.

It becomes a message of the run, and a server that breaks on a request likes to print it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace

from laptime.api.feeders import NumberRange
from laptime.catalog import Scenario
from laptime.catalog.feeding import columns_of
from laptime.reconcile.views import PodView
from laptime.verification.mask import SHORTEST_SECRET, Mask, forms_of, pieces_of


class LastWords:
    """The last words of the containers of one run, each looked through once."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}

    async def look(self, pods: Iterable[PodView], scenario: Scenario) -> list[PodView]:
        """Return the pods with what may be shown of their words."""
        seen = list(pods)
        said = {
            container.exit_message
            for pod in seen
            for container in pod.containers
            # What ends well says a result, in which nothing was quoted that is to be hidden.
            if container.exit_code and container.exit_message
        }
        if new := said - self._shown.keys():
            # Of a table with the most rows it takes a second.
            self._shown |= await asyncio.to_thread(_without_rows, new, scenario)
        self._shown = {words: self._shown[words] for words in said}
        return [self._shown_of(pod) for pod in seen] if said else seen

    def _shown_of(self, pod: PodView) -> PodView:
        containers = (
            replace(one, exit_message=self._shown[one.exit_message])
            if one.exit_code and one.exit_message
            else one
            for one in pod.containers
        )
        return replace(pod, containers=tuple(containers))


def _without_rows(texts: Iterable[str], scenario: Scenario) -> dict[str, str]:
    """Return texts with the names of feeders' values in the place of their cells."""
    texts = list(texts)
    together = "\n".join(texts)
    mask = Mask()
    for feeder in scenario.feeders:
        for name, column in columns_of(feeder).items():
            if isinstance(column.cells, NumberRange):
                continue
            for cell in set(column.cells):
                pieces = [one for one in pieces_of(cell) if len(one) >= SHORTEST_SECRET]
                if any(form in together for one in pieces for form in forms_of(one)):
                    mask.hide_captured(name, cell)
    return {text: mask.text(text) for text in texts}
