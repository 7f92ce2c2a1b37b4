"""Before the first trial: whether a script leads out of the run, and that the run keeps it."""

from __future__ import annotations

import posixpath

from laptime.api.conditions import Verdict
from laptime.api.status import ConditionStatus, ConditionType, State
from laptime.manifests.kept_scripts import kept_script, script_hash
from laptime.plan import Lead, may_reach
from laptime.reconcile.actions import Create, Decision
from laptime.reconcile.diagnose import Problem
from laptime.reconcile.stages.deploy import refused
from laptime.reconcile.stages.situation import Situation

_SOON_SECONDS = 1.0
_SHOWN = 5


def leads_out(situation: Situation) -> Decision | None:
    """Say which hosts scripts name; fail a run whose script imports what no pod of it can load."""
    leads = situation.observed.leads
    unread = [one.name for one in situation.spec.loads if one.script and one.script.image]
    known = leads or unread
    if not known or situation.measured() or situation.run.status.state is State.RUNNING:
        return None
    egress = situation.spec.egress
    imports = [(load, one) for load, its in leads.items() for one in its.imports]
    named = [
        (load, one)
        for load, its in leads.items()
        for one in its.names
        if not may_reach(one.host, egress)
    ]
    # A name may stand for any address of a range, which only DNS knows.
    closed = situation.context.network is not None and not any(one.cidr for one in egress)
    barred = [(load, one) for load, one in imports if closed and not may_reach(one.host, egress)]
    if barred:
        problem = Problem("RemoteImport", _barred(barred), fatal=True)
        _say(situation, ConditionStatus.FALSE, problem.reason, problem.message)
        situation.progressing("", "", problem)
        situation.fail(problem)
        return situation.decision(State.DEPLOYING, requeue_seconds=_SOON_SECONDS)
    cut = "" if all(one.whole for one in leads.values()) else "; the rest was too long to be read"
    if imports or named:
        said = [f"{_listed(imports)}: it is loaded from there in every trial"] if imports else []
        if named:
            said.append(
                f"{_listed(named)}: these are neither the target nor named by the run, and what "
                "is asked of them is in no figure of the server; where the target is meant, take "
                "it from __ENV.TARGET or a variable in the script's env"
            )
        _say(situation, ConditionStatus.FALSE, "OtherHostsNamed", "; ".join(said) + cut)
    elif unread:
        text = (
            f"the script of load {', '.join(unread)} is in an image, which nobody has read: only "
            "its trials show whether it leads to another host than its target"
        )
        _say(situation, ConditionStatus.UNKNOWN, "ScriptInImage", text)
    else:
        text = f"no script imports from or names another host than its target{cut}"
        _say(situation, ConditionStatus.TRUE, "NothingLeadsOut", text)
    return None


def own_scripts(situation: Situation) -> Decision | None:
    """Have the run keep its scripts; fail it when it has lost one that is another by now."""
    sources = situation.observed.script_sources
    # A profile needs them as trials do.
    if not sources or situation.nothing_left():
        return None
    status = situation.run.status
    # One that had its turn goes on where it is: tiers that servers were verified on stay.
    state = status.state if status.state in (State.VERIFYING, State.RUNNING) else State.DEPLOYING
    began_with = {one.config_map: one.hash for one in status.scripts or []}
    changed = [
        name
        for name, source in sources.items()
        if began_with.get(name) not in (None, script_hash(source))
    ]
    if changed:
        problem = Problem(
            "ScriptChanged",
            f"the run has lost what it kept of ConfigMap {', '.join(changed)}, which has another "
            "content by now than it began with: apply the run under another name",
            fatal=True,
        )
        situation.progressing("", "", problem)
        situation.fail(problem)
    else:
        situation.actions += [
            Create(kept_script(situation.context, name, source)) for name, source in sources.items()
        ]
        situation.progressing("Deploying", "the run keeps its scripts")
        if (decision := refused(situation)) is not None:
            return decision
    return situation.decision(
        state,
        requeue_seconds=_SOON_SECONDS,
        current_trial=status.current_trial,
        current_beside=status.current_beside,
    )


def _say(situation: Situation, status: ConditionStatus, reason: str, message: str) -> None:
    situation.say(Verdict(ConditionType.SCRIPTS_SELF_CONTAINED, status, reason, message))


def _barred(imports: list[tuple[str, Lead]]) -> str:
    hosts = " and ".join(dict.fromkeys(one.host for _, one in imports))
    file = posixpath.basename(imports[0][1].text.partition("?")[0]) or "module.js"
    return (
        f"{_listed(imports)}, and pods of a run have no way to {hosts}: put the file into the "
        f"script's ConfigMap and import './{file}', or make an archive of all by k6 archive; or "
        "name its addresses in spec.egress"
    )


def _listed(leads: list[tuple[str, Lead]]) -> str:
    said = ", ".join(f"load {load}: {one}" for load, one in leads[:_SHOWN])
    return said + (f" and {len(leads) - _SHOWN} more" if len(leads) > _SHOWN else "")
