"""What a cluster made of a pod that a run asked for: webhooks and LimitRanges change pods. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from laptime.api.resources import quantity
from laptime.api.text import plain
from laptime.manifests.undisturbed import Asked, asked_of

_RESOURCES = {"cpu": "CPU", "memory": "memory"}
_KINDS = {"limits": "limit", "requests": "request"}


@dataclass(frozen=True)
class Altered:
    """What differs from what was asked for, in words; nothing where nobody knows what that was."""

    main: str | None = None
    """The container that the pod is there for; None: not known."""
    added: tuple[str, ...] = ()
    """Names of containers that nobody asked for."""
    prepares: tuple[str, ...] = ()
    """Those of them that end before the others begin."""
    limits: tuple[str, ...] = ()
    """Limits of the main container where none was asked for, such as `100m of CPU`."""
    resources: tuple[tuple[str, str], ...] = ()
    """Of the main container what else it has, such as `a CPU limit of 500m`, and what was asked."""
    images: tuple[tuple[str, str, str], ...] = ()
    """Containers with another image: the name, what it is, what was asked."""


UNALTERED = Altered()


def altered(pod: Mapping[str, Any]) -> Altered:
    """Return what is otherwise in a pod than its run has asked for.

    Only of the container that the pod is there for requests and limits count: the others end
    before, or have next to nothing to do.
    """
    asked = asked_of(pod["metadata"])
    if asked is None:
        return UNALTERED
    spec = pod.get("spec") or {}
    containers = spec.get("containers") or []
    before = spec.get("initContainers") or []
    # Such as kubectl debug attaches; none ever goes, so that the end of a trial shows them all.
    attached = spec.get("ephemeralContainers") or []
    # An init container that is started again and again stays beside the others.
    prepares = [one for one in before if one.get("restartPolicy") != "Always"]
    main = next((one for one in containers if one.get("name") == asked.main), None)
    limits, resources = _resources(asked, main.get("resources") or {}) if main else ([], [])
    return Altered(
        main=asked.main,
        added=_strange(asked, [*before, *containers, *attached]),
        prepares=_strange(asked, prepares),
        limits=tuple(limits),
        resources=tuple(resources),
        images=tuple(
            (plain(str(one["name"])), plain(str(one.get("image"))), asked.images[one["name"]])
            for one in [*before, *containers]
            if one.get("name") in asked.images
            and not _same_image(str(one.get("image")), asked.images[one["name"]])
        ),
    )


def _strange(asked: Asked, containers: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    names = (str(one.get("name")) for one in containers)
    return tuple(plain(name) for name in names if name not in asked.images)


def _resources(asked: Asked, has: Mapping[str, Any]) -> tuple[list[str], list[tuple[str, str]]]:
    limits: list[str] = []
    other: list[tuple[str, str]] = []
    for kind, word in _KINDS.items():
        for resource, title in _RESOURCES.items():
            wanted = asked.resources.get(kind, {}).get(resource)
            found = (has.get(kind) or {}).get(resource)
            got = None if found is None else plain(str(found))
            if wanted == got or (wanted and got and _same_amount(wanted, got)):
                continue
            if kind == "limits" and got and wanted is None:
                limits.append(f"{got} of {title}")
            else:
                what = f"a {title} {word} of {got}" if got else f"no {title} {word}"
                other.append((what, wanted or "none"))
    return limits, other


def _same_amount(one: str, other: str) -> bool:
    try:
        return _amount(one) == _amount(other)
    except ValueError:
        return False


def _amount(text: str) -> float:
    # The API server writes 1000m as 1, and 1024Gi as 1Ti, which no run can ask for.
    number, tera, binary = text.partition("T")
    return quantity(f"{number}G{binary}") * (1024 if binary else 1000) if tera else quantity(text)


def _same_image(image: str, asked: str) -> bool:
    """Whether it is the same for sure: by its digest, also where only that was added to a tag."""
    _, _, digest = asked.partition("@")
    return image == asked or image.startswith(f"{asked}@") or bool(digest and digest in image)
