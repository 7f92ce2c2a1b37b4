"""Folding: what a run has stored in many ConfigMaps goes into its archive, then they are deleted.

The archive is written while the run still has the lane, and stands whole before the run says that
it is over. Only of a run that is over single ConfigMaps are deleted, and only those whose very uid
is in the archive. So at each moment all is in one of both, or in both and the same; and a version
of Laptime that knows no archives finds a run that is over, with which it does nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from laptime.api import KIND
from laptime.kube import Kube, KubeError, Manifest
from laptime.manifests.archive import (
    ARCHIVE_KEY,
    ARCHIVE_LABEL,
    RETRY_ANNOTATION,
    archive_config_maps,
    archive_parts,
    is_archive,
    joined,
)
from laptime.manifests.context import RunContext
from laptime.manifests.objects import COMPONENT_LABEL, UID_LABEL, known_as
from laptime.manifests.result import RESULTS, results_name
from laptime.reconcile.cache import number_of, version_of
from laptime.reconcile.children import Children, owners
from laptime.reconcile.queue import card_of
from laptime.reconcile.views import Run
from laptime.report.archive import Archive, Packer, unpack

_PAGE = 20
"""Objects per answer: each may have nearly 1 MiB."""
_AT_ONCE = 8


def single_results(run_name: str, config_maps: list[Manifest]) -> list[Manifest]:
    """Return those of a run's ConfigMaps that hold what was measured, and are not the archive."""
    return [
        one
        for one in config_maps
        if one["metadata"]["labels"].get(COMPONENT_LABEL) in RESULTS
        and known_as(one["metadata"]) != results_name(run_name)
    ]


def is_outdated(metadata: Mapping[str, Any], run: Run) -> bool:
    """Whether failed trials were asked for again since an archive with this metadata was written.

    Then it says how the run had ended before.
    """
    written_for = str((metadata.get("annotations") or {}).get(RETRY_ANNOTATION, "0"))
    return written_for != _retry(run)


def _retry(run: Run) -> str:
    return str(run.status.retries or 0)


async def read_archive(kube: Kube, namespace: str, name: str) -> Archive | None:
    """Return the objects in the archive that begins with this ConfigMap; None when there is none.

    Raises:
        ArchiveError: it is not whole.
        StoredByNewerVersion: this version cannot read it.
    """
    head = await kube.get("ConfigMap", namespace, name)
    if head is None or not is_archive(head):
        return None
    packed = joined(head, await _parts(kube, namespace, head))
    return await asyncio.to_thread(unpack, packed, files=False)


async def _parts(kube: Kube, namespace: str, head: Manifest) -> dict[str, Manifest | None]:
    return {name: await kube.get("ConfigMap", namespace, name) for name in archive_parts(head)}


async def archive_objects(
    kube: Kube, run: Run, context: RunContext, files: Mapping[str, str], children: Children
) -> tuple[Manifest, list[Manifest]]:
    """Return the archive of everything that is stored now, as its ConfigMap and the parts of it.

    What an earlier archive has, and nothing has replaced, is in it too.
    """
    packer = await asyncio.to_thread(Packer, files)

    def add(manifests: list[Manifest]) -> None:
        for manifest in manifests:
            packer.add(manifest)

    seen: set[str] = set()
    pages = kube.pages("ConfigMap", run.namespace, children.selector, limit=_PAGE)
    async for page in pages:
        mine = [one for one in page.items if children.owns("ConfigMap", one)]
        single = single_results(run.name, mine)
        seen |= {known_as(one["metadata"]) for one in single}
        await asyncio.to_thread(add, single)
    # What is known to be there although this list is too old to have it.
    for one in single_results(run.name, children.of("ConfigMap")):
        if known_as(one["metadata"]) not in seen:
            found = await kube.get("ConfigMap", run.namespace, one["metadata"]["name"])
            if found is not None and children.owns("ConfigMap", found):
                seen.add(known_as(one["metadata"]))
                await asyncio.to_thread(add, [found])
    before = children.find("ConfigMap", results_name(run.name))
    archive = await read_archive(kube, run.namespace, before.name) if before else None
    if archive is not None:
        rest = [one for one in archive.objects if known_as(one["metadata"]) not in seen]
        await asyncio.to_thread(add, rest)
    head, parts = archive_config_maps(context, await asyncio.to_thread(packer.finish))
    head["metadata"]["annotations"][RETRY_ANNOTATION] = _retry(run)
    return head, parts


