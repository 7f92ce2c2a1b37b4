"""A new cluster has the images that the one before had loaded, whatever became of what was kept."""

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from laptime_cluster import pause
from laptime_cluster.layout import CACHE

pytestmark = [
    pytest.mark.starts_a_cluster,
    pytest.mark.skipif(
        os.environ.get("LAPTIME_CLUSTER_TESTS") != "1",
        reason="starts and stops a cluster; set LAPTIME_CLUSTER_TESTS=1",
    ),
]

NAME = "laptime-test"
PROGRAM = Path(__file__).resolve().parent.parent / "cluster.py"


class Machine:
    """A cluster with a cache of its own, in which the binaries of the usual one are."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        (cache / "images").mkdir(parents=True)
        (cache / "bin").symlink_to(CACHE / "bin")
        self.make_image("first")

    def make_image(self, variant: str) -> None:
        """Write an archive `tiny`, which is the pause image under another name."""
        with (
            tarfile.open(pause.archive()) as old,
            tarfile.open(self.cache / "images" / "tiny.tar", "w") as new,
        ):
            for member in old.getmembers():
                content = old.extractfile(member)
                assert content is not None
                data = content.read()
                if member.name == "manifest.json":
                    (manifest,) = json.loads(data)
                    data = json.dumps([{**manifest, "RepoTags": ["laptime/tiny:1"]}]).encode()
                member.size = len(data)
                new.addfile(member, io.BytesIO(data))
        (self.cache / "images" / "tiny.digest").write_text(variant)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "LAPTIME_CLUSTER_NAME": NAME, "LAPTIME_CACHE": str(self.cache)}

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, str(PROGRAM), *arguments],
            env=self.environment,
            text=True,
            capture_output=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run_pod(self) -> None:
        """Have a pod of the image; pulling it would fail."""
        pod = json.dumps({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "tiny"},
            "spec": {"containers": [{"name": "tiny", "image": "docker.io/laptime/tiny:1"}]},
        })  # fmt: skip
        kubectl = [
            self("path", "kubectl").split()[-1],
            "--kubeconfig",
            f"/var/lib/{NAME}/admin.kubeconfig",
        ]
        subprocess.run([*kubectl, "apply", "-f", "-"], input=pod, text=True, check=True)
        subprocess.run(
            [*kubectl, "wait", "--for=condition=Ready", "pod/tiny", "--timeout=120s"], check=True
        )


# What ends this shell alone does not end the one that it waits for.
LONG_COPY = """#!/bin/sh
for folder; do :; done
touch {began}
sh -c 'i=0; while [ $i -lt 50000 ]; do i=$((i+1)); mkdir -p "$0/$i/in/it"; done' "$folder"
"""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path / "cache")
    made("down")
    yield made
    made("down")


def test_the_next_cluster_has_what_the_last_one_loaded(machine: Machine) -> None:
    machine("up")
    assert "loaded tiny" in machine("load", "tiny")
    machine("down")

    assert "loading docker.io/laptime/tiny:1" in machine("up")
    assert "up to date" in machine("load", "tiny")
    machine.run_pod()
    machine("down")

    machine.make_image("second")
    assert "loading docker.io/laptime/tiny:1" in machine("up")
    assert "up to date" in machine("load", "tiny")
    machine("down")

    # A part of what was kept is lost: the cluster loads it itself.
    shutil.rmtree(machine.cache / "containerd" / "root" / "io.containerd.metadata.v1.bolt")
    assert "loading docker.io/laptime/tiny:1" not in machine("up")
    assert "loaded tiny" in machine("load", "tiny")
    machine.run_pod()


def test_what_still_copies_when_up_was_killed_is_in_nobodys_way(
    machine: Machine, tmp_path: Path
) -> None:
    (machine.cache / "containerd-images.json").write_text('{"tiny": ""}')
    began = tmp_path / "began"
    copy = tmp_path / "bin" / "cp"
    copy.parent.mkdir()
    copy.write_text(LONG_COPY.format(began=began))
    copy.chmod(0o755)
    environment = {**machine.environment, "PATH": f"{copy.parent}:{os.environ['PATH']}"}
    with subprocess.Popen([sys.executable, str(PROGRAM), "up"], env=environment) as up:
        while not began.exists():
            assert up.poll() is None, "up ended before it copied"
            time.sleep(0.01)
        time.sleep(0.2)
        up.kill()

    machine("down")

    assert not Path("/var/lib", NAME).exists()
