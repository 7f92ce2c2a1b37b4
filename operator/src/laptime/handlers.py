"""kopf glue and nothing else: the life of the process, from its start to its signals.

The runs are watched by the reconcile itself (docs/decisions/0009): kopf would list them all at
once and keep something of each. Nothing is stored in the objects, no annotations and no finalizers,
so deleting a run or uninstalling the operator is never blocked.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import ssl
from contextlib import AsyncExitStack
from typing import Any

import kopf

from laptime.kube import connect
from laptime.log_lines import LineFormatter
from laptime.reconcile.controller import Controller
from laptime.reconcile.exposition import serve
from laptime.reconcile.leader import Elector, work_when_leading
from laptime.reconcile.metrics import Metrics
from laptime.reconcile.settings import Settings, load_settings


class ApiServer(kopf.ConnectionInfo):
    """An API server by whatever CA: Python 3.13 refuses many, for lack of extensions."""

    def as_ssl_context(self) -> ssl.SSLContext:
        """Return whom to trust, as kopf does, but for those extensions."""
        context = super().as_ssl_context()
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return context


def login(**kwargs: Any) -> ApiServer | None:
    """Return how to ask the API server; None where there is no account and no kubeconfig."""
    found = kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)
    return None if found is None else ApiServer(**vars(found))


def build_registry(settings: Settings) -> kopf.OperatorRegistry:
    """Return the registry with all handlers of the operator."""
    registry = kopf.OperatorRegistry()
    closing = AsyncExitStack()

    kopf.on.login(registry=registry)(login)

    @kopf.on.startup(registry=registry)
    async def start(settings: kopf.OperatorSettings, **_: Any) -> None:
        # The set of namespaces and kinds is known; looking for more needs rights we do not have.
        settings.scanning.disabled = True
        settings.posting.enabled = False
        metrics = Metrics()
        serve(operator_settings.metrics_port, metrics.answer)
        kube = await connect(metrics.request)
        closing.push_async_callback(kube.close)
        logger = logging.getLogger("laptime")
        namespace = operator_settings.lease_namespace
        if namespace is None:
            controller = Controller(kube, operator_settings, metrics, logger)
            controller.start()
            closing.push_async_callback(controller.stop)
            return
        identity = f"{operator_settings.identity}_{secrets.token_hex(4)}"
        elector = Elector(kube, namespace, identity)
        gated = kube.gated(elector.left)

        def begin() -> Controller:
            return Controller(gated, operator_settings, metrics, logger)

        task = asyncio.create_task(work_when_leading(elector, begin, metrics.leads))
        closing.push_async_callback(_end, task)

    @kopf.on.cleanup(registry=registry)
    async def stop(**_: Any) -> None:
        await closing.aclose()

    operator_settings = settings
    return registry


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def run_operator() -> None:
    """Run the operator until it is told to stop.

    Raises:
        SettingsError: a setting is missing or wrong.
    """
    settings = load_settings()
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level=settings.log_level, handlers=[handler])
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
