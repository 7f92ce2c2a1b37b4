"""Go programs that no package registry has as binaries: built once, kept by version and source."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from laptime_cluster import locks, toolchain
from laptime_cluster.commands import ClusterError
from laptime_cluster.layout import (
    BIN,
    COREDNS_BIN,
    COREDNS_VERSION,
    HELM_BIN,
    HELM_VERSION,
    KUBERNETES_BIN,
    KUBERNETES_VERSION,
    SOURCE,
)
from laptime_cluster.progress import say, ticking

_STAMP = ".built-from"
_PARTIAL = ".building-"


@dataclass(frozen=True)
class Build:
    """One Go module and the programs to build from it."""

    name: str
    version: str
    module: Path
    packages: tuple[str, ...]
    programs: tuple[str, ...]
    output: Path
    linker_variables: tuple[str, ...] = ()

    def linker_flags(self) -> str:
        """No symbol tables (a third of the size), and the version that each program reports."""
        return " ".join(["-s", "-w", *(f"-X {variable}" for variable in self.linker_variables)])

    def key(self) -> str:
        """Changes when sources, locked dependencies or flags change."""
        digest = hashlib.sha256(repr((self.packages, self.linker_flags())).encode())
        for path in sorted(self.module.iterdir()):
            if path.suffix == ".go" or path.name in ("go.mod", "go.sum"):
                digest.update(path.name.encode() + b"\0" + path.read_bytes())
        return digest.hexdigest()

    def is_done(self) -> bool:
        """Whether all programs are there and were built from these very sources."""
        stamp = self.output / _STAMP
        return (
            stamp.is_file()
            and stamp.read_text(encoding="utf-8") == self.key()
            and all((self.output / program).is_file() for program in self.programs)
        )


def _kubernetes() -> Build:
    major, minor = KUBERNETES_VERSION.removeprefix("v").split(".")[:2]
    variable = "k8s.io/component-base/version"
    programs = (
        "kube-apiserver",
        "kube-controller-manager",
        "kube-proxy",
        "kube-scheduler",
        "kubectl",
        "kubelet",
    )
    return Build(
        name="kubernetes",
        version=KUBERNETES_VERSION,
        module=SOURCE / "go" / "kubernetes",
        packages=tuple(f"k8s.io/kubernetes/cmd/{program}" for program in programs),
        programs=programs,
        output=KUBERNETES_BIN,
        linker_variables=(
            f"{variable}.gitVersion={KUBERNETES_VERSION}",
            f"{variable}.gitMajor={major}",
            f"{variable}.gitMinor={minor}",
        ),
    )


KUBERNETES = _kubernetes()
COREDNS = Build(
    name="coredns",
    version=COREDNS_VERSION,
    module=SOURCE / "go" / "coredns",
    packages=(".",),
    programs=("coredns",),
    output=COREDNS_BIN,
)
HELM = Build(
    name="helm",
    version=HELM_VERSION,
    module=SOURCE / "go" / "helm",
    packages=("helm.sh/helm/v4/cmd/helm",),
    programs=("helm",),
    output=HELM_BIN,
    linker_variables=(f"helm.sh/helm/v4/internal/version.version={HELM_VERSION}",),
)
NODE_BUILDS = (KUBERNETES, COREDNS)


def ensure(build: Build) -> None:
    """Build what is not in the cache yet. Raises ClusterError with the compiler's last words."""
    if build.is_done():
        return
    build.output.mkdir(parents=True, exist_ok=True)
    with locks.exclusively(build.output, f"the build of {build.name}"):
        # Somebody else may have built it while this process waited.
        if not build.is_done():
            for partial in build.output.glob(f"{_PARTIAL}*"):
                shutil.rmtree(partial)
            _compile(build)


def _compile(build: Build) -> None:
    go = toolchain.go()
    say(f"building {build.name} {build.version} (once; later starts find it in {BIN})")
    compiled = 0
    last_words: list[str] = []
    environment = {**os.environ, "CGO_ENABLED": "0"}
    # Built beside the final place and moved when complete: a build that is killed leaves nothing
    # behind that looks finished, and a running cluster keeps the files it has open.
    with tempfile.TemporaryDirectory(dir=build.output, prefix=_PARTIAL) as partial:
        command = [str(go), "build", "-v", "-buildvcs=false", "-trimpath", "-o", f"{partial}/"]
        command += ["-ldflags", build.linker_flags(), *build.packages]
        with (
            subprocess.Popen(
                command,
                cwd=build.module,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            ) as process,
            ticking(lambda: f"building {build.name}: {compiled} packages compiled"),
        ):
            assert process.stderr is not None
            for line in process.stderr:
                last_words = [*last_words[-19:], line.rstrip()]
                if not line.startswith(("go:", "#")):
                    compiled += 1
            code = process.wait()
        if code != 0:
            raise ClusterError(f"building {build.name} failed:\n" + "\n".join(last_words))
        # Killed in between, this leaves what is of no version, rather than what seems to be of one.
        (build.output / _STAMP).unlink(missing_ok=True)
        for program in build.programs:
            (Path(partial) / program).replace(build.output / program)
    (build.output / _STAMP).write_text(build.key(), encoding="utf-8")
    say(f"built {build.name} {build.version}")


def ensure_helm() -> Path:
    """Build Helm when it is missing and return its path, which is that of this version alone."""
    return _tool("helm", HELM)


def ensure_kubectl() -> Path:
    """Build Kubernetes when it is missing and return kubectl's path, as `ensure_helm` does."""
    return _tool("kubectl", KUBERNETES)


def _tool(program: str, build: Build) -> Path:
    ensure(build)
    # For people: whoever has another version of it turns the link.
    link, target = BIN / program, Path(build.output.name) / program
    if not (link.is_symlink() and link.readlink() == target):
        fresh = BIN / f".{program}-{os.getpid()}"
        fresh.symlink_to(target)
        fresh.replace(link)
    return build.output / program
