"""The one thin client module: what Laptime asks of a Kubernetes API server, and nothing else.

It speaks plain dicts. Everything above it stays free of the client library.
"""

from laptime.kube.client import Kube, Page, connect
from laptime.kube.errors import KubeError
from laptime.kube.logs import LOG_BYTES
from laptime.kube.resources import RESOURCES, Manifest

__all__ = [
    "LOG_BYTES",
    "RESOURCES",
    "Kube",
    "KubeError",
    "Manifest",
    "Page",
    "connect",
]
