"""kopf glue and nothing else: every event of a run wakes the same reconcile.

`on.event` handlers store nothing in the objects: no annotations, no finalizers. So deleting a run
or uninstalling the operator is never blocked.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import kopf
from prometheus_client import start_http_server

from laptime.api import GROUP, PLURAL, VERSION
from laptime.kube import connect
from laptime.reconcile.controller import Controller
from laptime.reconcile.metrics import Metrics
from laptime.settings import Settings, load_settings

_SERVER_TIMEOUT_SECONDS = 120
_CLIENT_TIMEOUT_SECONDS = 150


def build_registry(settings: Settings) -> kopf.OperatorRegistry:
    """Return the registry with all handlers of the operator."""
    registry = kopf.OperatorRegistry()
    controllers: list[Controller] = []

    @kopf.on.login(registry=registry)
    def login(**kwargs: Any) -> kopf.ConnectionInfo | None:
        return kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)

    @kopf.on.startup(registry=registry)
    async def start(
        settings: kopf.OperatorSettings, logger: logging.Logger | Any, **_: Any
    ) -> None:
        # The set of namespaces and kinds is known; looking for more needs rights we do not have.
        settings.scanning.disabled = True
        settings.posting.enabled = False
        # A watch that froze silently ends after this, on one side or the other.
        settings.watching.server_timeout = _SERVER_TIMEOUT_SECONDS
        settings.watching.client_timeout = _CLIENT_TIMEOUT_SECONDS
        metrics = Metrics()
        start_http_server(operator_settings.metrics_port, registry=metrics.registry)
        controller = Controller(
            await connect(metrics.request),
            operator_settings,
            metrics,
            logging.getLogger("laptime"),
        )
        controller.start()
        controllers.append(controller)

    @kopf.on.cleanup(registry=registry)
    async def stop(**_: Any) -> None:
        for controller in controllers:
            await controller.stop()

    @kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)
    async def wake(
        event: Any, namespace: str | None, name: str | None, uid: str | None, **_: Any
    ) -> None:
        if namespace is None or name is None or uid is None:
            return
        for controller in controllers:
            if event["type"] == "DELETED":
                controller.forget(namespace, name, uid)
            else:
                controller.wake(namespace, name, uid)

    operator_settings = settings
    return registry


def run_operator() -> None:
    """Run the operator until it is told to stop.

    Raises:
        SettingsError: a setting is missing or wrong.
    """
    settings = load_settings()
    logging.basicConfig(
        level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    # kopf logs every event that it passes on; that says nothing here.
    logging.getLogger("kopf").setLevel(logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    asyncio.run(
        kopf.operator(
            registry=build_registry(settings),
            standalone=True,
            clusterwide=True,
            liveness_endpoint=settings.liveness_endpoint,
        )
    )
