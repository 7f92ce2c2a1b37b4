"""The first stage: the tiers of a run are deployed and get ready."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from laptime.analysis.remembered import forgotten_by
from laptime.api.conditions import Verdict
from laptime.api.status import ConditionStatus, ConditionType, State
from laptime.manifests.context import RunContext
from laptime.manifests.network import network_name, network_policy
from laptime.manifests.objects import COMPONENT_LABEL, Manifest
from laptime.manifests.pgbouncer import pgbouncer_name
from laptime.manifests.postgres import postgres_name
from laptime.manifests.scenario import scenario_config_map
from laptime.manifests.secret import postgres_owner, secret_owners, services_owner
from laptime.manifests.server import server_deployment, server_name
from laptime.manifests.side_services import side_service_name
from laptime.manifests.tiers import tier_objects
from laptime.plan import load_problems, misfits
from laptime.reconcile.actions import (
    Apply,
    Create,
    CreateDatabaseSecret,
    CreateServicesSecret,
    Decision,
    Delete,
)
from laptime.reconcile.diagnose import Problem
from laptime.reconcile.stages.situation import Situation
from laptime.reconcile.stages.tiers import tier_names, tiers_ready
from laptime.reconcile.views import IMAGE_REASONS, LABEL

_SOON_SECONDS = 1.0
_LONG_PATIENCE_SECONDS = 60.0
_ORDER = ("ConfigMap", "Service", "Deployment")
_LATER = (State.VERIFYING, State.RUNNING)
_WANTED: deque[tuple[RunContext, list[Manifest]]] = deque(maxlen=8)
forgotten_by(_WANTED.clear)


def own_scenario(situation: Situation) -> Decision | None:
    """Have the run keep its scenario; wait for one that is missing, fail with one that is wrong."""
    if situation.observed.scenario_looked_at:
        situation.progressing("Deploying", "the rules of its scenario are looked at")
        decision = situation.decision(State.DEPLOYING, requeue_seconds=_SOON_SECONDS)
        # The cluster has nothing to do meanwhile: what it may take is counted from the next step.
        status = decision.status.model_copy(update={"step_started_at": None})
        return replace(decision, status=status)
    error = situation.observed.scenario_problem
    if error is not None:
        problem = Problem(error.reason, str(error), fatal=error.fatal)
        situation.progressing("", "", problem)
        waited = _missing_seconds(situation, State.DEPLOYING, ConditionType.PROGRESSING)
        if problem.fatal or waited >= situation.spec.startup_seconds:
            situation.fail(problem)
        return situation.decision(State.DEPLOYING, requeue_seconds=_SOON_SECONDS)
    if situation.observed.scenario_kept:
        return None
    # Nothing is made from it before: what is measured is what is kept.
    situation.actions.append(Create(scenario_config_map(situation.context)))
    situation.progressing("Deploying", "the run keeps its scenario")
    return refused(situation) or situation.decision(State.DEPLOYING, requeue_seconds=_SOON_SECONDS)


def does_not_fit(situation: Situation) -> Decision | None:
    """Fail a run that its scenario cannot serve, before anything is deployed."""
    if situation.rests_on_tiers:
        # What is refused may have grown since an earlier version began it, and it has shown that it
        # fits.
        return None
    spec, scenario = situation.spec, situation.context.scenario
    for reason, problems in (
        ("ScenarioDoesNotFit", misfits(spec, scenario)),
        ("LoadImpossible", load_problems(spec, scenario)),
    ):
        if problems:
            problem = Problem(reason, "; ".join(problems))
            situation.progressing("", "", problem)
            situation.fail(problem)
            return situation.decision(State.DEPLOYING, requeue_seconds=_SOON_SECONDS)
    return None


def _missing_seconds(situation: Situation, state: State, *said_by: ConditionType) -> float:
    """Return for how long a run has waited, in this state, for what is missing.

    It may have gone in the middle of the run, so the age of the run says nothing of it; nor does
    the age of a condition that was false for something else before: all that say it must be.
    """
    waited = (situation.condition_seconds(one, ConditionStatus.FALSE) for one in said_by)
    return min(*waited, situation.step_seconds(state))


def missing_config_map(situation: Situation) -> Decision | None:
    """Wait for the ConfigMap of a script or of certificates; fail the run when it does not come."""
    if situation.measured():
        return None
    said = situation.run.status.state
    # One that had its turn goes on where it is: tiers that servers were verified on stay.
    state = said if said in _LATER else State.DEPLOYING
    for who, config_map, key in situation.spec.config_maps:
        if config_map not in situation.observed.scripts:
            continue
        keys = situation.observed.scripts[config_map]
        if keys is not None and (key is None or key in keys):
            continue
        name = f"ConfigMap {config_map} in namespace {situation.run.namespace}"
        problem = (
            Problem(
                "ConfigMapMissing",
                f"{who} needs {name}, and there is none: create it with "
                f"kubectl create configmap {config_map} "
                f"--from-file={key or 'FILE'} -n {situation.run.namespace}",
            )
            if keys is None
            else Problem(
                "ConfigMapKeyMissing",
                f"{who} needs the key {key} of {name}; "
                f"it has {', '.join(sorted(keys)) or 'no keys'}",
            )
        )
        situation.say(
            Verdict(
                ConditionType.TIERS_READY, ConditionStatus.FALSE, problem.reason, problem.message
            )
        )
        situation.progressing("", "", problem)
        said_by = ConditionType.PROGRESSING, ConditionType.TIERS_READY
        if _missing_seconds(situation, state, *said_by) >= situation.spec.startup_seconds:
            situation.fail(problem)
        return situation.decision(state, requeue_seconds=_SOON_SECONDS)
    return None


def refused(situation: Situation) -> Decision | None:
    """Fail a run of which an object could not be stored for too long."""
    refusal, state = situation.observed.refusal, situation.run.status.state
    if refusal is None:
        return None
    patience = refusal.patience_seconds
    if patience is None:
        # Earlier than what is missing because of it, which says less.
        patience = situation.spec.startup_seconds / 2
        if situation.observed.results or refusal.room:
            # What was measured is worth a longer wait, and a full quota may pass.
            patience = max(patience, _LONG_PATIENCE_SECONDS)
    if (situation.now - refusal.since).total_seconds() < patience:
        return None
    problem = Problem(refusal.reason, refusal.message, fatal=True)
    situation.progressing("", "", problem)
    situation.fail(problem)
    return situation.decision(state or State.DEPLOYING, requeue_seconds=_SOON_SECONDS)


def deploy(situation: Situation) -> Decision | None:
    """Apply what is missing or different; wait until every tier is ready before the first trial."""
    observed = situation.observed
    # Those who ask for images come and go beside it.
    of_others = len(situation.actions)
    stored = {
        "Deployment": {name: view.manifest_hash for name, view in observed.deployments.items()},
        "Service": observed.services,
        "ConfigMap": observed.config_maps,
    }
    reached_later = situation.run.status.state in _LATER
    wanted = _wanted(situation.context)
    absent = {_key(one) for one in wanted if one["metadata"]["name"] not in stored[one["kind"]]}
    # One that is made anew has the configuration that it is made for.
    anew = {
        _component(one) for one in wanted if one["kind"] == "Deployment" and _key(one) in absent
    }
    missing = [
        one
        for one in wanted
        if _key(one) in absent
        # Once servers are verified on them, tiers stay as they are, whatever else is missing: a new
        # version of the operator must not replace a database in the middle of a run. Nothing rests
        # on one that has no image, and whoever mends that changes what is wanted.
        or (
            (_component(one) in anew or _may_change(situation, _component(one)))
            and not _is_as_wanted(one, stored[one["kind"]])
        )
    ]
    if missing:
        # What is kept of them is nobody's to change.
        missing = _placed(deepcopy(missing), situation)
    context = situation.context
    if context.network is not None and network_name(context) not in observed.network_policies:
        # Before there is any pod that it is about, such as those that ask for images.
        situation.actions.insert(0, Create(network_policy(context)))
    unowned = secret_owners(context) - set(observed.config_maps)
    if unowned:
        # Pods that know a password that is nobody's any more, where there are some. First: once the
        # ConfigMaps are there again, nothing shows that these are of the time before.
        keepers = [postgres_name(context), pgbouncer_name(context)]
        keepers += [side_service_name(context, one) for one in context.scenario.services]
        keepers += [server_name(context, one) for one in situation.spec.deployed]
        situation.actions += [
            Delete("Deployment", name) for name in keepers if name in observed.deployments
        ]
        # The Secrets are called by these, and all pods that need them come after that.
        situation.actions += [Apply(one) for one in missing if one["kind"] == "ConfigMap"]
    elif missing:
        # What pods need comes before them: configuration, the password, and names that resolve.
        missing.sort(key=lambda manifest: _ORDER.index(manifest["kind"]))
        situation.actions += [Apply(one) for one in missing if one["kind"] == "ConfigMap"]
        # Where the first pod that needs it is deployed, its Secret was there before.
        names = {one["metadata"]["name"] for one in missing if one["kind"] == "Deployment"}
        names -= set(observed.deployments)
        if postgres_name(context) in names:
            owner = observed.secret_owners.get(postgres_owner(context), "")
            situation.actions.append(CreateDatabaseSecret(owner))
        secretive = [one for one in context.scenario.services if one.password]
        if secretive and side_service_name(context, secretive[0]) in names:
            owner = observed.secret_owners.get(services_owner(context), "")
            situation.actions.append(CreateServicesSecret(owner))
        situation.actions += [Apply(one) for one in missing if one["kind"] != "ConfigMap"]
    if not (reached_later or unowned):
        # So early, since a name that somebody else has should be known before anything is measured.
        situation.actions += [
            Apply(server_deployment(situation.context, server, None))
            for server in situation.spec.deployed
            if server_name(situation.context, server) not in observed.deployments
        ]
    ready = tiers_ready(situation)
    situation.tiers_ready = ready
    if len(situation.actions) == of_others and (ready or reached_later):
        # A tier that goes away later on is dealt with by the stage that was reached.
        return None
    longest = situation.patience_seconds + situation.spec.startup_seconds
    if situation.step_seconds(State.DEPLOYING) >= longest:
        unsettled = ", ".join(f"{one['kind']} {one['metadata']['name']}" for one in missing)
        why = f"; changed again and again: {unsettled}" if unsettled else "; look at their pods"
        if observed.refusal is not None:
            why = ""
        problem = Problem("NotDeployed", f"the tiers did not come to stand{why}", fatal=True)
        situation.fail(situation.explained(problem))
    situation.progressing("Deploying", "the tiers and Services are set up")
    return situation.decision(State.DEPLOYING, requeue_seconds=_SOON_SECONDS)


def _wanted(context: RunContext) -> list[Manifest]:
    """Return the tiers of a run, which are made anew only where something of it has changed.

    They are looked at in each pass, and making them is a fifth of one, or most of it where the data
    of the scenario are large.
    """
    for known, tiers in _WANTED:
        if known == context:
            return tiers
    tiers = tier_objects(context)
    _WANTED.append((context, tiers))
    return tiers


def _placed(tiers: list[dict[str, Any]], situation: Situation) -> list[dict[str, Any]]:
    """Return tiers that would rather be where they were in the first trial.

    The hashes say nothing of it: what stands is not replaced because a first result is there now.
    """
    places = situation.places_of_tiers(tier_names(situation))
    if not places.nodes:
        return tiers
    anywhere = {_key(one): one["metadata"]["annotations"] for one in tiers}
    there = [
        one
        for one in tier_objects(replace(situation.context, places=places))
        if _key(one) in anywhere
    ]
    for one in there:
        one["metadata"]["annotations"] = anywhere[_key(one)]
    return there


def _component(manifest: dict[str, Any]) -> str:
    component: str = manifest["metadata"]["labels"][COMPONENT_LABEL]
    return component


def _may_change(situation: Situation, component: str) -> bool:
    """Whether nothing rests on a tier as it is."""
    return not situation.rests_on_tiers or any(
        one.name == pod.main and one.waiting_reason in IMAGE_REASONS
        for pod in situation.observed.pods_of(component)
        for one in pod.containers
    )


def _key(manifest: dict[str, Any]) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]


def _is_as_wanted(manifest: dict[str, Any], stored: Mapping[str, str | None]) -> bool:
    wanted: str = manifest["metadata"]["annotations"][LABEL + "manifest-hash"]
    return stored[manifest["metadata"]["name"]] == wanted
