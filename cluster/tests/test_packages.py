"""What installing packages starts and leaves on a machine: apt, dpkg and their scripts are real.

They change a copy of the machine, whose files differ from the machine's in memory only.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from laptime_cluster import cli, lifecycle, packages
from laptime_cluster.layout import SOURCE

PROGRAMS = ("apt-get", "dpkg-deb", "deb-systemd-helper", "systemctl", "update-rc.d", "unshare")
of_debian = pytest.mark.skipif(
    os.geteuid() != 0
    or not all(map(shutil.which, PROGRAMS))
    or any(map(os.path.ismount, ("/usr", "/var"))),
    reason="needs root, and a Debian with systemd on one file system",
)

# As dh_installsystemd and dh_installinit write it, but for the last three lines, which say what was
# allowed, and wait for a word in between.
AFTER_INSTALLATION = """#!/bin/sh -e
deb-systemd-helper enable NAME.service
update-rc.d NAME defaults
touch /reached-NAME
if [ -e /pause ]; then while [ ! -e /go-on ]; do sleep 0.1; done; fi
/usr/sbin/policy-rc.d NAME.service start && echo 0 >/answer-NAME || echo $? >/answer-NAME
"""
SCRIPT = """#!/bin/sh
### BEGIN INIT INFO
# Provides: NAME
# Required-Start:
# Required-Stop:
# Default-Start: 2 3 4 5
# Default-Stop: 0 1 6
### END INIT INFO
"""
UNIT = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"

# The folder with packages, where it is in the copy.
FOLDER = Path("/packages-of-laptime")
COPY = f"""
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
root="$1/root"; packages="$2"; script="$3"; shift 3
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
mkdir -p "$root{FOLDER}"
mount --bind "$packages" "$root{FOLDER}"
for folder; do mkdir -p "$root$folder"; mount --bind "$folder" "$root$folder"; done
exec chroot "$root" {sys.executable} -c "$script"
"""
BEGIN = f"""
import glob, json, os, subprocess, sys, time
from pathlib import Path
sys.path.insert(0, {str(SOURCE)!r})
from laptime_cluster import packages
POLICY = Path("/usr/sbin/policy-rc.d")
POLICY.unlink(missing_ok=True)
for one in ("/etc/apt/sources.list", *glob.glob("/etc/apt/sources.list.d/*")):
    Path(one).unlink(missing_ok=True)
Path("/etc/apt/sources.list").write_text("deb [trusted=yes] file:{FOLDER} ./\\n")
NEEDED = [("laptime-test-wanted", "laptime-test-wanted")]

def standing():
    names = ("there", "brought", "wanted")
    wants = Path("/etc/systemd/system/multi-user.target.wants")
    return {{
        "enabled": [one for one in names if (wants / f"laptime-test-{{one}}.service").is_symlink()],
        "linked": [one for one in names if glob.glob(f"/etc/rc3.d/S*laptime-test-{{one}}")],
        "answers": [Path(f"/answer-laptime-test-{{one}}").read_text().strip() for one in names],
        "policy": POLICY.exists(),
    }}

subprocess.run(["dpkg", "--install", "{FOLDER}/laptime-test-there.deb"], check=True, stdout=2)
"""
INSTALL = BEGIN + "packages.install_missing(NEEDED); print(json.dumps(standing()))"
CONFLICT = (
    BEGIN
    + """
try:
    packages.install_missing([("laptime-test-instead", "laptime-test-instead")])
    refused = ""
except packages.ClusterError as error:
    refused = str(error)
there = subprocess.run(["dpkg-query", "--show", "laptime-test-there"]).returncode == 0
print(json.dumps({"refused": refused, "there": there}))
"""
)
# The program is killed while apt-get runs, which goes on.
KILL = (
    BEGIN
    + """
def await_file(name):
    for _ in range(600):
        if Path(name).exists():
            return
        time.sleep(0.1)
    sys.exit(f"there is no {name}")

