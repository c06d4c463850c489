"""Metrics of the whole fleet for Prometheus: what its processes report, workers, queues, dead letters."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta

from fastapi import APIRouter, Request
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Metric, generate_latest

from gateway.access_control import METRICS
from gateway.backend import DEAD_SUFFIX, QUEUE_PREFIX, Backend
from gateway.event_feed import WorkerInstance, latest
from gateway.queue_ages import QueueAges
from gateway.reported_metrics import Families
from mindbus.bus.connection import find_broker
from mindbus.logs import logger
from mindbus.management import ManagementUnavailable, QueueState, open_management

_MISSED_REPORTS = 3

router = APIRouter()


class FleetMetrics:
    """The exposition of a fleet, seen from its gateway; ages of queues are as exact as it is asked often."""

    def __init__(self, backend: Backend) -> None:
        self._backend, self._ages = backend, QueueAges()

    async def exposition(self) -> bytes:
        """In Prometheus's text format."""
        now, feed = self._backend.clock(), self._backend.events
        silent_after = timedelta(seconds=_MISSED_REPORTS * (self._backend.settings.metrics_interval_s or 1))
        own = [_workers(feed.workers), *await self._queues()]
        return await asyncio.to_thread(lambda: _exposed([*feed.metrics.families(now, silent_after), *own]))

    async def _queues(self) -> list[Metric]:
        is_up = Metric("mindbus_management_up", "Whether RabbitMQ's management API answers", "gauge")
        settings = self._backend.settings
        try:
            queues = await open_management(settings, find_broker(settings)).queues(QUEUE_PREFIX)
        except ManagementUnavailable as error:
            logger().warning("no metrics of queues", reason=str(error))
            is_up.add_sample(is_up.name, {}, 0)
            return [is_up]
        is_up.add_sample(is_up.name, {}, 1)
        dead = [queue for queue in queues if queue.name.endswith(DEAD_SUFFIX)]
        alive = [queue for queue in queues if queue not in dead]
        return [is_up, *self._live(alive), _dead_letters(dead)]

    def _live(self, queues: list[QueueState]) -> Iterable[Metric]:
        messages = Metric("mindbus_queue_messages", "Messages in a queue, ready or unacked", "gauge")
        consumers = Metric("mindbus_queue_consumers", "Consumers of a queue", "gauge")
        age = Metric("mindbus_queue_age_seconds", "For how long at least its first message has waited", "gauge")
        ages = self._ages.observe(queues, self._backend.clock())
        for queue in queues:
            name = {"queue": queue.name.removeprefix(QUEUE_PREFIX)}
            messages.add_sample(messages.name, {**name, "state": "ready"}, queue.ready)
            messages.add_sample(messages.name, {**name, "state": "unacked"}, queue.unacked)
            consumers.add_sample(consumers.name, name, queue.consumers)
            age.add_sample(age.name, name, ages[queue.name])
        return messages, consumers, age


def _dead_letters(queues: list[QueueState]) -> Metric:
    letters = Metric("mindbus_dead_letters", "Messages that could not be handled, by the service", "gauge")
    for queue in queues:
        service = queue.name.removeprefix(QUEUE_PREFIX).removesuffix(DEAD_SUFFIX)
        letters.add_sample(letters.name, {"service": service}, queue.depth)
    return letters


def _workers(workers: list[WorkerInstance]) -> Metric:
    ready = Metric("mindbus_worker_ready", "Whether an instance of the worker consumes", "gauge")
    for worker in latest(workers):
        is_ready = worker.state == "ready" and not worker.is_silent
        ready.add_sample(ready.name, {"service": worker.service}, int(is_ready))
    return ready


def _exposed(families: list[Metric]) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Families(families))
    return generate_latest(registry)


@router.get(METRICS, include_in_schema=False)
async def metrics(request: Request) -> Response:
    """The metrics of the fleet; the access control has asked for an operator, or the token of metrics."""
    fleet: FleetMetrics = request.app.state.fleet_metrics
    return Response(await fleet.exposition(), media_type=CONTENT_TYPE_LATEST)
