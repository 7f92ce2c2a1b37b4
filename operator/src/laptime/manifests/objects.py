"""What every object of a run carries: its labels, its annotations, a hash of itself. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from laptime.api import GROUP

Manifest = dict[str, Any]

HASH_ANNOTATION = f"{GROUP}/manifest-hash"
SECRET_ANNOTATION = f"{GROUP}/names-secret"
"""On a ConfigMap: the Secret that goes with it is called by its uid."""
NAME_ANNOTATION = f"{GROUP}/name"
"""What an object would be called if somebody else's object had not that name already."""
PODS_ANNOTATION = f"{GROUP}/pods"
"""On a Job: the pods of server and tiers when it was made, how often each was restarted, and which
of earlier trials were stuck."""
RUN_LABEL = f"{GROUP}/run"
UID_LABEL = f"{GROUP}/run-uid"
"""Tells the objects of a run from those of a deleted one of the same name."""
COMPONENT_LABEL = f"{GROUP}/component"
SERVER_LABEL = f"{GROUP}/server"
LOAD_LABEL = f"{GROUP}/load"
TRIAL_LABEL = f"{GROUP}/trial"
LEADS_LABEL = f"{GROUP}/leads"
"""On the generators that those of another trial, measured at the same time, meet."""
PLACEMENT_LABEL = f"{GROUP}/placement"

MAX_NAME_LENGTH = 63
"""Longest name of a Service, and of a Job whose pods carry its name as a label."""


class Component(StrEnum):
    """The parts of a run, as the component label names them.

    Beside them there are the services of its scenario, each a component of its own.
    """

    POSTGRES = "postgres"
    PGBOUNCER = "pgbouncer"
    HAPROXY = "haproxy"
    SERVER = "server"
    GENERATOR = "generator"
    VERIFIER = "verifier"
    RESULT = "result"
    READINGS = "readings"
    PROFILER = "profiler"
    PROFILE = "profile"
    UPSTREAM = "upstream"
    SQLITE = "sqlite"
    DELAY = "delay"
    NETWORK = "network"
    SCENARIO = "scenario"
    SCRIPT = "script"
    FEEDERS = "feeders"
    SERVICES = "services"
    ANSWERS = "answers"
    PATH_SERVER = "path-server"
    PATH_GENERATOR = "path-generator"
    ASKER = "asker"


def otherwise_named(manifest: Manifest) -> Manifest:
    """Return the same object under a name that nobody else has by chance.

    For objects that nothing finds by their name. The annotation still says the name it has in the
    plan of the run.
    """
    metadata = manifest["metadata"]
    suffix = content_hash([metadata["name"], metadata["labels"][UID_LABEL]])[:8]
    name = f"{metadata['name'][: MAX_NAME_LENGTH - 9].rstrip('-')}-{suffix}"
    annotations = {**metadata["annotations"], NAME_ANNOTATION: metadata["name"]}
    return {**manifest, "metadata": {**metadata, "name": name, "annotations": annotations}}


def known_as(metadata: Mapping[str, Any]) -> str:
    """Return the name by which the run knows an object; it is called so unless that was taken."""
    name: str = (metadata.get("annotations") or {}).get(NAME_ANNOTATION) or metadata["name"]
    return name


def content_hash(content: Any) -> str:
    """Return 16 hex digits that stand for JSON-like content, whatever the order of its keys."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