Path("/pause").touch()
up = subprocess.Popen([sys.executable, "-c", f'''
import sys; sys.path.insert(0, {sys.path[0]!r})
from laptime_cluster import packages
packages.install_missing({NEEDED!r})'''], stdout=2)
await_file("/reached-laptime-test-brought")
up.kill()
up.wait()
for_others = subprocess.run([POLICY, "postgresql.service", "restart"]).returncode
left = POLICY.exists()
subprocess.Popen(["sh", "-c", "sleep 1; touch /go-on"])
packages.install_missing(NEEDED)
print(json.dumps({"left": left, "for_others": for_others, **standing()}))
"""
)


def _make_package(folder: Path, name: str, *needs: str, conflicts: str = "") -> None:
    """Make a package with a service that starts with the machine."""
    tree = folder / name
    control = f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: laptime\n"
    control += f"Depends: {', '.join(needs)}\n" if needs else ""
    control += f"Conflicts: {conflicts}\n" if conflicts else ""
    control += "Description: a service\n"
    for path, text, mode in (
        ("DEBIAN/control", control, 0o644),
        ("DEBIAN/postinst", AFTER_INSTALLATION, 0o755),
        ("lib/systemd/system/NAME.service", UNIT, 0o644),
        ("etc/init.d/NAME", SCRIPT, 0o755),
        ("usr/bin/NAME", "#!/bin/sh\n", 0o755),
    ):
        file = tree / path.replace("NAME", name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("NAME", name))
        file.chmod(mode)
    archive = folder / f"{name}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", tree, archive], check=True)
    data = archive.read_bytes()
    with open(folder / "Packages", "a") as index:
        index.write(f"{control}Filename: ./{archive.name}\nSize: {len(data)}\n")
        index.write(f"SHA256: {hashlib.sha256(data).hexdigest()}\n\n")
    shutil.rmtree(tree)


@pytest.fixture
def on_a_copy(tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """Run a script on a copy of the machine, which has one of three packages; what it printed."""
    debs, machine = tmp_path / "packages", tmp_path / "machine"
    debs.mkdir()
    machine.mkdir()
    _make_package(debs, "laptime-test-there")
    _make_package(debs, "laptime-test-brought")
    _make_package(debs, "laptime-test-wanted", "laptime-test-there", "laptime-test-brought")
    _make_package(debs, "laptime-test-instead", conflicts="laptime-test-there")
    # Apt reads as a user of its own.
    debs.chmod(0o755)

    def run(script: str) -> dict[str, Any]:
        python = {Path(one).resolve() for one in (sys.prefix, sys.base_prefix)}
        folders = [str(one) for one in {SOURCE, *python} if not one.is_relative_to("/usr")]
        done = subprocess.run(
            [
                *("unshare", "--mount", "--propagation", "private", "sh", "-ec", COPY, "copy"),
                *(str(machine), str(debs), script, *folders),
            ],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found

    return run


@of_debian
def test_no_service_that_comes_with_packages_starts_now_or_with_the_machine(
    on_a_copy: Callable[[str], dict[str, Any]],
) -> None:
    assert on_a_copy(INSTALL) == {
        # Somebody's own, and its links were there before.
        "enabled": ["there"],
        "linked": ["there"],
        "answers": ["127", "101", "101"],
        "policy": False,
    }


@of_debian
def test_nothing_is_removed_for_what_is_installed(
    on_a_copy: Callable[[str], dict[str, Any]],
) -> None:
    found = on_a_copy(CONFLICT)
    # In what language apt-get says why is its own affair.
    assert "--no-remove --simulate laptime-test-instead failed with code 100" in found["refused"]
    assert found["there"]


def test_services_of_what_another_installs_meanwhile_are_left_alone(
    policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disabled: list[set[str]] = []
    installed = iter([{"base"}, {"base", "etcd-server", "libetcd:amd64", "of-another"}])
    monkeypatch.setattr(packages, "_installed", lambda: next(installed))
    monkeypatch.setattr(packages, "_disable_services", disabled.append)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    found = iter([["etcd-server"], []])
    monkeypatch.setattr(packages, "missing", lambda _: next(found))

    def run(command: list[str], **_: object) -> str:
        return "Inst libetcd (1 Debian:12)\nInst etcd-server (1 Debian:12)\nConf etcd-server\n" * (
            "--simulate" in command
        )

    monkeypatch.setattr(packages, "run", run)
    packages.install_missing()
    assert disabled == [{"etcd-server", "libetcd:amd64"}]


@of_debian
def test_killed_while_it_installs_it_forbids_no_service_of_others_and_not_for_ever(
    on_a_copy: Callable[[str], dict[str, Any]],
) -> None:
    found = on_a_copy(KILL)
    assert (found["left"], found["for_others"]) == (True, 0)
    assert found["answers"] == ["127", "101", "101"]
    assert not found["policy"]


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have the file of the policy, and dpkg's locks, somewhere else."""
    file = tmp_path / "policy-rc.d"
    monkeypatch.setattr(packages, "_POLICY", file)
    monkeypatch.setattr(packages, "_DPKG_LOCKS", (tmp_path / "lock",))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(lifecycle, "STATE", tmp_path / "state")
    monkeypatch.setattr(lifecycle, "_clean", lambda announcement: False)
    return file


@pytest.mark.parametrize(
    "text",
    [
        packages._POLICY_TEXT,
        "#!/bin/sh\n# Of the embedded cluster of Laptime while it installs packages.\nexit 101\n",
    ],
    ids=["now", "earlier"],
)
def test_down_removes_a_policy_that_was_left(policy: Path, text: str) -> None:
    policy.write_text(text)
    assert cli.main(["down"]) == 0
    assert not policy.exists()


def test_down_leaves_a_policy_of_someone_else(policy: Path) -> None:
    policy.write_text("#!/bin/sh\nexit 101\n")
    assert cli.main(["down"]) == 0
    assert policy.exists()


def test_whatever_make_installs_for_a_cluster_is_installed_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed: list[object] = []
    monkeypatch.setattr(packages, "install_missing", installed.append)
    assert cli.main(["packages", "docker-registry"]) == 0
    assert installed == [[("docker-registry", "docker-registry")]]
    makefile = (SOURCE.parent / "Makefile").read_text()
    # uv needs pip, which brings no service.
    installing = re.findall(r"apt-get install .*?(\S+) >/dev/null", makefile)
    assert set(installing) == {"python3-pip"}
