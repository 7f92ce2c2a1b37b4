"""Which end-to-end tests run beside which, and which not at all: a plugin of pytest.

One run at a time is measured in a cluster, so three clusters take a third of the time: tests mostly
wait. What asks the API server and Helm alone runs beside the runs. What reads figures runs alone on
the machine. A test that is named nowhere here belongs to the first third, so none can be forgotten.
Another option, `--shared-cluster`, leaves out what nobody does to a cluster that others use.
"""

from __future__ import annotations

import pytest

FIRST = "a"
SHARDS = {
    "api": (
        "test_chart_dashboards.py",
        "test_chart_prometheus.py",
        "test_chart_watching.py",
        "test_resource.py",
        "test_scenario_schema.py",
        "test_schema.py",
    ),
    FIRST: (
        # They only say that figures are missing.
        "runs/test_watched_run.py::test_a_watcher_that_goes_in_mid_trial_leaves_a_figure_that_says_so",
    ),
    # What takes the operator away or upgrades it is together, since nothing else can run meanwhile.
    "b": (
        # It takes Prometheus and the operator away.
        "runs/test_dashboards.py::test_of_runs_that_failed_and_while_prometheus_is_away",
        "runs/test_deletion.py",
        "runs/test_duet.py",
        "runs/test_frozen_kubelet.py",
        "runs/test_seconds.py::test_every_second_of_every_trial_is_in_prometheus",
        "runs/test_services.py",
        "runs/test_side_services.py",
        "runs/test_switches.py",
        "runs/test_two_operators.py",
        "runs/test_upgrade.py",
        "runs/test_verify_only.py",
        "test_uninstall.py",
        "test_watching.py::test_killing_prometheus_makes_the_figures_incomplete",
    ),
    # So that all three take as long.
    "c": (
        "runs/test_broken_runs.py",
        # It only says that there is no room.
        "runs/test_explain.py::test_more_cpu_than_the_node_has_is_said_in_the_kubelets_words",
        "runs/test_generators.py",
        "runs/test_injected.py",
        "runs/test_own_images.py",
        "runs/test_own_scenario.py",
        "runs/test_scripts.py",
    ),
    # Minutes each; parts of `make prove`: frozen-kubelet, bad-scripts, wrong-scenarios, seconds,
    # namespaces.
    "long": (
        "runs/test_bad_scripts.py",
        "runs/test_kinds_of_namespaces.py",
        "runs/test_wrong_scenarios.py",
        "runs/test_seconds.py::test_of_a_hundred_trials_none_is_off",
        "runs/test_frozen_kubelet.py::test_a_kubelet_that_stands_still_costs_no_server_a_trial[measuring]",
        "runs/test_frozen_kubelet.py::test_a_kubelet_that_stands_still_costs_no_server_a_trial[verifying]",
    ),
    # On three nodes, which they label and taint: make placements.
    "placements": ("runs/test_placements.py",),
    # On four nodes, which they take away: make lost-nodes.
    "lost-nodes": ("runs/test_lost_nodes.py",),
    # On a node whose kubelet gives out CPUs: make own-cpus.
    "own-cpus": ("runs/test_own_cpus.py",),
    "figures": (
        "test_watching.py",
        # It fills the machine, and kills the operator.
        "runs/test_seconds.py",
        # Whether a gain is confirmed or undecided is the machine's to say as well.
        "runs/test_explain.py",
        # A profiler that gets no CPU finds no process to look at.
        "runs/test_watched_run.py",
        "runs/test_complete_run.py::test_a_run_measures_compares_and_leaves_only_its_results",
    ),
}

ALONE = (
    "runs/test_dashboards.py::test_of_runs_that_failed_and_while_prometheus_is_away",
    "runs/test_deletion.py",
    "runs/test_frozen_kubelet.py",
    "runs/test_kinds_of_namespaces.py::test_where_everything_is_denied_the_chart_is_well",
    "runs/test_kinds_of_namespaces.py::test_a_run_is_measured_where_everything_is_denied",
    "runs/test_kinds_of_namespaces.py::test_the_chart_runs_as_users_that_the_cluster_chooses",
    "runs/test_kinds_of_namespaces.py::test_a_run_is_measured_as_users_that_the_cluster_chooses",
    "runs/test_kinds_of_namespaces.py::test_a_pod_that_says_its_user_is_refused_there",
    "runs/test_operator_killed.py",
    "runs/test_seconds.py::test_also_of_several_generators_on_a_full_node_with_an_operator_that_is_killed",
    "runs/test_switches.py",
    "runs/test_two_operators.py",
    "runs/test_upgrade.py",
    "runs/test_watched_run.py::test_a_watcher_that_goes_in_mid_trial_leaves_a_figure_that_says_so",
    "test_uninstall.py",
    "test_watching.py::test_killing_prometheus_makes_the_figures_incomplete",
    "test_watching.py::test_killing_the_agent_leaves_figures_that_are_marked_or_right",
)
"""They change the release or its namespace, remove it, take its pods away, or stop what is on a
node: with it would go what others have there, such as the volumes of Prometheus and Grafana."""
_LEFT_OUT = pytest.StashKey[list[str]]()


def is_named(node_id: str, name: str) -> bool:
    """Whether a name is that of a test, of its file, or of all cases of it."""
    return node_id == name or node_id.startswith((f"{name}::", f"{name}["))


def shard_of(node_id: str) -> str:
    """Return the shard of a test; a test that is named itself goes before its file."""
    for exactly in (True, False):
        for shard, names in SHARDS.items():
            for name in names:
                if ("::" in name) is exactly and is_named(node_id, name):
                    return shard
    return FIRST


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--shard` and `--shared-cluster`."""
    parser.addoption("--shard", choices=tuple(SHARDS), help="only the tests of this shard")
    parser.addoption(
        "--shared-cluster",
        action="store_true",
        help="others use the cluster: leave out what changes the release or takes it away",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what belongs to another shard, and on a shared cluster what is not for it.

    Raises:
        pytest.UsageError: a shard names a test that does not exist.
    """
    if config.getoption("--shared-cluster"):
        left_out = [one for one in items if any(is_named(one.nodeid, name) for name in ALONE)]
        config.stash[_LEFT_OUT] = [one.nodeid for one in left_out]
        _leave_out(config, items, left_out)
    shard = config.getoption("--shard")
    if shard is None:
        return
    for name in (name for names in (*SHARDS.values(), ALONE) for name in names):
        if not any(is_named(item.nodeid, name) for item in items):
            raise pytest.UsageError(f"e2e/shards.py names {name}, which is no test")
    _leave_out(config, items, [one for one in items if shard_of(one.nodeid) != shard])


def _leave_out(
    config: pytest.Config, items: list[pytest.Item], left_out: list[pytest.Item]
) -> None:
    config.hook.pytest_deselected(items=left_out)
    items[:] = [one for one in items if one not in left_out]


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Say what is left out since others use the cluster."""
    names = config.stash.get(_LEFT_OUT, [])
    said = "left out, since others use this cluster and it changes the release or takes it away"
    return [f"{said}: {name}" for name in names]
