"""What containers of the run that are over have written, read once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from laptime.kube import Kube, KubeError
from laptime.manifests.generator import PREPARE_CONTAINER
from laptime.manifests.profiler import PROFILE_CONTAINER
from laptime.manifests.verifier import VERIFY_CONTAINER
from laptime.measure import cut_short
from laptime.reconcile.views import PodView, Run

GENERATOR_CONTAINER = "k6"
_UNREADABLE_SECONDS = 60.0
"""So long a log may be out of reach: kubelets that begin anew are away for less."""


class Logs(dict[str, str]):
    """What containers have written that are over, by their pods; and since when one is not read."""

    def __init__(self) -> None:
        """Know nothing yet."""
        super().__init__()
        self._unreadable: dict[str, float] = {}

    def read(self, pod: str) -> None:
        """Forget since when a log could not be read."""
        self._unreadable.pop(pod, None)

    def unreadable_for(self, pod: str) -> float:
        """Return for how many seconds a log could not be read, which it cannot now."""
        now = time.monotonic()
        return now - self._unreadable.setdefault(pod, now)

    def keep(self, pods: set[str]) -> None:
        """Forget those of all other pods."""
        for known in (self, self._unreadable):
            for gone in set(known) - pods:
                del known[gone]


async def generator_outputs(
    kube: Kube,
    run: Run,
    pods: tuple[PodView, ...],
    over: set[str],
    logs: Logs,
) -> dict[str, dict[int, str]]:
    """Return what generators that are over have written, by trial and index of the pod.

    Of trials that are `over` nobody needs it.

    Raises:
        KubeError: a log cannot be read now, or none can be.
    """
    ended = [
        pod
        for pod in pods
        if pod.component == "generator"
        and pod.trial not in over
        and (pod.name in logs or _speaker(pod) is not None)
    ]
    texts = await asyncio.gather(*(_generator_log(kube, run, pod, logs) for pod in ended))
    outputs: dict[str, dict[int, str]] = {}
    for pod, text in zip(ended, texts, strict=True):
        outputs.setdefault(pod.trial or "", {})[pod.index] = text
    return outputs


async def profile_outputs(
    kube: Kube,
    run: Run,
    pods: tuple[PodView, ...],
    stored: Mapping[str, str],
    logs: Logs,
) -> dict[str, str]:
    """Return what profilers that are over have written, by profile, but for those that are stored.

    Raises:
        KubeError: a log cannot be read now, or none can be.
    """
    return {
        pod.trial: await _log(kube, run, pod, PROFILE_CONTAINER, logs)
        for pod in pods
        if pod.component == "profiler"
        and pod.trial is not None
        and pod.trial not in stored
        and _ended(pod, PROFILE_CONTAINER)
    }


async def verifier_answers(
    kube: Kube, run: Run, pods: tuple[PodView, ...], logs: Logs
) -> dict[str, str]:
    """Return what verifiers that are over have written, by pod, where a run is about that alone.

    Raises:
        KubeError: a log cannot be read now, or none can be.
    """
    if not run.spec.verify_only:
        return {}
    return {
        pod.name: await _log(kube, run, pod, VERIFY_CONTAINER, logs)
        for pod in pods
        if pod.component == "verifier" and _ended(pod, VERIFY_CONTAINER)
    }


async def _generator_log(kube: Kube, run: Run, pod: PodView, logs: Logs) -> str:
    """Return what a generator has written; a log without its end is read once more next time."""
    known = pod.name in logs
    text = await _log(kube, run, pod, _speaker(pod) or GENERATOR_CONTAINER, logs)
    if not known and cut_short(text):
        # Its node may be late with the last lines.
        logs.pop(pod.name, None)
    return text


async def _log(kube: Kube, run: Run, pod: PodView, container: str, logs: Logs) -> str:
    """Return what a container that is over has written, read once."""
    if pod.name not in logs:
        try:
            logs[pod.name] = await kube.log(run.namespace, pod.name, container)
            logs.read(pod.name)
        except KubeError as error:
            # Of a container that is over the kubelet says so where it has nothing of it any more.
            if error.status == 400:
                logs[pod.name] = ""
            elif not error.status and not await _answers_otherwise(kube, run):
                # The API server is away: that says nothing of the log.
                logs.read(pod.name)
                raise
            elif logs.unreadable_for(pod.name) < _UNREADABLE_SECONDS:
                if error.forbidden and "pods/log" not in error.message:
                    # No right of the operator is missing: the kubelet allows it to nobody.
                    raise error.of_a_kubelet() from error
                raise
            else:
                # Its node is there and nobody gets at what it has: a firewall, a certificate that
                # nobody has signed. The run must not wait for that, nor its end, nor all others.
                return ""
    return logs[pod.name]


async def _answers_otherwise(kube: Kube, run: Run) -> bool:
    """Return whether the API server answers a question that it asks no kubelet about."""
    try:
        await kube.get("BenchmarkRun", run.namespace, run.name)
    except KubeError:
        return False
    return True


def _speaker(pod: PodView) -> str | None:
    """Return the container that says what came of a generator; None while none does."""
    if _ended(pod, GENERATOR_CONTAINER):
        return GENERATOR_CONTAINER
    # Where the data could not be brought to their state, no generator has begun.
    failed = any(one.name == PREPARE_CONTAINER and one.exit_code for one in pod.containers)
    return PREPARE_CONTAINER if failed else None


def _ended(pod: PodView, name: str) -> bool:
    return any(
        container.name == name and container.exit_code is not None for container in pod.containers
    )
