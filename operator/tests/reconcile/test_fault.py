"""Whose fault it was: what the API server shows of a pod, and who answers for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from laptime.api.attempts import Fault
from laptime.api.loads import Load
from laptime.api.spec import BenchmarkRunSpec
from laptime.reconcile.diagnose import Part, diagnose, late, taken_away, words_lost
from laptime.reconcile.fault import whose_fault
from laptime.reconcile.views import Hearing, pod_view, with_secret_keys

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
LATER = CREATED + timedelta(seconds=40)
HEARD = Hearing(heard_seconds=5.0)
SILENT = Hearing(silent=True)
FIXED = Load.model_validate({"name": "l", "open": {"rate": 10, "duration": "2s"}})
BOUND = Load.model_validate({"name": "l", "closed": {"connections": 1, "requests": 100}})
SCRIPT = Load.model_validate({"name": "l", "script": {"configMap": "mine"}})


def pod(
    status: dict[str, Any],
    *,
    node: str | None = "n1",
    limited: bool = False,
    deleted_at: str | None = None,
) -> dict[str, Any]:
    """Return a pod of a server as the API server has it."""
    container: dict[str, Any] = {"name": "server", "image": "mine:1"}
    if limited:
        container["resources"] = {"limits": {"memory": "64Mi"}}
    if node is not None and "startTime" not in status:
        status = {"startTime": "2026-01-01T00:00:00Z", **status}
    return {
        "metadata": {
            "name": "p",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"laptime.dev/component": "server"},
            **({"deletionTimestamp": deleted_at} if deleted_at else {}),
        },
        "spec": {"containers": [container], **({"nodeName": node} if node else {})},
        "status": status,
    }


def container(state: dict[str, Any], **more: Any) -> dict[str, Any]:
    one = {"name": "server", "ready": False, "restartCount": 0, "state": state, **more}
    return {"phase": "Running", "containerStatuses": [one]}


RUNNING = {"running": {"startedAt": "2026-01-01T00:00:01Z"}}


def ended(reason: str, code: int = 137, message: str = "") -> dict[str, Any]:
    last = {"terminated": {"reason": reason, "exitCode": code, "message": message}}
    return container(RUNNING, lastState=last, restartCount=1)


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {**container(state), "phase": "Pending"}


def taken(reason: str) -> dict[str, Any]:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "m"}
    return {**container(RUNNING), "conditions": [condition]}


def failed(reason: str, message: str = "") -> dict[str, Any]:
    return {"phase": "Failed", "reason": reason, "message": message}


UNPLACED = {"phase": "Pending"}


def unplaced(nodes: str) -> dict[str, Any]:
    """What a scheduler of Kubernetes 1.34 says, or (without "(s)") one before it."""
    words = f"0/3 nodes are available: {nodes}. preemption: 0/3 nodes are available: 3 No help."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {"phase": "Pending", "conditions": [{**condition, "message": words}]}


UNREADY = {
    **container(RUNNING, ready=True),
    "conditions": [{"type": "Ready", "status": "False"}],
}
GONE = "2026-01-01T00:00:30Z"

# What the API server shows of a server's pod in a trial, and what was heard of its kubelet; what
# that is called, and who answers for it.
CASES: dict[str, tuple[dict[str, Any], Hearing, str, Fault]] = {
    "out of its own memory": (
        pod(ended("OOMKilled"), limited=True),
        HEARD,
        "OutOfMemory",
        Fault.SERVER,
    ),
    "out of the node's memory": (pod(ended("OOMKilled")), HEARD, "NodeOutOfMemory", Fault.NODE),
    "ended by itself": (pod(ended("Error", 1)), HEARD, "Crashed", Fault.SERVER),
    "ended by a disk that was full": (
        pod(ended("Error", 1, "cp: error writing 'base/1/13': No space left on device\nbye")),
        HEARD,
        "DiskFull",
        Fault.NODE,
    ),
    "ended by shared memory that was full": (
        pod(ended("Error", 1, "could not resize shared memory: No space left on device")),
        HEARD,
        "Crashed",
        Fault.SERVER,
    ),
    "lost by a node that was started anew": (
        pod(ended("Unknown", 255)),
        HEARD,
        "NodeLost",
        Fault.NODE,
    ),
    "not ready, says its kubelet": (pod(container(RUNNING)), HEARD, "NotReady", Fault.SERVER),
    "not ready, and its kubelet silent": (
        pod(container(RUNNING)),
        SILENT,
        "NodeSilent",
        Fault.NODE,
    ),
    "not noticed by its kubelet": (pod({"startTime": None}), SILENT, "NodeSilent", Fault.NODE),
    "never started": (pod(waiting("ContainerCreating")), HEARD, "NotStarted", Fault.NODE),
    "never placed": (pod(UNPLACED, node=None), Hearing(), "NotScheduled", Fault.CLUSTER),
    "no room": (
        pod(unplaced("1 Insufficient cpu, 2 Insufficient memory"), node=None),
        Hearing(),
        "Unschedulable",
        Fault.CLUSTER,
    ),
    "no room on the only node that takes pods": (
        pod(unplaced("1 Insufficient cpu, 2 node(s) were unschedulable"), node=None),
        Hearing(),
        "Unschedulable",
        Fault.CLUSTER,
    ),
    "all nodes cordoned or tainted": (
        pod(
            unplaced("1 node(s) were unschedulable, 2 node(s) had untolerated taint(s)"), node=None
        ),
        Hearing(),
        "NodesClosed",
        Fault.CLUSTER,
    ),
    "all nodes short of disk, before 1.34": (
        pod(
            unplaced("3 node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }"),
            node=None,
        ),
        Hearing(),
        "NodesClosed",
        Fault.CLUSTER,
    ),
    "image away": (
        pod(waiting("ErrImagePull", "i/o timeout")),
        HEARD,
        "ImagePullFailed",
        Fault.CLUSTER,
    ),
    "no room on its node's disk to make it": (
        pod(waiting("CreateContainerError", "mkdir /var/log/pods/p: no space left on device")),
        Hearing(),
        "DiskFull",
        Fault.NODE,
    ),
    "secret away": (
        pod(waiting("CreateContainerConfigError")),
        HEARD,
        "ContainerConfigInvalid",
        Fault.CLUSTER,
    ),
    "evicted for the node's sake": (
        pod(failed("Evicted", "The node was low on resource: memory.")),
        HEARD,
        "Evicted",
        Fault.NODE,
    ),
    "not admitted while the node's disk is full": (
        pod(failed("Evicted", "Pod was rejected: The node had condition: [DiskPressure]. ")),
        HEARD,
        "Evicted",
        Fault.NODE,
    ),
    "evicted for what its container wrote": (
        pod(
            failed("Evicted", 'Container server exceeded its local ephemeral storage limit "1Gi".')
        ),
        HEARD,
        "StorageExceeded",
        Fault.SERVER,
    ),
    "evicted for what all of it wrote": (
        pod(
            failed(
                "Evicted",
                "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi.",
            )
        ),
        HEARD,
        "StorageExceeded",
        Fault.SERVER,
    ),
    "evicted for what it wrote": (
        pod(failed("Evicted", 'Usage of EmptyDir volume "tmp" exceeds the limit "1Gi".')),
        HEARD,
        "StorageExceeded",
        Fault.SERVER,
    ),
    "refused by its node": (pod(failed("OutOfcpu")), HEARD, "NodeRefused", Fault.NODE),
    "not admitted": (pod(failed("UnexpectedAdmissionError")), HEARD, "NodeRefused", Fault.NODE),
    "shut down with its node": (pod(failed("Terminated")), HEARD, "NodeRefused", Fault.NODE),
    "preempted": (
        pod(taken("PreemptionByScheduler"), deleted_at=GONE),
        HEARD,
        "Preempted",
        Fault.CLUSTER,
    ),
    "drained": (pod(taken("EvictionByEvictionAPI"), deleted_at=GONE), HEARD, "Drained", Fault.NODE),
    "on a node that is gone": (
        pod(taken("DeletionByTaintManager"), deleted_at=GONE),
        HEARD,
        "NodeLost",
        Fault.NODE,
    ),
    "taken for dead with its node": (pod(UNREADY), HEARD, "NodeLost", Fault.NODE),
    "deleted by somebody": (
        pod(container(RUNNING), deleted_at=GONE),
        HEARD,
        "PodDeleted",
        Fault.CLUSTER,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_who_answers_for_what_became_of_a_servers_pod(case: str) -> None:
    manifest, hearing, reason, fault = CASES[case]
    pods, what = [pod_view(manifest)], "server mine"
    problem = (
        taken_away(what, pods)
        or late(what, pods, {"p": hearing}, 30.0, LATER)
        or diagnose(what, pods, LATER)
    )
    assert problem is not None
    assert (problem.reason, whose_fault(problem.reason, Part.SERVER, FIXED)) == (reason, fault)
    assert what in problem.message


def test_of_a_node_that_only_got_a_taint_nobody_says_that_it_is_silent() -> None:
    manifest, *_ = CASES["on a node that is gone"]
    problem = taken_away("server mine", [pod_view(manifest)])
    assert problem is not None
    assert "which does not answer any more or got a taint" in problem.message


HARBOR = "https://harbor.example/v2/mine/manifests/1"


@pytest.mark.parametrize(
    ("words", "passes"),
    [
        ('failed to resolve reference "docker.io/library/mine:1": mine:1: not found', False),
        (f"unexpected status from HEAD request to {HARBOR}: 503 Service Unavailable", True),
        ("rpc error: code = Unknown desc = dial tcp 10.0.0.1:443: i/o timeout", True),
        ("dial tcp: lookup registyr.example on 10.96.0.10:53: no such host", False),
        ("dial tcp: lookup registry.example on 10.96.0.10:53: server misbehaving", True),
        ("pull access denied, repository does not exist or may require authorization", False),
        (f"unexpected status from HEAD request to {HARBOR}: 401 Unauthorized", False),
        ("denied: Your authorization token has expired. Reauthenticate and try again.", True),
        ("429 Too Many Requests - Server message: toomanyrequests: pull rate limit", True),
        ("rpc error: code = Unknown desc = reading manifest 1: manifest unknown", False),
        ("tls: failed to verify certificate: x509: signed by unknown authority", False),
        ('Back-off pulling image "mine:1"', True),
    ],
)
def test_what_a_registry_says_for_good_is_known_from_what_may_be_over_in_a_minute(
    words: str, passes: bool
) -> None:
    problem = diagnose("server mine", [pod_view(pod(waiting("ErrImagePull", words)))], LATER)
    assert problem is not None
    assert (problem.reason, problem.fatal, problem.passes) == ("ImagePullFailed", False, passes)


def test_without_its_pull_secret_an_image_is_not_waited_for() -> None:
    seen = pod_view(pod(waiting("ErrImagePull", "no words that anybody knows")))
    for missing, passes in (((), True), (("regcred",), False)):
        problem = diagnose("server mine", [replace(seen, missing_secrets=missing)], LATER)
        assert problem is not None
        assert problem.passes is passes


def test_a_slow_pull_is_told_what_gives_it_more_time() -> None:
    slow = pod_view(pod(waiting("ContainerCreating")))
    problem = late("server mine", [slow], {"p": HEARD}, 30.0, LATER)
    assert problem is not None
    assert problem.reason == "NotStarted"
    assert "its image may still be being pulled" in problem.message
    assert "spec.startupTimeout" in problem.message


def test_a_crash_is_not_fatal_before_the_kubelet_says_how_it_ended() -> None:
    """For a moment after a restart it has no last state; the words of the crash must not go."""
    begun = pod_view(pod(container(RUNNING, restartCount=2)))
    problem = diagnose("server mine", [begun], CREATED + timedelta(seconds=3))
    assert problem is not None
    assert (problem.reason, problem.fatal) == ("Crashed", False)
    assert "None" not in problem.message
    last = {"terminated": {"reason": "Error", "exitCode": 3, "message": "no such table"}}
    told = pod_view(pod(container(RUNNING, restartCount=2, lastState=last)))
    problem = diagnose("server mine", [told], LATER)
    assert problem is not None
    assert (problem.reason, problem.fatal) == ("CrashLoop", True)
    assert "exit code 3; its last words: no such table" in problem.message


READ_ONLY = (
    ". It says '%s': all but /tmp and the folders of writable is read-only. Name there, beside "
    "image, what it writes to"
)
NO_ROOT = (
    ". It says '%s': it runs without root and capabilities. Have it listen on a port from 1024 on, "
    "and let its user have the files that it needs, or write another user beside image"
)


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ("mkdir: cannot create directory '/app': Read-only file system", READ_ONLY),
        (
            "Error: EROFS: read-only file system, mkdir '/app/cache'\n  at f\n}\n\nNode.js v24",
            READ_ONLY,
        ),
        ("OSError: [Errno 30] Read-only file system: '/app/x'", READ_ONLY),
        ("listen tcp :80: bind: permission denied", NO_ROOT),
        ("PermissionError: [Errno 13] Permission denied: '/app/x'", NO_ROOT),
        ("chown: /var/cache/nginx: Operation not permitted", NO_ROOT),
        ("java.nio.file.AccessDeniedException: /app/logs", NO_ROOT),
        ("FATAL: permission denied for schema public", ""),
        ("dial unix /run/a.sock: connect: permission denied", ""),
        ("Error: connect EACCES 10.0.0.1:80", ""),
        ("panic: no such table", ""),
    ],
)
@pytest.mark.parametrize("restarts", [1, 2])
def test_words_about_what_no_pod_may_are_told_with_the_rule(
    words: str, rule: str, restarts: int
) -> None:
    last = {"terminated": {"reason": "Error", "exitCode": 1, "message": words}}
    view = pod_view(pod(container(RUNNING, restartCount=restarts, lastState=last)))
    problem = diagnose("server mine", [view], LATER, own_image=True)
    assert problem is not None
    _, separator, said = problem.message.partition(". It says ")
    quoted = said[1:].partition("'")[0]
    assert quoted.lower() in words.lower()
    assert separator + said == (rule % quoted if rule else "")
    # Nobody can write anything beside the image of a preset, a tier, or a container before it.
    beside = pod(container(RUNNING, restartCount=restarts, lastState=last, name="sql"))
    for others in (
        diagnose("server mine", [view], LATER),
        diagnose("server mine", [pod_view(beside)], LATER, own_image=True),
    ):
        assert others is not None
        assert "It says" not in others.message


def test_of_an_image_whose_user_is_no_number_it_is_said_what_to_write() -> None:
    words = "container has runAsNonRoot and image has non-numeric user (node), cannot verify user"
    named = pod_view(pod(waiting("CreateContainerConfigError", words)))
    problem = diagnose("server mine", [named], LATER)
    assert problem is not None
    assert problem.message == (
        f"the container of server mine cannot be created: {words}. No container runs as root: give "
        "its image a numeric USER, or write user beside image"
    )
    other = pod_view(pod(waiting("CreateContainerConfigError", 'secret "a" not found')))
    problem = diagnose("server mine", [other], LATER)
    assert problem is not None
    assert problem.message.endswith("not found")


SHOP = {"name": "shop", "port": 80, "credentials": "shop-client"}
OTHER = {"name": "OTHER", "secret": "vendor"}
LICENSED = [
    {"name": "MODE", "value": "fast"},
    {"name": "KEY", "secret": "vendor"},
    {"name": "LICENCE", "secret": "licence"},
    {"name": "TOKEN", "secret": "vendor"},
]


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        (
            'secret "vendor" not found',
            "There is no Secret vendor in the run's namespace: make it, with what the run takes of "
            "it, by kubectl create secret generic vendor --from-literal=laptime-env-KEY='…' "
            "--from-literal=laptime-env-TOKEN='…'",
        ),
        (
            "couldn't find key laptime-env-TOKEN in Secret bench/vendor",
            "Secret vendor in the run's namespace has no key laptime-env-TOKEN, and the run takes "
            'no other for this: add it by kubectl patch secret vendor -p \'{"stringData": '
            '{"laptime-env-TOKEN": "…"}}\'',
        ),
        (
            'secret "shop-client" not found',
            "There is no Secret shop-client in the run's namespace: make it, with what the run "
            "takes of it, by kubectl create secret generic shop-client "
            "--from-literal=laptime-authorization='…'",
        ),
        # That of the run itself is for nobody else to make.
        ('secret "demo-database-0a1b2c3d" not found', ""),
        ("couldn't find key password in Secret bench/demo-database-0a1b2c3d", ""),
        ("couldn't find key laptime-env-OTHER in Secret bench/vendor", ""),
    ],
)
def test_of_a_secret_that_is_missing_it_is_said_how_to_make_it(said: str, advice: str) -> None:
    spec = BenchmarkRunSpec.model_validate(
        {
            "scenario": "hello",
            "servers": [
                {"name": "mine", "image": "mine:1", "env": LICENSED},
                {"name": "shop", "service": SHOP},
                {"name": "other", "image": "mine:1", "env": [OTHER]},
            ],
            "loads": [FIXED.to_wire()],
        }
    )
    manifest = pod(waiting("CreateContainerConfigError", said))
    manifest["metadata"]["labels"]["laptime.dev/server"] = "shop" if "shop" in said else "mine"
    seen = with_secret_keys(pod_view(manifest), spec)
    problem = diagnose("server mine", [seen], LATER)
    assert problem is not None
    words = f"the container of server mine cannot be created: {said}"
    assert problem.message == (f"{words}. {advice}" if advice else words)
    # It may be made yet, but not for ever.
    assert problem.fatal is False
    over = late("server mine", [seen], {"p": HEARD}, 30.0, LATER)
    assert over is not None
    assert (over.reason, over.fatal) == (problem.reason, True)
    assert problem.reason == ("SecretMissing" if advice else "ContainerConfigInvalid")


def test_a_container_that_was_started_again_and_never_told_why_was_lost_by_its_node() -> None:
    """So it is where the container runtime was killed: the kubelet has no end to tell."""
    begun = pod_view(pod(container(RUNNING, restartCount=1)))
    problem = diagnose("server mine", [begun], LATER)
    assert problem is not None
    assert (problem.reason, problem.fatal) == ("NodeLost", True)
    assert "nobody saw how" in problem.message


@pytest.mark.parametrize(
    "silence",
    [Hearing(), Hearing(heard_seconds=1.0)],
    ids=["nobody has asked", "it answered only just now"],
)
def test_a_server_is_not_late_before_its_kubelet_has_had_the_time_to_say_so(
    silence: Hearing,
) -> None:
    pods = [pod_view(pod(container(RUNNING)))]
    assert late("server mine", pods, {"p": silence}, 30.0, LATER) is None


def test_a_servers_own_time_begins_when_its_container_runs() -> None:
    begun = {"running": {"startedAt": "2026-01-01T00:00:20Z"}}
    pods = [pod_view(pod(container(begun)))]
    assert late("server mine", pods, {"p": HEARD}, 30.0, LATER) is None
    soon = CREATED + timedelta(seconds=50)
    problem = late("server mine", pods, {"p": HEARD}, 30.0, soon)
    assert problem is not None
    assert problem.reason == "NotReady"


def test_a_pod_that_was_never_placed_has_no_container_that_runs() -> None:
    problem = late("server mine", [pod_view(pod(UNPLACED, node=None))], {}, 30.0, LATER)
    assert problem is not None
    assert "container" not in problem.message


START_ERROR = {"terminated": {"reason": "StartError", "exitCode": 128, "message": "chdir"}}
NO_PROGRAM = {"terminated": {"reason": "StartError", "exitCode": 128, "message": "no such file"}}
DONE = {"terminated": {"reason": "Completed", "exitCode": 0}}


def of_a_script(state: dict[str, Any], name: str = "script") -> dict[str, Any]:
    """Return a pod of a generator, whose script is in an image."""
    made = pod({"phase": "Pending"})
    one = {"name": name, "image": "load:1", "restartCount": 0, "ready": False, "state": state}
    made["status"]["initContainerStatuses"] = [one]
    return made


def test_of_a_scripts_image_it_is_said_which_it_is_and_what_it_lacks() -> None:
    words = "there is no file main.js in folder /scripts of the image, which is empty"
    lacking = {"terminated": {"reason": "Error", "exitCode": 1, "message": words}}
    problem = diagnose("the generator", [pod_view(of_a_script(lacking))], LATER)
    assert problem is not None
    assert (problem.reason, problem.fatal) == ("ScriptMissing", True)
    assert "load:1" in problem.message
    assert words in problem.message
    assert problem.part is Part.SCRIPT
    assert whose_fault(problem.reason, problem.part, SCRIPT) is Fault.RUN
    pulled = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
    problem = diagnose("the generator", [pod_view(of_a_script(pulled))], LATER)
    assert problem is not None
    assert problem.reason == "ImagePullFailed"
    assert "the image of the script (load:1) cannot be pulled" in problem.message
    # A name that is none is the run's; what was there once is a registry's that is away.
    assert whose_fault(problem.reason, problem.part, SCRIPT, once_well=False) is Fault.RUN
    assert whose_fault(problem.reason, problem.part, SCRIPT) is Fault.CLUSTER
    problem = diagnose("the generator", [pod_view(of_a_script(START_ERROR))], LATER)
    assert problem is not None
    assert (problem.reason, problem.part) == ("ScriptMissing", Part.SCRIPT)
    stumbled = of_a_script(START_ERROR, "carrier")
    assert diagnose("the generator", [pod_view(stumbled)], LATER) is None
    problem = diagnose("the generator", [pod_view(of_a_script(NO_PROGRAM, "carrier"))], LATER)
    assert problem is not None
    assert (problem.reason, problem.fatal) == ("ScriptMissing", True)
    assert "earlier release" in problem.message
    assert diagnose("the generator", [pod_view(of_a_script(DONE))], LATER) is None


def of_postgres(
    state: dict[str, Any],
    name: str = "sql-seed-1",
    restarts: int = 0,
    last: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a pod of Postgres, which takes a part of its SQL from an image."""
    made = of_a_script(state, name)
    made["metadata"]["labels"]["laptime.dev/component"] = "postgres"
    (one,) = made["status"]["initContainerStatuses"]
    made["status"]["initContainerStatuses"] = [
        {**one, "image": "rows:3", "restartCount": restarts, "lastState": last or {}}
    ]
    return made


