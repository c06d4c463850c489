"""Runs workers in this process until a signal stops them, then drains them."""

import asyncio
import faulthandler
import gc
import os
import signal
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from time import monotonic

from prometheus_client import disable_created_metrics, start_http_server

from bus_schema.fleet import State
from bus_schema.replies import Code
from mindbus.bus.connection import NoBroker, find_broker, open_transport
from mindbus.bus.telemetry import watch_loop
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.errors import MindBusError
from mindbus.health import SHOWS_STACKS, HealthFolder
from mindbus.logs import logger
from mindbus.runtime.metrics_reports import MetricsReports
from mindbus.runtime.provision import Administrator, when_up
from mindbus.runtime.service import Service, build, provide
from mindbus.settings import Settings
from mindbus.spans import exporting
from mindbus.tasks import running

_STDERR = 2
# How long a worker of `mindbus up` waits for the broker that starts beside it.
_BROKER_WITHIN_S = 180.0
# Of objects that have not been freed again, before the youngest are collected; 700 by default.
_ALLOCATIONS = 10_000
# How often a draining worker says what it still has to do.
_REPORT_S = 0.5


class WorkerMisnamed(MindBusError, code=Code.INVALID):
    """A worker's `name` must be the name under which it is in the fleet, since its queues are called by it."""


async def host(
    makers: Mapping[str, Callable[[WorkerContext], Worker]], settings: Settings, stop: asyncio.Event
) -> None:
    """Run workers side by side until `stop` is set, then let them finish what they have begun.

    Where they cannot run, their health files keep the reason.
    """
    health, reason = HealthFolder(settings), ""
    # Around the making of the workers, whose databases look whether there is tracing.
    exporter = exporting(next(iter(makers)) if len(makers) == 1 else "mindbus", os.environ)
    try:
        async with _traced(exporter), _monitored(settings), _running(makers, settings, health):
            logger().info("workers ready", workers=sorted(makers))
            await stop.wait()
            logger().info("workers stopping", workers=sorted(makers))
    except MindBusError as error:
        reason = str(error)
        raise
    finally:
        for name in makers:
            health.forget(name)
            if reason:
                with suppress(OSError):
                    health.keep_reason(name, reason)


def spare_collections() -> None:
    """Collect this process's garbage less often, and not among what is imported: messages leave little in cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS, 20, 20)


def skip_last_collection() -> None:
    """Let the interpreter end without collecting garbage, which takes it two seconds once pages have been shown."""
    gc.freeze()


async def wait_for_broker(settings: Settings, within_s: float = _BROKER_WITHIN_S) -> None:
    """Wait for the private broker that starts beside this process. Raises NoBroker if it does not in time."""
    deadline = monotonic() + within_s
    while True:
        try:
            find_broker(settings)
        except NoBroker:
            if monotonic() >= deadline:
                raise
            await asyncio.sleep(0.05)
        else:
            return


def die_with_parent(grace_s: float) -> None:
    """Stop when standard input closes, as it does however the supervisor ends, SIGKILL included."""

    def watch() -> None:
        # Not through sys.stdin: a thread inside its lock would spoil the interpreter's own end.
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait(grace_s)
        os._exit(1)

    threading.Thread(target=watch, name="parent watch", daemon=True).start()


def show_stacks() -> None:
    """Write the stacks of all threads to standard error on SIGUSR2, and before the end where a library of C crashes.

    It is done by C alone, so even while a thread holds the interpreter.
    """
    faulthandler.register(SHOWS_STACKS, file=_STDERR)
    faulthandler.enable(file=_STDERR)


@asynccontextmanager
async def watchdog(limit_s: float) -> AsyncIterator[None]:
    """End the process, with the stacks of its threads on standard error, once its loop has stood still for so long.

    The timer is a thread of C, which needs neither the loop nor the interpreter's lock. 0: it never does.
    """

    async def feed() -> None:
        while True:
            faulthandler.dump_traceback_later(limit_s, exit=True)
            await asyncio.sleep(limit_s / 10)

    if not limit_s:
        yield
        return
    try:
        async with running(feed(), "watchdog"):
            yield
    finally:
        faulthandler.cancel_dump_traceback_later()


@asynccontextmanager
async def _traced(exporter: AbstractContextManager[None]) -> AsyncIterator[None]:
    """Tracing for the time of a block; at its end the last spans are sent in a thread."""
    exporter.__enter__()
    try:
        yield
    finally:
        await asyncio.to_thread(exporter.__exit__, None, None, None)


@asynccontextmanager
async def _monitored(settings: Settings) -> AsyncIterator[None]:
    # When a series began is of use to nobody, and as much to be told as the series itself.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    lag = asyncio.create_task(watch_loop(), name="loop watchdog")
    port = settings.metrics_port
    metrics = start_http_server(port, addr=settings.metrics_host)[0] if port is not None else None
    try:
        yield
    finally:
        lag.cancel()
        if metrics is not None:
            await asyncio.to_thread(metrics.shutdown)
            metrics.server_close()


@asynccontextmanager
async def _running(
    makers: Mapping[str, Callable[[WorkerContext], Worker]], settings: Settings, health: HealthFolder
) -> AsyncIterator[None]:
    # A transport each: in RabbitMQ's UI every worker has connections under its own name.
    if (admin := Administrator.of_private_node(settings)) is not None:
        await when_up(lambda: admin.add_users(makers, settings))
    transports = {name: open_transport(settings, name) for name in makers}
    services = {name: build(make, name, settings, transports[name], health.report) for name, make in makers.items()}
    started: list[Service] = []
    try:
        for name, service in services.items():
            if service.worker.name != name:
                raise WorkerMisnamed(f"{WorkerMisnamed.__doc__} ({service.worker.name!r} is there as {name!r})")
        await provide([*services.values()], settings)
        for stage in start_stages(services.values()):
            for service in stage:
                await service.start()
                started.append(service)
            await asyncio.gather(*(service.wait_ready() for service in stage))
        async with running(MetricsReports(services).keep_telling(settings), "metrics"):
            yield
    finally:
        for last in (False, True):
            await asyncio.gather(*(_drain(s, health) for s in started if s.worker.stops_last is last))
        for transport in transports.values():
            await transport.close()


async def _drain(service: Service, health: HealthFolder) -> None:
    """Drain a worker; until it has, its health file says how many messages it still handles."""
    async with running(_report_work(service, health), f"{service.worker.name} drains"):
        await service.drain()
    health.forget(service.worker.name)


async def _report_work(service: Service, health: HealthFolder) -> None:
    while True:
        health.report(service.worker.name, State.UNREADY, at_work=service.at_work)
        await asyncio.sleep(_REPORT_S)


def start_stages(services: Iterable[Service]) -> list[list[Service]]:
    """The services in the order in which they start, those together that may start together."""
    stages: dict[int, list[Service]] = defaultdict(list)
    for service in services:
        stages[service.worker.start_stage].append(service)
    return [stages[number] for number in sorted(stages)]
