"""What the Makefile itself promises, asked of it."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def make(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run make with the project's Makefile in a folder, as if no other make ran these tests."""
    inherited = {
        name: of
        for name, of in os.environ.items()
        if not name.startswith(("MAKE", "MFLAGS")) and name not in ("ONLY", "FAILED")
    }
    return subprocess.run(
        ["make", f"--makefile={ROOT / 'Makefile'}", *arguments],
        cwd=folder,
        env={**inherited, "LAPTIME_CACHE": str(folder / "cache"), **environment},
        capture_output=True,
        text=True,
        check=False,
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
