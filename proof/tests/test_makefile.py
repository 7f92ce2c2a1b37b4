"""What the Makefile itself promises, asked of it."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def make(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run make with the project's Makefile in a folder, as if no other make ran these tests."""
    with begun(folder, *arguments, **environment) as process:
        out, error = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, error)


def begun(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Begin to run make with the project's Makefile in a folder, in a session of its own."""
    inherited = {
        name: of
        for name, of in os.environ.items()
        if not name.startswith(("MAKE", "MFLAGS")) and name not in ("ONLY", "FAILED")
    }
    return subprocess.Popen(
        ["make", f"--makefile={ROOT / 'Makefile'}", *arguments],
        cwd=folder,
        env={**inherited, "LAPTIME_CACHE": str(folder / "cache"), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=one", "-c", "user.email=one@example.com"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a generated file of each kind."""
    for name in ("crds/run.yaml", "images/k6/internal/spec/testdata/operator.json"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("as committed\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "crds", "images")
    git(tmp_path, "commit", "-qm", "all")
    return tmp_path


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("crds/run.yaml", "crds/run.yaml | 2 +-"),
        ("crds/new.yaml", "not in git: crds/new.yaml"),
        ("operator/tests/manifests/golden/new.yaml", "not in git: operator/tests/manifests/golden"),
        ("images/k6/internal/spec/testdata/operator.json", "operator.json | 2 +-"),
    ],
)
def test_a_generated_file_that_is_not_committed_is_found(
    checkout: Path, written: str, said: str
) -> None:
    # What `make generate` would write is there already.
    assert make(checkout, "verify", "MAKE=true").returncode == 0
    (checkout / written).parent.mkdir(parents=True, exist_ok=True)
    (checkout / written).write_text("written anew\n")
    done = make(checkout, "verify", "MAKE=true")
    assert done.returncode == 2
    assert said in done.stdout
    assert "commit what make generate wrote" in done.stderr


@pytest.mark.parametrize("part", ["unit-go", "unit-k6", "unit-k6-timed"])
def test_what_passed_before_is_run_again(tmp_path: Path, part: str) -> None:
    recipe = make(tmp_path, "--dry-run", part).stdout
    tests = [line for line in recipe.splitlines() if "go test" in line]
    assert tests
    assert [line for line in tests if "go test -count=1 " not in line] == []


def test_what_is_pushed_and_what_is_installed_have_one_tag(tmp_path: Path) -> None:
    """A tag that is pushed again is another image under a name that nodes have already."""
    where = ("KUBECONFIG=file", "REGISTRY=registry.example")
    asked = make(tmp_path, "--dry-run", "install", *where, "TAG=123").stdout
    assert 'push  --tag "123" "registry.example/laptime"' in asked
    assert "--set-string images.tag=123 " in asked
    asked = make(tmp_path, "--dry-run", "install", *where, TAG="ci-7").stdout
    assert "--set-string images.tag= " in asked
    assert "ci-7" not in asked


def test_an_environment_never_shortens_what_is_checked(tmp_path: Path) -> None:
    shortened = {"FAILED": "1", "CHANGED": "1", "ONLY": "lint"}
    for target, words in (("test", "test"), ("prove", "long")):
        asked = make(tmp_path, "--dry-run", target, **shortened).stdout
        assert asked.split() == ["python3", "proof/prove.py", words]
        asked = make(tmp_path, "--dry-run", target, "ONLY=lint", "FAILED=1").stdout
        assert asked.split() == ["python3", "proof/prove.py", words, "--failed", "lint"]
    asked = make(tmp_path, "--dry-run", "test", "CHANGED=1").stdout
    assert asked.split() == ["python3", "proof/prove.py", "test", "--changed"]


def test_tests_on_a_cluster_of_ones_own_are_not_three_at_once(tmp_path: Path) -> None:
    refused = make(tmp_path, "test", "KUBECONFIG=mine")
    assert refused.returncode == 2
    assert f"tests on yours: make e2e KUBECONFIG={tmp_path}/mine" in refused.stderr
    # One that the shell has is not asked for.
    asked = make(tmp_path, "--dry-run", "test", KUBECONFIG="mine").stdout
    assert asked.split() == ["python3", "proof/prove.py", "test"]


def clusters_of_their_own() -> list[str]:
    """Return the targets whose recipes name a cluster that only they have."""
    found: set[str] = set()
    targets: list[str] = []
    for line in (ROOT / "Makefile").read_text().splitlines():
        if rule := re.match(r"([a-z][-a-z0-9 ]*):(?!=)", line):
            targets = rule[1].split()
        elif re.match(r"\t(export )?LAPTIME_(CLUSTER_NAME|TEST_CLUSTER)=", line):
            found.update(targets)
    return sorted(found)


@pytest.mark.parametrize(
    "target", [*clusters_of_their_own(), "prove", "takeovers", "frozen-kubelet"]
)
def test_what_is_done_to_a_cluster_of_its_own_is_not_done_to_yours(
    tmp_path: Path, target: str
) -> None:
    refused = make(tmp_path, "--dry-run", target, "KUBECONFIG=mine")
    assert refused.returncode == 2
    assert f"make {target} starts clusters of its own" in refused.stderr
    assert f"tests on yours: make e2e KUBECONFIG={tmp_path}/mine" in refused.stderr
    assert not refused.stdout


def test_there_are_targets_with_a_cluster_of_their_own() -> None:
    named = {"placements", "namespaces", "lost-nodes", "own-cpus", "ipv6", "e2e-runs-b", "nodes"}
    named |= {"bench-nodes", "bench-lanes", "bench-scale", "chaos", "own-cluster"}
    assert named <= {*clusters_of_their_own()}


def test_tests_on_a_cluster_of_ones_own_leave_the_release_alone(tmp_path: Path) -> None:
    asked = make(tmp_path, "--dry-run", "e2e", "KUBECONFIG=mine", "VENV_STAMP=made").stdout
    assert "-p shards --shared-cluster" in asked
    asked = make(tmp_path, "--dry-run", "e2e-api", "VENV_STAMP=made").stdout
    assert "-p shards" in asked
    assert "--shared-cluster" not in asked
    (tmp_path / "test_uninstall.py").write_text("def test_goes() -> None:\n    raise SystemError\n")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/test_kept.py").write_text("def test_stays() -> None:\n    pass\n")
    words = ("-m", "pytest", "-p", "shards", "--shared-cluster", f"--rootdir={tmp_path}")
    ran = subprocess.run(
        [sys.executable, *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "e2e")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "takes it away: test_uninstall.py::test_goes\n" in ran.stdout
    assert "1 passed, 1 deselected" in ran.stdout


def program(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


@pytest.mark.parametrize("name", ["PYTEST_ADDOPTS", "LAPTIME_SERVER_BINARIES"])
def test_no_word_of_the_shell_reaches_a_test(tmp_path: Path, name: str) -> None:
    (tmp_path / "cluster").mkdir()
    (tmp_path / "made").touch()
    program(tmp_path / ".venv/bin/python", "env >../seen")
    program(tmp_path / "bin/python3", "true")
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    done = make(tmp_path, "e2e-cluster", "VENV_STAMP=made", PATH=path, **{name: "-k nothing"})
    assert done.returncode == 0, done.stderr
    seen = (tmp_path / "seen").read_text()
    assert "LAPTIME_CLUSTER_TESTS=1" in seen
    assert f"\n{name}=" not in seen


@pytest.mark.parametrize("target", ["e2e-up-a", "verify", "placements", "e2e"])
def test_a_dry_run_does_nothing(tmp_path: Path, target: str) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("python3", "git"):
        program(tmp_path / f"bin/{name}", "touch done")
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    done = make(tmp_path, "--dry-run", target, "E2E=runs", "VENV_STAMP=bin", PATH=path)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "done").exists()


@pytest.mark.parametrize(
    ("gofmt", "said", "code"),
    [("true", "", 0), ("echo x.go", "x.go\n", 2), (None, "", 2), ("exit 3", "", 2)],
)
def test_go_that_is_not_formatted_or_not_looked_at_does_not_pass(
    tmp_path: Path, gofmt: str | None, said: str, code: int
) -> None:
    """Where Go is a link of `go` alone, no gofmt is in the way of programs."""
    (tmp_path / "module").mkdir()
    program(tmp_path / "bin/go", f"[ $1 = vet ] || echo {tmp_path}/root")
    if gofmt is not None:
        program(tmp_path / "root/bin/gofmt", gofmt)
    path = f"{tmp_path}/bin:/usr/bin:/bin"
    done = make(tmp_path, "lint-go", "GO_MODULES=module", "SAY=say() { :; };", PATH=path)
    assert (done.stdout, done.returncode) == (said, code), done.stderr


@pytest.mark.parametrize(
    ("target", "name"), [("e2e-cluster", "laptime-test"), ("nodes", "laptime-nodes")]
)
@pytest.mark.parametrize("ends", [True, False])
def test_the_cluster_of_tests_is_taken_down_however_they_end(
    tmp_path: Path, target: str, name: str, ends: bool
) -> None:
    (tmp_path / "cluster").mkdir()
    (tmp_path / "made").touch()
    said = 'if [ "$1" = cluster/cluster.py ]; then echo "$LAPTIME_CLUSTER_NAME $2" >>down; fi'
    program(tmp_path / "bin/python3", said)
    # As pytest does, which puts back what it has changed.
    test = "trap 'touch ../restored; exit 2' INT; touch ../begun; while sleep 0.1; do :; done"
    program(tmp_path / ".venv/bin/python", "exit 3" if ends else test)
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    with begun(tmp_path, target, "VENV_STAMP=made", PATH=path) as process:
        if not ends:
            while not (tmp_path / "begun").exists():
                assert process.poll() is None
                time.sleep(0.02)
            os.killpg(process.pid, signal.SIGINT)
        assert process.wait(30) != 0
    assert (tmp_path / "down").read_text() == f"{name} down\n"
    assert (tmp_path / "restored").exists() is not ends
