"""The parts of the project's proof. Each is a target of the Makefile of the same name.

What clusters are made of comes first, then the unit tests of Python, and then the clusters; what
compiles has the time that they leave: no test that waits for something to happen in time runs
beside a compiler that is as good as it.
"""

from __future__ import annotations

from laptime_proof.parts import Part

JOBS = 2
"""Places: so many compilers or unit tests at a time. Three took no less time on two cores, and
tests ran into their time limits. What mostly waits takes less than one."""

_WAITS = 0.6
"""End-to-end tests on a cluster of their own: a third of two cores is busy with them, at most."""
_LEFT = JOBS - 3 * _WAITS
"""What three of these leave: else what is shorter than they are would come after them."""

_QUIETER = ("unit-operator",)
"""Beside its thousands what asks whether something happens in time would wait in vain."""

_FIRST = ("verify", "unit-python", "unit-benches", "unit-k6")

_BUILT = ("build-node", "build-helm", "build-chart-images", "build-test-images")

_VENV = (
    "operator/requirements-dev.lock",
    *(f"{folder}/requirements.lock" for folder in ("agent", "dashboards")),
    *(f"{folder}/pyproject.toml" for folder in ("operator", "agent", "dashboards")),
)
READ_BY_ALL = ("Makefile", "VERSION", *_VENV)
"""What each part depends on, beside what it names itself."""
_GO = tuple(f":(top,glob)**/{name}" for name in ("*.go", "go.mod", "go.sum"))
_RUST = ("images/servers/rust", "bench/servers/rust")
_OF_THE_PRODUCT = (":(top)", ":(top,exclude)bench", ":(top,exclude)proof")
"""All that is not of benches and of this alone: the operator's tests compare documents, images and
the chart with it as well."""
_ON_CLUSTERS = (
    *_OF_THE_PRODUCT,
    *(f":(top,exclude){folder}/tests" for folder in ("operator", "agent", "dashboards", "cluster")),
    ":(top,exclude)README.md",
)

# Of parts that could begin, the one that stands first does: the longest come early.
TEST = (
    Part("venv", check=False),
    Part("build-node", check=False),
    Part("build-helm", check=False, after=("build-node",)),
    Part("build-chart-images", check=False),
    Part("build-test-images", check=False, needs=("build-chart-images",)),
    # It writes files anew that those read which come after it.
    Part("verify", needs=("venv",)),
    Part("lint-chart", needs=("build-helm",), after=("verify",), reads=("charts", "cluster")),
    Part("unit-python", needs=("venv",), after=("verify",), place=0.8),
    Part("unit-benches", needs=("venv",), after=("verify",), place=0.8),
    Part(
        "unit-operator",
        needs=("venv",),
        after=_FIRST,
        reads=_OF_THE_PRODUCT,
    ),
    # It mostly waits for loads to be over.
    Part("unit-k6", after=("verify",), place=JOBS - 2 * 0.8, reads=("images/k6",)),
    # It looks at the whole machine for what a cluster left there: no other cluster, no container
    # and no network namespace may come or go meanwhile. Half of it is waiting, so that the
    # operator's tests, which have none of them, run beside it. Those of them that ask for times are
    # a part of their own: beside either of the two they would wait in vain.
    Part(
        "e2e-cluster",
        needs=("venv", "build-node", "build-helm"),
        after=(*_BUILT, *_FIRST),
        reads=("cluster", "images", "charts", "pytest.ini"),
    ),
    # They come up while the last of the operator's tests go on, which leave them room; tests on
    # them wait until those are over.
    Part(
        "e2e-up-a",
        needs=("venv", "build-node", "build-helm", "build-chart-images", "build-test-images"),
        after=("e2e-cluster",),
        check=False,
    ),
    Part("e2e-up-b", needs=("e2e-up-a",), check=False, place=0.8),
    Part("e2e-up-c", needs=("e2e-up-b",), check=False, place=0.8),
    Part("e2e-runs-a", needs=("e2e-up-a",), after=_QUIETER, place=_WAITS, reads=_ON_CLUSTERS),
    Part("e2e-runs-b", needs=("e2e-up-b",), after=_QUIETER, place=_WAITS, reads=_ON_CLUSTERS),
    Part("e2e-runs-c", needs=("e2e-up-c",), after=_QUIETER, place=_WAITS, reads=_ON_CLUSTERS),
    Part(
        "e2e-servers",
        needs=("venv", "build-test-images"),
        after=("e2e-up-c", *_QUIETER),
        place=_LEFT,
        reads=("images", ".dockerignore", "cluster", "operator/src"),
    ),
    Part(
        "e2e-api",
        needs=("e2e-up-a",),
        after=("e2e-up-c", *_QUIETER),
        place=_LEFT,
        reads=_ON_CLUSTERS,
    ),
    Part("e2e-down-b", needs=("e2e-up-b",), after=("e2e-runs-b",), check=False, always=True),
    Part("e2e-down-c", needs=("e2e-up-c",), after=("e2e-runs-c",), check=False, always=True),
    Part(
        "lint-python",
        needs=("venv",),
        after=("verify", "e2e-cluster"),
        behind=True,
        reads=(":(top,glob)**/*.py", ":(top,glob)**/*.toml"),
    ),
    Part("lint-rust", behind=True, reads=_RUST),
    Part("lint-go", behind=True, reads=_GO),
    Part(
        "lint-dashboards",
        after=("verify",),
        behind=True,
        reads=("dashboards/linter", "dashboards/lint.yaml", "charts/laptime/files/dashboards"),
    ),
    # Compiling waits for nobody; the tests ask how long something takes.
    Part("build-unit-rust", after=("lint-rust",), check=False, behind=True),
    Part("build-unit-go", after=("lint-go",), check=False, behind=True),
    Part("unit-rust", needs=("build-unit-rust",), after=("verify",), place=_LEFT, reads=_RUST),
    Part("unit-go", needs=("build-unit-go",), after=("verify",), place=_LEFT, reads=("images",)),
    Part(
        "e2e-figures",
        needs=("e2e-up-a",),
        after=("e2e-runs-a", "e2e-api", "e2e-down-b", "e2e-down-c", "e2e-cluster", "e2e-servers"),
        quiet=True,
        reads=_ON_CLUSTERS,
    ),
    Part(
        "e2e-down-a",
        needs=("e2e-up-a",),
        after=("e2e-runs-a", "e2e-api", "e2e-figures"),
        check=False,
        always=True,
    ),
    Part("unit-k6-timed", after=("e2e-figures", "e2e-down-a"), quiet=True, reads=("images/k6",)),
    Part(
        "unit-operator-timed",
        needs=("venv",),
        after=("unit-k6-timed",),
        quiet=True,
        reads=_OF_THE_PRODUCT,
    ),
)
"""What proves a change."""

LONG = (
    # It takes a second, but promtool is compiled for minutes where it never was: no change waits.
    Part("test-alerts", reads=("charts/alerts", "charts/laptime/files/alerts.yaml")),
    Part("fuzz"),
    # It says after how many seconds another operator is at work.
    Part("takeovers", quiet=True),
    # These are on the one cluster that has the common name, and each installs the chart.
    Part("frozen-kubelet", after=("fuzz",)),
    Part("bad-scripts", after=("frozen-kubelet",)),
    Part("wrong-scenarios", after=("bad-scripts",)),
    Part("namespaces"),
    Part("nodes"),
    Part("placements"),
    Part("lost-nodes"),
    Part("own-cpus"),
    Part("ipv6"),
    Part("own-cluster"),
    Part("arm64"),
    # It fills the node itself, and quiet trials are to be quiet.
    Part("seconds", quiet=True),
    Part("bench-overhead", quiet=True),
    Part("bench-generator", quiet=True),
    Part("bench-truth", quiet=True),
    Part("k6-examples"),
    Part("bench-agent", quiet=True),
    # What it is about is a CPU that is not always as fast.
    Part("bench-speed"),
    Part("bench-precision", quiet=True),
    Part("bench-statistics"),
    Part("bench-search"),
    Part("bench-looks"),
    Part("bench-length"),
    Part("bench-cause", quiet=True),
    Part("bench-cause-fixed", quiet=True),
    Part("bench-servers", quiet=True),
    Part("bench-alike", quiet=True),
    Part("bench-detectable", quiet=True),
    Part("bench-deciding", quiet=True),
    Part("bench-duet", quiet=True),
    Part("bench-nodes", quiet=True),
    Part("bench-lanes", quiet=True),
    Part("bench-scale", quiet=True),
    Part("chaos", quiet=True),
    Part("examples-quick", quiet=True),
    Part("examples", quiet=True),
)
"""What takes hours and is not needed for a change to land."""
