"""Which end-to-end tests run beside which: a plugin of pytest with the option `--shard`.

One run at a time is measured in a cluster, so three clusters take a third of the time: tests mostly
wait. What asks the API server and Helm alone runs beside the runs. What reads figures runs alone on
the machine. A test that is named nowhere here belongs to the first third, so none can be forgotten.
"""

from __future__ import annotations

import pytest

FIRST = "a"
SHARDS = {
    "api": (
        "test_chart_dashboards.py",
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


def shard_of(node_id: str) -> str:
    """Return the shard of a test; a test that is named itself goes before its file."""
    for exactly in (True, False):
        for shard, names in SHARDS.items():
            for name in names:
                if ("::" in name) is exactly and (
                    node_id == name or node_id.startswith((f"{name}::", f"{name}["))
                ):
                    return shard
    return FIRST


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--shard`."""
    parser.addoption("--shard", choices=tuple(SHARDS), help="only the tests of this shard")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what belongs to another shard.

    Raises:
        pytest.UsageError: a shard names a test that does not exist.
    """
    shard = config.getoption("--shard")
    if shard is None:
        return
    for name in (name for names in SHARDS.values() for name in names):
        if not any(
            item.nodeid == name or item.nodeid.startswith((f"{name}::", f"{name}["))
            for item in items
        ):
            raise pytest.UsageError(f"e2e/shards.py names {name}, which is no test")
    chosen = [item for item in items if shard_of(item.nodeid) == shard]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen
