"""What a k6 script would ask beside its target, read from its sources. Pure: nothing is executed.

k6 loads a module whose name is an address from there, in every trial; `k6 deps` would do so, too.
Nobody can tell from a text which requests will be sent, so hosts that it names are only a hint.
"""

from __future__ import annotations

import base64
import binascii
import json
import posixpath
import re
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any

from laptime.api.egress import Destination
from laptime.api.script_load import ScriptLoad
from laptime.api.text import shown

MOST_CHARACTERS = 1024 * 1024
"""So much of the sources of a load is read."""
MOST_LEADS = 20
"""Of each kind so many are kept."""
_FOLDER = "/scripts"
_BEFORE, _STATEMENT = 60, 400
# Strings, and what may have quotes in it without being one. Each alternative takes what it began
# with, also where the end is missing: a stranger's text must not make the search slow.
_TOKEN = re.compile(
    r"//[^\n]*+"
    r"|/\*.*?(?:\*/|\Z)"
    r"|(?P<quote>['\"])(?P<text>(?:\\.|(?!(?P=quote))[^\\\n])*+)(?P=quote)?"
    r"|`(?P<template>(?:\\.|[^`\\])*+)`?"
    # A regular expression, by what stands before it: elsewhere a slash divides.
    r"|[(,=:\[!&|?{};]\s*+/(?![*/])(?:\\.|[^/\\\n]){1,200}+/",
    re.DOTALL,
)
_MODULE = re.compile(r"\b(?:import|from)\s*\Z")
_TYPES_ONLY = re.compile(r"\b(?:import|export)\s+type\s+(?!from\b)[^;'\"]*\bfrom\s*\Z")
_REQUIRED = re.compile(r"\brequire\s*\(\s*\Z")
_CONNECTS = re.compile(r"\.connect\s*\(\s*\Z")
_UNLESS_TOLD = re.compile(r"\b__ENV(?:\.(\w+)|\[['\"](\w+)['\"]\])\s*(?:\|\||\?\?)\s*\Z")
_ADDRESS = re.compile(r"\s*((?:https?|wss?|grpcs?)://)(?:[^/\s?#@]*@)?([^/\s?#\\'\"`]+)", re.I)
_HOST_AND_PORT = re.compile(r"[\w.-]+:\d+|\[[0-9a-fA-F:]+\]:\d+")
_LONG_NAME = re.compile(rb"^[0-9]{1,9} path=([^\n]+)$", re.MULTILINE)
# k6 had these two as short forms of addresses.
_SHORT_FORM = re.compile(r"(github\.com|cdnjs\.com)/")


@dataclass(frozen=True)
class Lead:
    """A place in a script's sources that leads to a host."""

    place: str
    """File and line."""
    text: str
    """The address as it stands there; of a host that is only named no more than that."""
    host: str
    """With the port, where there is one."""
    imported: bool = False
    """k6 loads a module from there before anything else, whatever the script does."""

    def __str__(self) -> str:
        return f"{self.place} {'imports' if self.imported else 'names'} {self.text}"


@dataclass(frozen=True)
class Leads:
    """Where a script leads to."""

    imports: tuple[Lead, ...] = ()
    """Modules that are loaded from somewhere."""
    names: tuple[Lead, ...] = ()
    """Hosts that are only named."""
    whole: bool = True
    """Whether all of it was read."""


def script_leads(
    script: ScriptLoad, config_maps: Sequence[Mapping[str, Any]], known: Sequence[str] = ()
) -> Leads:
    """Return where a script leads to, each host or module once.

    `config_maps` are those of the script in their order. `known` are beginnings of names of the
    run's own Services. What a variable of the run takes the place of, or names itself, is left out.
    """
    files: dict[str, bytes | str] = {}
    for manifest in config_maps:
        files |= files_of(manifest)
    found: dict[tuple[str, bool], Lead] = {}
    left = MOST_CHARACTERS
    for name, source, archived in _modules(script.key, files):
        for lead in _leads(name, source[:left], {one.name for one in script.env} | {"TARGET"}):
            ours = lead.host.lower().startswith(tuple(known)) or any(
                lead.host in one.value for one in script.env
            )
            if not ours and not (archived and lead.imported):
                found.setdefault((lead.text, lead.imported), lead)
        left -= len(source)
        if left <= 0:
            break
    imports = [one for one in found.values() if one.imported]
    names = [one for one in found.values() if not one.imported]
    return Leads(tuple(imports[:MOST_LEADS]), tuple(names[:MOST_LEADS]), whole=left > 0)


def files_of(config_map: Mapping[str, Any]) -> dict[str, bytes | str]:
    """Return the files that a ConfigMap becomes where it is mounted."""
    files: dict[str, bytes | str] = dict(config_map.get("data") or {})
    for name, text in (config_map.get("binaryData") or {}).items():
        try:
            files[name] = base64.b64decode(text)
        except (binascii.Error, ValueError):
            continue  # Only a manifest that the API server has not seen yet.
    return files