async def delete_folded(
    kube: Kube, namespace: str, run_name: str, uid: str, name: str
) -> int | None:
    """Delete what is in the archive of a run that is over; return the bytes that the archive has.

    `name` is that of the archive, `uid` that of the run. None: there is no archive of this run, and
    nothing is deleted. Done again, it goes on where it stopped.

    Raises:
        KubeError: something could not be read or deleted, or the run goes on.
        ArchiveError: the archive is not whole; nothing was deleted.
        StoredByNewerVersion: this version cannot read it.
    """
    head = await kube.get("ConfigMap", namespace, name)
    if head is None or not is_archive(head) or not _is_of(uid, head):
        return None
    parts = await _parts(kube, namespace, head)
    # Read to its end, so that it is known to be whole.
    archive = await asyncio.to_thread(unpack, joined(head, parts), files=False)
    folded = {one["metadata"]["uid"] for one in archive.objects}
    own = await _own(kube, namespace, UID_LABEL, uid, head)
    doomed = [one for one in single_results(run_name, own) if one["metadata"]["uid"] in folded]
    leftovers = [
        one
        for one in await _own(kube, namespace, ARCHIVE_LABEL, uid, head)
        if one["metadata"]["name"] not in parts
    ]
    if leftovers and not await _stands(kube, run_name, uid, head):
        # They may be the parts of the archive that comes after this one.
        raise KubeError(0, "ArchiveChanging", f"ConfigMap {name} is being written again")
    gate = asyncio.Semaphore(_AT_ONCE)

    async def delete(metadata: Manifest) -> None:
        async with gate:
            await kube.delete("ConfigMap", namespace, metadata["name"], metadata["uid"])

    metadata = [one["metadata"] for one in (*doomed, *leftovers)]
    done = await asyncio.gather(*map(delete, metadata), return_exceptions=True)
    for failure in done:
        if isinstance(failure, BaseException):
            raise failure
    return sum(
        len(one["binaryData"][ARCHIVE_KEY]) * 3 // 4 for one in (head, *parts.values()) if one
    )


async def _own(kube: Kube, namespace: str, label: str, uid: str, since: Manifest) -> list[Manifest]:
    """Return a run's own ConfigMaps with its uid in a label: all that were there before another.

    Only their metadata is there.

    Raises:
        KubeError: it could not be read, or the API server has an older list than that only.
    """
    found: list[Manifest] = []
    version = ""
    selector = f"{label}={uid}"
    async for page in kube.pages("ConfigMap", namespace, selector, metadata_only=True):
        found += [one for one in page.items if _is_of(uid, one)]
        version = page.resource_version
    if number_of(version) < version_of(since):
        raise KubeError(0, "ListTooOld", f"the list of the ConfigMaps in {namespace} is too old")
    return found


async def _stands(kube: Kube, run_name: str, uid: str, head: Manifest) -> bool:
    """Whether an archive is the last one of a run that is over.

    The run is asked about first: one that is over again has written another archive before that.
    """
    namespace = head["metadata"]["namespace"]
    run = await kube.get(KIND, namespace, run_name)
    if run is None or run["metadata"]["uid"] != uid or not card_of(run).over:
        return False
    now = await kube.get("ConfigMap", namespace, head["metadata"]["name"])
    return now is not None and version_of(now) == version_of(head)


def _is_of(uid: str, manifest: Mapping[str, Any]) -> bool:
    metadata = manifest["metadata"]
    labels = metadata.get("labels") or {}
    return uid in (labels.get(UID_LABEL), labels.get(ARCHIVE_LABEL)) and uid in owners(metadata)