def test_of_sql_in_an_image_it_is_said_which_part_it_is_and_what_the_image_lacks() -> None:
    words = "the image has no file /data/rows.sql: there is folder /data, which has a.sql"
    lacking = {"terminated": {"reason": "Error", "exitCode": 1, "message": words}}
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
    # The kubelet tries again and again, and all this time the words are the same.
    for state in (of_postgres(lacking), of_postgres(waiting, restarts=4, last=lacking)):
        problem = diagnose("Postgres", [pod_view(state)], LATER)
        assert problem is not None
        assert (problem.reason, problem.fatal) == ("SqlMissing", True)
        assert problem.message == (
            "data.postgres.seed[1] cannot be taken from its image rows:3; its last words: " + words
        )
        assert whose_fault(problem.reason, Part.TIER) is Fault.RUN
    pulled = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
    problem = diagnose("Postgres", [pod_view(of_postgres(pulled))], LATER)
    assert problem is not None
    assert (problem.reason, problem.fatal) == ("ImagePullFailed", False)
    assert "the image of data.postgres.seed[1] (rows:3) cannot be pulled: not found" in (
        problem.message
    )
    # It was there before, and the node has it no more.
    problem = diagnose("Postgres", [pod_view(of_postgres(pulled, last=DONE))], LATER)
    assert problem is not None
    assert problem.reason == "ImagePullFailed"
    problem = diagnose("Postgres", [pod_view(of_postgres(START_ERROR))], LATER)
    assert problem is not None
    assert problem.reason == "SqlMissing"


def test_of_what_copies_sql_it_is_said_that_it_is_not_postgres() -> None:
    problem = diagnose("Postgres", [pod_view(of_postgres(NO_PROGRAM, "carrier"))], LATER)
    assert problem is not None
    assert (problem.reason, problem.fatal) == ("SqlMissing", True)
    assert "the image of the generator (rows:3) has no program that copies" in problem.message
    pulled = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
    problem = diagnose("Postgres", [pod_view(of_postgres(pulled, "carrier"))], LATER)
    assert problem is not None
    assert "the image of the program that copies files of images (rows:3)" in problem.message


def test_beside_what_was_copied_the_words_of_postgres_are_not_lost() -> None:
    said = of_postgres(DONE)
    ended = {"reason": "Error", "exitCode": 3, "message": 'relation "item" does not exist'}
    postgres = {"name": "postgres", "restartCount": 1, "ready": False, "state": {"running": {}}}
    said["status"]["containerStatuses"] = [{**postgres, "lastState": {"terminated": ended}}]
    assert words_lost("Postgres", [pod_view(said)]) is None
    ended.pop("message")
    lost = words_lost("Postgres", [pod_view(said)])
    assert lost is not None
    assert "exit code 3" in lost.message


@pytest.mark.parametrize("name", ["carrier", "sql-schema-0"])
def test_what_was_copied_once_more_after_its_node_is_no_crash(name: str) -> None:
    again = of_postgres(DONE, name, restarts=2)
    assert diagnose("Postgres", [pod_view(again)], LATER) is None