def may_reach(host: str, egress: Sequence[Destination]) -> bool:
    """Return whether the run names a way to a host: its address or the namespace of its Service."""
    name = host.rpartition(":")[0] if _HOST_AND_PORT.fullmatch(host) else host
    try:
        address = ip_address(name.strip("[]"))
    except ValueError:
        service = name.split(".")
        inside = len(service) == 2 or service[2:3] == ["svc"]
        return inside and any(one.namespace == service[1] for one in egress)
    return any(one.cidr is not None and address in ip_network(one.cidr, False) for one in egress)


def _modules(key: str, files: Mapping[str, bytes | str]) -> Iterator[tuple[str, str, bool]]:
    """Yield name and source of each module that k6 would load, and whether it is in an archive."""
    first = files.get(key)
    if isinstance(first, bytes):
        archive = _archived(first)
        if archive is not None:
            yield from ((name, source, True) for name, source in archive)
            return
    waiting, seen = [key], set()
    while waiting:
        name = waiting.pop(0)
        source = files.get(name)
        if source is None or name in seen:
            continue
        seen.add(name)
        text = source if isinstance(source, str) else source.decode(errors="replace")
        yield name, text, False
        waiting += _beside(text)


def _beside(source: str) -> list[str]:
    """Return the files of the same folder that a module loads."""
    found = []
    for text, start in _strings(source):
        before = source[max(0, start - _BEFORE) : start]
        if text.startswith((".", "/")) and (_MODULE.search(before) or _REQUIRED.search(before)):
            folder, name = posixpath.split(posixpath.normpath(posixpath.join(_FOLDER, text)))
            if folder == _FOLDER:
                found.append(name)
    return found


def _archived(content: bytes) -> list[tuple[str, str]] | None:
    """Return name and source of the modules of an archive of k6; None: it is none.

    What `k6 archive` loaded from elsewhere is in it, too.
    """
    try:
        members = dict(_members(content))
        main = str(json.loads(members["metadata.json"]).get("filename", ""))
    except (tarfile.TarError, KeyError, ValueError, AttributeError, RecursionError):
        return None
    return [
        (posixpath.basename(main if name == "data" else name), source.decode(errors="replace"))
        for name, source in members.items()
        if name == "data" or name.endswith((".js", ".ts", ".mjs", ".cjs"))
    ]


def _members(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each file of a tar, such as k6 writes.

    `tarfile` itself would follow links, fill holes of any size with zeros, and read a header again
    and again that says that its file is smaller than nothing.

    Raises:
        tarfile.TarError, ValueError: it is none.
    """
    start, long_name = 0, None
    while (header := content[start : start + tarfile.BLOCKSIZE]).strip(b"\0"):
        member = tarfile.TarInfo.frombuf(header, "utf-8", "replace")
        start += tarfile.BLOCKSIZE
        end = start + member.size
        if not start <= end <= len(content):
            raise ValueError(f"{member.name} has {member.size} bytes")
        data = content[start:end]
        start = end + -member.size % tarfile.BLOCKSIZE
        # A name that is too long for its header stands before it, as Go and as GNU write it.
        if member.type == tarfile.XHDTYPE:
            found = _LONG_NAME.search(data)
            long_name = found[1] if found else None
        elif member.type == tarfile.GNUTYPE_LONGNAME:
            long_name = data.rstrip(b"\0")
        elif member.isreg() and not member.issparse():
            yield long_name.decode(errors="replace") if long_name else member.name, data
            long_name = None
        else:
            # k6 writes the script once more, as a link to `data`. No link is followed.
            long_name = None


def _leads(name: str, source: str, told: set[str]) -> Iterator[Lead]:
    line, counted = 1, 0
    for text, start in _strings(source):
        address, short = _ADDRESS.match(text), _SHORT_FORM.match(text)
        direct = _HOST_AND_PORT.fullmatch(text)
        if not (address or short or direct):
            continue
        before = source[max(0, start - _BEFORE) : start]
        module = _MODULE.search(before) is not None
        default = _UNLESS_TOLD.search(before)
        if not address and not (module if short else default or _CONNECTS.search(before)):
            continue
        host = address[2] if address else short[1] if short else text
        if "$" in host or "{" in host or (default and (default[1] or default[2]) in told):
            continue  # Put together while it runs, or the run says it.
        if module and _TYPES_ONLY.search(source[max(0, start - _STATEMENT) : start]):
            continue  # Only for an editor: nothing is left of it.
        line += source.count("\n", counted, start)
        counted = start
        host = host.rstrip(",;)")
        # Who logs in, and what is asked for, is nobody's business.
        what = f"{address[1]}{host}" if address else host
        if module:
            what = text.strip() if short else what + text[address.end() :] if address else text
        yield Lead(f"{shown(name)}:{line}", shown(what), shown(host), module)


def _strings(source: str) -> Iterator[tuple[str, int]]:
    """Yield each literal text of JavaScript, and where it begins."""
    for token in _TOKEN.finditer(source):
        text = token["text"] if token["text"] is not None else token["template"]
        if text is not None:
            yield text, token.start()
