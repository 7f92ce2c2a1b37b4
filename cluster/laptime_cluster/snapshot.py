"""What a cluster could leave behind on a machine, to compare before and after."""

import contextlib
import json
import os
import stat
from pathlib import Path

from laptime_cluster import cgroups
from laptime_cluster.commands import run

# Where a node keeps files, ours and the places that its daemons have fixed.
_FOLDERS = (
    *("/run", "/run/netns", "/var/lib", "/var/log", "/var/lib/cni", "/var/lib/kubelet"),
    *("/run/containerd", "/var/log/pods", "/var/log/containers", "/etc/cni", "/etc/kubernetes"),
    *("/etc/systemd/system", "/opt/cni", "/usr/libexec/kubernetes", "/dev/shm"),
)
# Of the whole machine: those of the network are of a namespace each.
_SETTINGS = ("fs", "kernel", "vm")
_SET_BY_THE_KERNEL = ("kernel.ns_last_pid", "kernel.perf_event_max_sample_rate")
_PROGRAMS = ("kube", "etcd", "containerd", "coredns", "pause", "runc")


def take() -> dict[str, list[str]]:
    """What there is of each kind, such as processes, mounts, settings of the kernel and files."""
    return {
        "processes": _processes(),
        "mounts": _mounts(),
        "namespaces": _namespaces(),
        "links": _links(),
        "addresses": run(["ip", "-brief", "address"]).splitlines(),
        "routes": run(["ip", "route", "show", "table", "all"]).splitlines(),
        "nftables": run(["nft", "list", "ruleset"], check=False).splitlines(),
        "cgroups": _cgroups(),
        "settings": _settings(),
        "files": _files(),
    }


def _processes() -> list[str]:
    """Programs a node is made of, zombies included, and whatever runs in our control groups."""
    ours = cgroups.process_ids()
    found = []
    for process_id in _process_ids():
        try:
            name = Path("/proc", str(process_id), "comm").read_text(encoding="utf-8").strip()
        except OSError:
            continue
        if name.startswith(_PROGRAMS) or process_id in ours:
            found.append(name)
    return sorted(found)


def _process_ids() -> set[int]:
    """All but those of clusters with another name, which come and go on their own."""
    every = {int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    return every - cgroups.of_other_clusters()


def _mounts() -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return sorted(f"{line.split()[4]} {line.split(' - ')[1].split()[0]}" for line in lines)


def _namespaces() -> list[str]:
    """Namespaces that some process is in or that have a name, by kind and number."""
    found = {f"named {path.name}" for path in Path("/run/netns").glob("*")}
    for process_id in _process_ids():
        for kind in ("net", "mnt"):
            try:
                found.add(str(Path(f"/proc/{process_id}/ns/{kind}").readlink()))
            except OSError:
                continue
    return sorted(found)


def _links() -> list[str]:
    return sorted(link["ifname"] for link in json.loads(run(["ip", "-json", "link"])))


def _cgroups() -> list[str]:
    """Groups with a name of a node, in every hierarchy."""
    found = []
    for hierarchy in cgroups.hierarchies():
        for entry in sorted(hierarchy.iterdir()):
            if entry.is_dir():
                found.append(str(entry))
    return found


def _settings() -> list[str]:
    """What can be set of the kernel, as sysctl writes it."""
    found = []
    for area in _SETTINGS:
        for folder, below, files in os.walk(f"/proc/sys/{area}"):
            # Such as the programs that emulators are registered for.
            below[:] = [one for one in below if not os.path.ismount(Path(folder, one))]
            for path in (Path(folder, name) for name in files):
                key = ".".join(path.parts[3:])
                mode = path.stat().st_mode
                is_kept = mode & stat.S_IRUSR and mode & stat.S_IWUSR
                if is_kept and key not in _SET_BY_THE_KERNEL:
                    with contextlib.suppress(OSError):
                        found.append(f"{key} = {path.read_text(encoding='utf-8').strip()}")
    return sorted(found)


def _files() -> list[str]:
    """What is in the folders, but for semaphores of Python's process pools: no cluster has any."""
    found = []
    for folder in _FOLDERS:
        if Path(folder).is_dir():
            entries = (str(entry) for entry in Path(folder).iterdir())
            found += [one for one in entries if not one.startswith("/dev/shm/sem.mp-")]
    return sorted(found)
