"""What is known of the run that is measured."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from laptime.api.attempts import attempt_name
from laptime.kube import Kube, Manifest
from laptime.manifests.context import RunContext
from laptime.manifests.objects import (
    COMPONENT_LABEL,
    SECRET_ANNOTATION,
    TRIAL_LABEL,
    Component,
    known_as,
)
from laptime.manifests.result import profile_problem, readings_name, results_name
from laptime.plan import order_of, plan_profiles, plan_trials, seed_of
from laptime.reconcile.cache import version_of
from laptime.reconcile.children import Children
from laptime.reconcile.container_logs import (
    Logs,
    generator_outputs,
    profile_outputs,
    verifier_answers,
)
from laptime.reconcile.fold import is_outdated, read_archive, single_results
from laptime.reconcile.held import ONLY_THERE, held
from laptime.reconcile.kubelets import Kubelets
from laptime.reconcile.last_words import LastWords
from laptime.reconcile.pull_secrets import PullSecrets
from laptime.reconcile.readings import ReadingsDesk
from laptime.reconcile.result_cache import ResultCache
from laptime.reconcile.scripts import ScriptDesk
from laptime.reconcile.sightings import Sightings
from laptime.reconcile.views import (
    Observed,
    Run,
    deployment_view,
    has_place,
    hash_by_name,
    job_view,
    pod_view,
    with_secret_keys,
)


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
    config_map_names = {known_as(m["metadata"]): m["metadata"]["name"] for m in config_maps}
    stored = await _stored_trials(kube, run, context, memory, config_map_names)
    archived = memory.archived
    results = cache.results(stored.results, run)
    # Attempts of which nobody needs the output any more.
    over = {result.attempt_name for result in results.values()}
    over |= {attempt_name(one.trial, one.attempt) for one in run.status.lost_attempts or []}
    readings, unread = memory.desk.look(run, results.values(), stored.readings, cache.payloads)
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
        payload_room=cache.payload_room,
        failed_before=frozenset(stored.failed_before),
        readings=readings,
        unread=unread,
        outputs=await generator_outputs(kube, run, pod_views, over, memory.logs),
        profiles=profiles,
        profile_outputs=await profile_outputs(kube, run, pod_views, profiles, memory.logs),
        scripts=scripts.keys,
        leads=scripts.leads,
        kept_scripts=scripts.kept,
        script_sources=scripts.sources,
        answers=await verifier_answers(kube, run, pod_views, memory.logs),
        summary=None if run.spec.verify_only else cache.summary(run, context, stored.results),
        kubelets=memory.kubelets.look(run.namespace, pod_views, now),
    )


@dataclass(frozen=True)
class _StoredTrials:
    """The trials of which something is stored in the cluster."""

    results: set[str]
    readings: set[str]
    """Those whose readings are there too."""
    failed_before: set[str]
    """Names of ConfigMaps of trials that are made again, which are to go."""


async def _stored_trials(
    kube: Kube, run: Run, context: RunContext, memory: Memory, names: Mapping[str, str]
) -> _StoredTrials:
    """Read the results that are not known yet, and return which are there now.

    `names` are those of the run's ConfigMaps, by the names that the run knows them by.
    """
    cache = memory.results
    seed, most = seed_of(run.spec, run.uid), run.spec.most_repetitions
    order = order_of(run.status)
    trials = {trial.name for trial in plan_trials(run.name, run.spec, seed, most, order)}
    gone = cache.known() - set(names) - set(memory.archived)
    cache.forget(gone)
    memory.desk.forget(gone)
    results = set(names) & trials
    for name in sorted(results - cache.known()):
        manifest = await kube.get("ConfigMap", run.namespace, names[name])
        if manifest is not None:
            cache.add(name, manifest, context)
    results &= cache.known()
    readings = {trial for trial in results if readings_name(trial) in names}
    for name in sorted(readings - cache.read()):
        manifest = await kube.get("ConfigMap", run.namespace, names[readings_name(name)])
        if manifest is not None:
            cache.add_readings(name, manifest, context)
    # What stands there singly comes first: it may have replaced what is in the archive.
    await memory.look_into_archive(kube, run, context)
    results |= set(memory.archived) & trials & cache.known()
    readings |= {trial for trial in results if readings_name(trial) in memory.archived}
    again = cache.drop_failed(results, run.status.retries or 0)
    results -= again
    # What was read of trials that have no result is of another time than what they will be.
    unclaimed = {readings_name(name) for name in trials - results}
    return _StoredTrials(results, readings, (again | unclaimed) & set(names))


def _is_readings(manifest: Manifest) -> bool:
    return bool(manifest["metadata"]["labels"][COMPONENT_LABEL] == Component.READINGS)
