"""Platforms that images are built for: the machine's own, and others with an emulator's help.

What only compiles is cross-compiled (the Dockerfiles say how). What runs programs of the image
while it is built, a package's installation or Postgres making its first files, needs a CPU that
runs them, or QEMU in its place, which the kernel calls where it is registered (binfmt_misc).
"""

from __future__ import annotations

import os
import platform
import shutil
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from imagebuild.catalog import ImageError
from imagebuild.packages import install

BINFMT = Path("/proc/sys/fs/binfmt_misc")
_LOAD_ADDRESS = 0x400000


@dataclass(frozen=True)
class _Architecture:
    """What tells an architecture: its names, its number in ELF files, a program that ends well."""

    qemu: str
    elf: int
    exit_0: bytes

    @property
    def program(self) -> bytes:
        """The smallest program of this architecture: an ELF file that exits with 0."""
        size = 64 + 56 + len(self.exit_0)
        header = struct.pack(
            "<16sHHIQQQIHHHHHH",
            b"\x7fELF\x02\x01\x01",
            *(2, self.elf, 1, _LOAD_ADDRESS + 64 + 56, 64, 0, 0, 64, 56, 1, 0, 0, 0),
        )
        segment = struct.pack(
            "<IIQQQQQQ", 1, 5, 0, _LOAD_ADDRESS, _LOAD_ADDRESS, size, size, 0x10000
        )
        return header + segment + self.exit_0


_ARCHITECTURES = {
    # mov edi, 0; mov eax, 60 (exit); syscall
    "amd64": _Architecture("x86_64", 62, bytes.fromhex("bf00000000b83c0000000f05")),
    # mov x0, #0; mov x8, #93 (exit); svc #0
    "arm64": _Architecture("aarch64", 183, bytes.fromhex("000080d2a80b80d2010000d4")),
}
KNOWN = tuple(f"linux/{name}" for name in _ARCHITECTURES)


def native() -> str:
    """The platform of this machine, as `linux/amd64`."""
    machine = platform.machine().lower()
    return f"linux/{({'x86_64': 'amd64', 'aarch64': 'arm64'}).get(machine, machine)}"


def parse(text: str | None) -> list[str]:
    """The platforms of a command line, parted by commas, each once; without any this machine's.

    Raises ImageError for one that is not known.
    """
    if text is None:
        return [native()]
    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in KNOWN:
            raise ImageError(
                f"no platform is called {name!r}; write {' or '.join(KNOWN)},"
                f" or both to push: --platform {','.join(KNOWN)}"
            )
    return names


def architecture(name: str) -> str:
    """What stands behind the slash: `arm64` of `linux/arm64`."""
    return name.rpartition("/")[2]


def folder_name(name: str) -> str:
    """A platform as the name of a folder: `linux-arm64`."""
    return name.replace("/", "-")


def elf_machine(name: str) -> int:
    """The number of the platform's CPU in the header of an ELF file (`e_machine`)."""
    return _ARCHITECTURES[architecture(name)].elf


def runs_here(name: str) -> bool:
    """Whether programs of the platform run on this machine: one is run.

    As root in a folder where nothing else is, as a build does it: an emulator has to be there too.
    """
    with tempfile.TemporaryDirectory(prefix="laptime-platform-") as folder:
        program = Path(folder) / "program"
        program.write_bytes(_ARCHITECTURES[architecture(name)].program)
        program.chmod(0o755)
        command = [str(program)]
        if os.geteuid() == 0 and (chroot := shutil.which("chroot")):
            command = [chroot, folder, "/program"]
        try:
            return subprocess.run(command, capture_output=True, check=False).returncode == 0
        except OSError:
            return False


def ensure_runs_here(name: str) -> None:
    """Have this machine run programs of the platform: QEMU is installed and registered if need be.

    Both needs root and a Debian. Raises ImageError, which says what is missing. How the machine's
    own programs run does not change.
    """
    if runs_here(name):
        return
    qemu = _ARCHITECTURES[architecture(name)].qemu
    settings = _settings(qemu)
    if settings is None:
        install("qemu-user-static")
        settings = _settings(qemu)
    if settings is not None and os.geteuid() == 0 and not runs_here(name):
        if not (BINFMT / "register").exists():
            subprocess.run(
                ["mount", "-t", "binfmt_misc", "none", str(BINFMT)],
                capture_output=True,
                check=False,
            )
        _register(settings)
    if not runs_here(name):
        raise ImageError(
            f"programs of {name} do not run on this machine ({native()}), and some have to while an"
            f" image is built: install qemu-user-static and register qemu-{qemu} with binfmt_misc,"
            " flag F (Debian, as root: apt-get install qemu-user-static binfmt-support; for a"
            f" container on its host), or build on a machine of {name}"
        )


def _settings(qemu: str) -> str | None:
    """The line that registers an emulator, as its package has it; None where none is installed."""
    file = Path(f"/usr/lib/binfmt.d/qemu-{qemu}.conf")
    if not file.is_file():
        return None
    lines = file.read_text(encoding="utf-8").splitlines()
    return next((line for line in lines if line.startswith(":")), None)


def _register(line: str) -> None:
    """Register an emulator so that it is also there where its file is not (flag F)."""
    name, flags = line.split(":")[1], line.rpartition(":")[2]
    if "F" not in flags:
        line += "F"
    try:
        if (BINFMT / name).exists():
            # There, and no program ran: it is switched off or lacks the flag.
            (BINFMT / name).write_text("-1")
        (BINFMT / "register").write_text(line)
    except OSError as error:
        raise ImageError(f"{BINFMT}/register does not take {name}: {error.strerror}") from error
