"""What is known of the run that is measured."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from laptime.analysis.stopping import trials_so_far
from laptime.analysis.summary import Summary, summarise
from laptime.api.attempts import attempt_name
from laptime.api.node_path import NodePath
from laptime.api.results import TrialOutcome, TrialReadings, TrialResult
from laptime.api.status import ServerState
from laptime.kube import Kube, KubeError, Manifest
from laptime.manifests.context import RunContext
from laptime.manifests.generator import PREPARE_CONTAINER
from laptime.manifests.objects import (
    COMPONENT_LABEL,
    SECRET_ANNOTATION,
    TRIAL_LABEL,
    Component,
    known_as,
)
from laptime.manifests.profiler import PROFILE_CONTAINER
from laptime.manifests.result import (
    profile_problem,
    read_readings,
    read_result,
    readings_name,
    results_name,
)
from laptime.manifests.verifier import VERIFY_CONTAINER
from laptime.measure import (
    cut_short,
    of_the_same_bits,
    on_the_same_nodes,
    on_their_schemas,
    watched_result,
)
from laptime.plan import order_of, plan_profiles, plan_trials, seed_of
from laptime.reconcile.cache import Room, version_of
from laptime.reconcile.children import Children
from laptime.reconcile.fold import is_outdated, read_archive, single_results
from laptime.reconcile.held import ONLY_THERE, held
from laptime.reconcile.kubelets import Kubelets
from laptime.reconcile.last_words import LastWords
from laptime.reconcile.pull_secrets import PullSecrets
from laptime.reconcile.readings import ReadingsDesk
from laptime.reconcile.scripts import ScriptDesk
from laptime.reconcile.sightings import Sightings
from laptime.reconcile.views import (
    Observed,
    PodView,
    Run,
    deployment_view,
    has_place,
    hash_by_name,
    job_view,
    pod_view,
    with_secret_keys,
)

GENERATOR_CONTAINER = "k6"
MOST_PAYLOAD_BYTES = 128 * 2**20
"""Of what the generators of all trials of a run printed, as long as the run is worked on."""
_UNREADABLE_SECONDS = 60.0
"""So long a log may be out of reach: kubelets that begin anew are away for less."""


class ResultCache:
    """Stored results of one run. They never change, so each is read from the API server once."""

    def __init__(self, run_uid: str = "") -> None:
        self._results: dict[str, TrialResult] = {}
        # The same judged with their readings, where those are there.
        self._judged: dict[str, TrialResult] = {}
        self._payloads: dict[str, str] = {}
        self._room = Room(
            f"results of run {run_uid}",
            MOST_PAYLOAD_BYTES,
            "what its generators printed takes more than %d bytes, and not all of it is kept: the "
            "rows say whose response times are missing",
        )
        self._readings: dict[str, TrialReadings] = {}
        self._paths: tuple[NodePath, ...] = ()
        self._summary: tuple[object, Summary] | None = None

    def known(self) -> set[str]:
        """Return the trials whose results are here."""
        return set(self._results)

    def results(self, names: set[str], run: Run) -> dict[str, TrialResult]:
        """Return the results of those trials that are stored in the cluster now."""
        found = [result for name, result in self._judged.items() if name in names]
        deployed = {server.name for server in run.spec.deployed}
        checked = {one.name: one.image_id for one in run.status.servers or [] if one.image_id}
        schemas = {
            one.name: one.database_schema for one in run.status.servers or [] if one.database_schema
        }
        own = run.spec.topology.own_databases
        same = on_their_schemas(of_the_same_bits(found, checked), schemas, own)
        judged = on_the_same_nodes(same, deployed, run.spec.nodes)
        return {result.trial: result for result in judged}

    def drop_failed(self, names: set[str], retries: int) -> set[str]:
        """Forget those of the trials that failed before they were last asked for again.

        Returns their names.
        """
        dropped = {
            name
            for name in names
            if self._results[name].outcome is TrialOutcome.FAILED
            and self._results[name].retry < retries
        }
        self.forget(dropped)
        return dropped

    def forget(self, names: set[str]) -> None:
        """Forget trials: what is stored of them from now on is what counts."""
        for name in names:
            self._keep_payload(name, "")
            for known in (self._results, self._judged, self._payloads, self._readings):
                known.pop(name, None)

    def add(self, trial: str, manifest: Mapping[str, Any], context: RunContext) -> None:
        """Take in the ConfigMap of a trial's result.

        What its generators printed is as if it were not stored where that of all trials together
        is more than MOST_PAYLOAD_BYTES.

        Raises:
            ValueError: it is no result.
        """
        self._results[trial], payload = read_result(manifest)
        self._keep_payload(trial, payload)
        self._judge(trial, context)

    def _keep_payload(self, trial: str, payload: str) -> None:
        before = self._payloads.get(trial)
        if before:
            self._room.take(-self._room.size(before))
        fits = not payload or self._room.take(self._room.size(payload))
        self._payloads[trial] = payload if fits else ""

    @property
    def payloads(self) -> Mapping[str, str]:
        """What the generators of trials printed, by trial; empty where it is not kept."""
        return self._payloads

    def read(self) -> set[str]:
        """Return the trials whose readings are here."""
        return set(self._readings)

    def add_readings(self, trial: str, manifest: Mapping[str, Any], context: RunContext) -> None:
        """Take in the ConfigMap of what was read of a trial whose result is here.

        Raises:
            ValueError: it is no readings.
        """
        self._readings[trial] = read_readings(manifest)
        self._judge(trial, context)

    def know_paths(self, paths: Sequence[NodePath], context: RunContext) -> None:
        """Judge by what is known of the network between nodes, the trials before it was too."""
        if tuple(paths) != self._paths:
            self._paths = tuple(paths)
            for trial in self._results:
                self._judge(trial, context)

    def _judge(self, trial: str, context: RunContext) -> None:
        self._judged[trial] = watched_result(
            self._results[trial],
            self._readings.get(trial),
            context.spec,
            context.scenario.requests,
            context.scenario.services,
            self._paths,
        )

    def summary(self, run: Run, context: RunContext, names: set[str]) -> Summary:
        """Return the figures of all trials together; computed again only when something changed."""
        failures = {
            server.name: (server.reason or "Failed", server.message or "")
            for server in run.status.servers or []
            if server.state is ServerState.FAILED
        }
        key = (
            frozenset(names),
            frozenset(self._readings),
            self._paths,
            tuple(sorted(failures.items())),
            run.given_up,
        )
        if self._summary is None or self._summary[0] != key:
            results = self.results(names, run)
            seed = seed_of(run.spec, run.uid)
            order, out = order_of(run.status), frozenset(failures)
            trials = trials_so_far(run.name, run.spec, seed, order, list(results.values()), out)
            self._summary = (
                key,
                summarise(
                    run.spec,
                    trials,
                    [results[trial.name] for trial in trials if trial.name in results],
                    {name: self._payloads[name] for name in results},
                    context.scenario.published,
                    failures,
                    run.given_up,
                ),
            )
        return self._summary[1]


class Memory:
    """What is remembered of the run that is measured, only to be quicker."""

    def __init__(self, children: Children, desk: ReadingsDesk, kubelets: Kubelets) -> None:
        self.children = children
        self.desk = desk
        self.kubelets = kubelets
        self.sightings = Sightings()
        self.pull_secrets = PullSecrets()
        self.results = ResultCache(children.run_uid)
        self.last_words = LastWords()
        self.logs = Logs()
        """What containers wrote that ended or whose result was seen, by the name of their pod."""
        self.archived: dict[str, Manifest] = {}
        """Metadata of the ConfigMaps in the archive, by the names that the run knows them by."""
        self._read = -1
        self.scripts = ScriptDesk(children)

    def keep(self, manifests: Iterable[Manifest], context: RunContext) -> None:
        """Take in results that were stored just now, or are in the archive, results first."""
        for manifest in manifests:
            labels = manifest["metadata"]["labels"]
            trial = labels.get(TRIAL_LABEL)
            if trial is None or manifest["kind"] != "ConfigMap":
                continue
            component = labels[COMPONENT_LABEL]
            if component == Component.RESULT and trial not in self.results.known():
                self.results.add(trial, manifest, context)
            elif component == Component.READINGS and trial not in self.results.read():
                self.results.add_readings(trial, manifest, context)

    async def look_into_archive(self, kube: Kube, run: Run, context: RunContext) -> None:
        """Read the archive of the run when there is one, or another one than before."""
        for head in self.children.of("ConfigMap"):
            metadata = head["metadata"]
            if known_as(metadata) != results_name(run.name) or version_of(head) == self._read:
                continue
            archive = await read_archive(kube, run.namespace, metadata["name"])
            objects = archive.objects if archive is not None else []
            named = [held(one, ONLY_THERE)["metadata"] for one in objects]
            self.archived = {known_as(metadata): metadata for metadata in named}
            readings = [one for one in objects if _is_readings(one)]
            self.keep([one for one in objects if not _is_readings(one)], context)
            self.keep(readings, context)
            self._read = version_of(head)


async def observe(
    kube: Kube, run: Run, context: RunContext, memory: Memory, now: datetime
) -> Observed:
    """Return what is known of a run: nearly all of it without asking the API server.

    Ages are those of `now`: a machine may sleep while something is read.

    Raises:
        KubeError: the API server cannot be reached, or rights in the namespace are missing.
    """
    children, cache = memory.children, memory.results
    cache.know_paths(run.status.node_paths or [], context)
    pods, jobs, deployments, services, config_maps, policies = (
        children.of(kind)
        for kind in ("Pod", "Job", "Deployment", "Service", "ConfigMap", "NetworkPolicy")
    )
    seed, most = seed_of(run.spec, run.uid), run.spec.most_repetitions
    order = order_of(run.status)
    trials = {trial.name for trial in plan_trials(run.name, run.spec, seed, most, order)}
    config_map_names = {known_as(m["metadata"]): m["metadata"]["name"] for m in config_maps}
    gone = cache.known() - set(config_map_names) - set(memory.archived)
    cache.forget(gone)
    memory.desk.forget(gone)
    result_names = set(config_map_names) & trials
    for name in sorted(result_names - cache.known()):
        manifest = await kube.get("ConfigMap", run.namespace, config_map_names[name])
        if manifest is not None:
            cache.add(name, manifest, context)
    result_names &= cache.known()
    stored = {trial for trial in result_names if readings_name(trial) in config_map_names}
    for name in sorted(stored - cache.read()):
        stored_as = config_map_names[readings_name(name)]
        manifest = await kube.get("ConfigMap", run.namespace, stored_as)
        if manifest is not None:
            cache.add_readings(name, manifest, context)
    # What stands there singly comes first: it may have replaced what is in the archive.
    await memory.look_into_archive(kube, run, context)
    archived = memory.archived
    result_names |= set(archived) & trials & cache.known()
    stored |= {trial for trial in result_names if readings_name(trial) in archived}
    again = cache.drop_failed(result_names, run.status.retries or 0)
    result_names -= again
    # What was read of trials that have no result is of another time than what they will be.
    unclaimed = {readings_name(name) for name in trials - result_names}
    failed_before = (again | unclaimed) & set(config_map_names)
    results = cache.results(result_names, run)
    # Attempts of which nobody needs the output any more.
    over = {result.attempt_name for result in results.values()}
    over |= {attempt_name(one.trial, one.attempt) for one in run.status.lost_attempts or []}
    readings, unread = memory.desk.look(run, results.values(), stored, cache.payloads)
    planned = {profile.name for profile in plan_profiles(run.name, run.spec)}
    profiles = {
        known_as(metadata): profile_problem(metadata)
        for metadata in (*archived.values(), *(m["metadata"] for m in config_maps))
        if known_as(metadata) in planned
    }
    # Anybody may give a pod the run's labels, but none of the run's own has such a place.
    views = (with_secret_keys(pod_view(one), run.spec) for one in pods if has_place(one))
    told = await memory.last_words.look(views, context.scenario)
    seen = await memory.pull_secrets.look(kube, run.namespace, told)
    moment = time.monotonic()
    pod_views, job_views = memory.sightings.look(seen, map(job_view, jobs), now, moment)
    memory.logs.keep({pod.name for pod in pod_views})
    scripts = await memory.scripts.look(kube, run)
    return Observed(
        deployments={v.name: v for v in map(deployment_view, deployments)},
        jobs={job.name: job for job in job_views},
        pods=pod_views,
        services=hash_by_name(services),
        config_maps=hash_by_name(config_maps),
        network_policies=hash_by_name(policies),
        deleting=frozenset(
            (kind, known_as(one["metadata"]))
            for kind in ("Service", "ConfigMap", "NetworkPolicy")
            for one in children.of(kind)
            if "deletionTimestamp" in one["metadata"]
        ),
        secret_owners={
            known_as(m["metadata"]): m["metadata"]["uid"]
            for m in config_maps
            if SECRET_ANNOTATION in (m["metadata"].get("annotations") or {})
        },
        results_config_map=config_map_names.get(results_name(run.name)),
        archive_outdated=any(
            is_outdated(m["metadata"], run)
            for m in config_maps
            if known_as(m["metadata"]) == results_name(run.name)
        ),
        single=frozenset(m["metadata"]["uid"] for m in single_results(run.name, config_maps)),
        archived=frozenset(metadata["uid"] for metadata in archived.values()),
        results=results,
        failed_before=frozenset(failed_before),
        readings=readings,
        unread=unread,
        outputs=await _outputs(kube, run, pod_views, over, memory.logs),
        profiles=profiles,
        profile_outputs=await _profile_outputs(kube, run, pod_views, profiles, memory.logs),
        scripts=scripts.keys,
        leads=scripts.leads,
        kept_scripts=scripts.kept,
        script_sources=scripts.sources,
        answers=await _answers(kube, run, pod_views, memory.logs),
        summary=None if run.spec.verify_only else cache.summary(run, context, result_names),
        kubelets=memory.kubelets.look(run.namespace, pod_views, now),
    )


async def _outputs(
    kube: Kube,
    run: Run,
    pods: tuple[PodView, ...],
    over: set[str],
    logs: Logs,
) -> dict[str, dict[int, str]]:
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


async def _profile_outputs(
    kube: Kube,
    run: Run,
    pods: tuple[PodView, ...],
    stored: Mapping[str, str],
    logs: Logs,
) -> dict[str, str]:
    return {
        pod.trial: await _log(kube, run, pod, PROFILE_CONTAINER, logs)
        for pod in pods
        if pod.component == "profiler"
        and pod.trial is not None
        and pod.trial not in stored
        and _ended(pod, PROFILE_CONTAINER)
    }


async def _answers(kube: Kube, run: Run, pods: tuple[PodView, ...], logs: Logs) -> dict[str, str]:
    if not run.spec.verify_only:
        return {}
    return {
        pod.name: await _log(kube, run, pod, VERIFY_CONTAINER, logs)
        for pod in pods
        if pod.component == "verifier" and _ended(pod, VERIFY_CONTAINER)
    }


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


async def _generator_log(kube: Kube, run: Run, pod: PodView, logs: Logs) -> str:
    """Return what a generator has written; a log without its end is read once more next time."""
    known = pod.name in logs
    text = await _log(kube, run, pod, _speaker(pod) or GENERATOR_CONTAINER, logs)
    if not known and cut_short(text):
        # Its node may be late with the last lines.
        logs.pop(pod.name, None)
    return text


def _speaker(pod: PodView) -> str | None:
    """Return the container that says what came of a generator; None while none does."""
    if _ended(pod, GENERATOR_CONTAINER):
        return GENERATOR_CONTAINER
    # Where the data could not be brought to their state, no generator has begun.
    failed = any(one.name == PREPARE_CONTAINER and one.exit_code for one in pod.containers)
    return PREPARE_CONTAINER if failed else None


def _is_readings(manifest: Manifest) -> bool:
    return bool(manifest["metadata"]["labels"][COMPONENT_LABEL] == Component.READINGS)


def _ended(pod: PodView, name: str) -> bool:
    return any(
        container.name == name and container.exit_code is not None for container in pod.containers
    )