# What is said of a trial by others than its server's pod.
OTHERS: list[tuple[str, Part, Load, Fault]] = [
    ("OutOfMemory", Part.GENERATOR, FIXED, Fault.GENERATOR),
    ("OutOfMemory", Part.TIER, FIXED, Fault.TIER),
    ("Crashed", Part.TIER, FIXED, Fault.TIER),
    ("Evicted", Part.TIER, FIXED, Fault.NODE),
    ("TierRestarted", Part.TIER, FIXED, Fault.TIER),
    ("TierLost", Part.TIER, FIXED, Fault.TIER),
    ("GeneratorLost", Part.GENERATOR, FIXED, Fault.GENERATOR),
    ("TargetNotReachable", Part.GENERATOR, FIXED, Fault.CLUSTER),
    ("DatabaseNotReachable", Part.GENERATOR, FIXED, Fault.CLUSTER),
    ("DatabaseNotReachable", Part.GENERATOR, SCRIPT, Fault.CLUSTER),
    ("TooManyConnections", Part.GENERATOR, FIXED, Fault.RUN),
    ("GeneratorTimedOut", Part.GENERATOR, FIXED, Fault.GENERATOR),
    ("GeneratorTimedOut", Part.GENERATOR, BOUND, Fault.SERVER),
    ("GeneratorTimedOut", Part.GENERATOR, SCRIPT, Fault.RUN),
    ("GeneratorFailed", Part.GENERATOR, FIXED, Fault.GENERATOR),
    ("GeneratorFailed", Part.GENERATOR, SCRIPT, Fault.RUN),
    ("ResultMissing", Part.GENERATOR, BOUND, Fault.GENERATOR),
    ("ResultMissing", Part.GENERATOR, SCRIPT, Fault.RUN),
    ("LogMissing", Part.GENERATOR, SCRIPT, Fault.NODE),
    ("ScriptFailed", Part.GENERATOR, SCRIPT, Fault.RUN),
    ("InvalidTrial", Part.GENERATOR, FIXED, Fault.RUN),
    ("NothingMeasured", Part.GENERATOR, FIXED, Fault.RUN),
    ("NobodyKnowsThis", Part.GENERATOR, FIXED, Fault.RUN),
]


@pytest.mark.parametrize(("reason", "part", "load", "fault"), OTHERS)
def test_who_answers_for_what_else_happened(
    reason: str, part: Part, load: Load, fault: Fault
) -> None:
    assert whose_fault(reason, part, load) is fault


@pytest.mark.parametrize(
    "reason",
    ["ImagePullFailed", "Unschedulable", "PodRefused", "ContainerConfigInvalid", "SecretMissing"],
)
def test_a_pod_that_never_could_be_made_is_what_the_run_asks_for(reason: str) -> None:
    assert whose_fault(reason, Part.SERVER, once_well=False) is Fault.RUN
    assert whose_fault(reason, Part.SERVER) is Fault.CLUSTER


def test_only_the_server_and_the_run_answer_for_what_is_not_repeated() -> None:
    assert {fault for fault in Fault if not fault.repeated} == {Fault.SERVER, Fault.RUN}
