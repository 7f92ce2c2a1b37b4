"""Copies of stored objects, put into the etcd of the embedded cluster beside the API server.

    nsenter --net=/run/NAME/namespaces/control/network python3 bench/scale/etcd.py < copies.json

The API server sees them like all others; to make as many by itself would take it many minutes.
Speaks etcd's gRPC gateway; needs nothing but Python.
"""

from __future__ import annotations

import base64
import json
import sys
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_URL = "http://127.0.0.1:2379/v3/kv"


@dataclass(frozen=True)
class Copies:
    """Which objects of a run in the namespace `default` are copied, how often, and where to."""

    run: str
    """Copies are called so too, but for their last five digits."""
    first: int
    count: int
    with_results: bool = False
    suspended: bool = False
    """Whether they wait: applied with `suspend`, and nobody has looked at them yet."""


def main() -> int:
    """Make the copies that standard input asks for; print their number and their bytes."""
    asked = [Copies(**one) for one in json.load(sys.stdin)]
    made = size = 0
    for copies in asked:
        for key, value in _objects(copies):
            # One by one, as the API server does: objects of one transaction have one revision, and
            # a watch that breaks off between two of them would never see the second one.
            _ask("put", {"key": _text(key), "value": _text(value)})
            made += 1
            size += len(key) + len(value)
    print(json.dumps({"objects": made, "bytes": size}))
    return 0


def _objects(copies: Copies) -> Iterator[tuple[bytes, bytes]]:
    run = _get(f"/registry/laptime.dev/benchmarkruns/default/{copies.run}".encode())
    if len(run) != 1:
        sys.exit(f"there is no run {copies.run}")
    (value,) = run.values()
    uid = json.loads(value)["metadata"]["uid"]
    results = f"/registry/configmaps/default/{copies.run}-results".encode()
    config_maps = _get(results, prefix=True) if copies.with_results else {}
    for number in range(copies.first, copies.first + copies.count):
        name = f"{copies.run[:-5]}{number:05d}"
        fresh = str(uuid.uuid4())
        key = f"/registry/laptime.dev/benchmarkruns/default/{name}".encode()
        yield key, _copy_of_run(value, copies, name, fresh)
        for key, content in config_maps.items():
            # Names and uids have the same length, so that the lengths in its encoding stay right.
            copy = _renamed(_renamed(content, copies.run, name), uid, fresh)
            yield _renamed(key, copies.run, name), _with_uid_of_its_own(copy)


def _copy_of_run(value: bytes, copies: Copies, name: str, uid: str) -> bytes:
    run = json.loads(value)
    run["metadata"] |= {"name": name, "uid": uid}
    if copies.suspended:
        run["spec"]["suspend"] = True
        del run["status"]
    elif "resultsConfigMap" in run["status"]:
        run["status"]["resultsConfigMap"] = f"{name}-results"
    return json.dumps(run, separators=(",", ":")).encode()


def _with_uid_of_its_own(value: bytes) -> bytes:
    # The object's own uid is the first text of 36 characters in its metadata (field 5).
    place = value.index(b"\x2a\x24") + 2
    return value[:place] + str(uuid.uuid4()).encode() + value[place + 36 :]


def _renamed(value: bytes, old: str, new: str) -> bytes:
    assert len(old) == len(new)
    return value.replace(old.encode(), new.encode())


def _get(key: bytes, *, prefix: bool = False) -> dict[bytes, bytes]:
    end = {"range_end": _text(key[:-1] + bytes([key[-1] + 1]))} if prefix else {}
    found = _ask("range", {"key": _text(key), **end}).get("kvs") or []
    return {base64.b64decode(one["key"]): base64.b64decode(one["value"]) for one in found}


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _ask(what: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(f"{_URL}/{what}", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        read: dict[str, Any] = json.load(answer)
    return read


if __name__ == "__main__":
    sys.exit(main())
