"""One delivery to a worker through its real pipeline, one run of a task, whole workers; all without a broker."""

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar, cast, overload

from pydantic import BaseModel

from bus_schema.envelope import Kind
from bus_schema.ids import uuid7
from bus_schema.messages import Command, Event, message_class
from bus_schema.replies import Reply
from mindbus.bus.claims import ClaimLost, Claims
from mindbus.bus.client import Client
from mindbus.bus.connection import connect, open_transport
from mindbus.bus.memory import MemoryBroker, MemoryTransport
from mindbus.bus.outcomes import Outcome
from mindbus.bus.sender import Sender
from mindbus.bus.topology import commands_queue, events_queue, rungs_of
from mindbus.bus.transport import Origin, Outgoing, Properties, RawCopy, properties_of
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.errors import ReplyError
from mindbus.runtime.processor import Processor
from mindbus.runtime.service import build, provide
from mindbus.runtime.worker_tasks import WorkerTasks
from mindbus.settings import Settings

ResultT = TypeVar("ResultT", bound=BaseModel)
EventT = TypeVar("EventT", bound=Event)


@dataclass(frozen=True)
class DeliveryResult(Generic[ResultT]):
    """The outcome of one delivery, or of one run of a task.

    `outcome` is `handled`, `retried`, `dead` or the code of a refusal; `error` is what the handler raised. `published`
    are the events and `sent` the commands that the message caused, with their envelopes in `outgoing`.
    """

    outcome: str
    reply: Reply | None
    published: tuple[Event, ...]
    sent: tuple[Command[Any], ...]
    outgoing: tuple[Outgoing, ...]
    error: Exception | None
    dead_letter: RawCopy | None
    _result: type[BaseModel] | None = field(default=None, repr=False)

    @property
    def result(self) -> ResultT:
        """The command's result. Raises what the handler raised, or ReplyError for a stored refusal."""
        if self.error is not None:
            raise self.error
        if self.reply is None or self._result is None:
            raise AssertionError(f"there is no reply: {self.outcome}")
        if self.reply.status == "error" and self.reply.code is not None:
            raise ReplyError(self.reply.code, self.reply.message, self.reply.details)
        return cast("ResultT", self._result.model_validate(self.reply.result or {}))

    def events(self, kind: type[EventT]) -> list[EventT]:
        return [event for event in self.published if isinstance(event, kind)]


@overload
async def deliver(
    worker: Worker,
    message: Command[ResultT],
    *,
    by: str = ...,
    trace: str | None = ...,
    message_id: str | None = ...,
    deadline: datetime | None = ...,
    **envelope: Any,
) -> DeliveryResult[ResultT]: ...
@overload
async def deliver(
    worker: Worker,
    message: Event,
    *,
    by: str = ...,
    trace: str | None = ...,
    message_id: str | None = ...,
    **envelope: Any,
) -> DeliveryResult[BaseModel]: ...
async def deliver(
    worker: Worker,
    message: Command[Any] | Event,
    *,
    by: str = "user.local",
    trace: str | None = None,
    message_id: str | None = None,
    deadline: datetime | None = None,
    **envelope: Any,
) -> DeliveryResult[Any]:
    """Run one message through decoding, middleware, deduplication, handler and error mapping of a worker.

    The worker need not run; where it opens something in `start`, start it first. Delivering the same `message_id`
    again shows how a duplicate ends. Other keywords set fields of the envelope, such as `time`, `source` or `mbhops`.
    Raises what the pipeline does not map: a failure of its own.
    """
    claims = _MemoryClaims()
    requester = Sender("test", "1", by, "reply.test.1", claims)
    where: Any = {"trace": trace, "message_id": message_id or str(uuid7())}
    if isinstance(message, Command):
        outgoing = await requester.command(message, to=worker.name, wants_reply=True, deadline=deadline, **where)
        queue = commands_queue(worker.name)
    else:
        outgoing, queue = await requester.event(message, **where), events_queue(worker.name)
    incoming = _Delivery.of(outgoing, envelope)
    transport = _RecordingTransport()
    processor = Processor(worker, _sender(worker, claims), transport, rungs_of("1s"), queue, {})
    decoded = await processor.decode(incoming)
    if isinstance(decoded, Outcome):
        outcome = decoded
    else:
        outcome = await processor.outcome_of(decoded, incoming)
        worker.inbox.mark_published(worker.name, outgoing.envelope.id)
    return _delivery_result(outcome, [*transport.sent, *outcome.outgoing], message)


async def run_task(worker: Worker, method: str) -> DeliveryResult[BaseModel]:
    """Run an `@every` or `@background` method of a worker, or of one of its routers, once, in a unit of work.

    Raises what the method raises.
    """
    task = next(task for task in worker.routes.tasks if task.method == method)
    tasks = WorkerTasks(worker, _sender(worker, _MemoryClaims()), _RecordingTransport())
    return _delivery_result(Outcome("handled"), await tasks.step(task), None)


def _sender(worker: Worker, claims: Claims) -> Sender:
    return Sender(worker.name, "1", worker.identity, f"reply.{worker.name}.1", claims)


def _delivery_result(
    outcome: Outcome, outgoing: Sequence[Outgoing], message: Command[Any] | Event | None
) -> DeliveryResult[Any]:
    messages = [_message(sent) for sent in outgoing if sent.envelope.mbkind is not Kind.REPLY]
    replies = [Reply.model_validate(sent.envelope.data) for sent in outgoing if sent.envelope.mbkind is Kind.REPLY]
    return DeliveryResult(
        outcome=outcome.name,
        reply=next((reply for reply in reversed(replies) if reply.status != "partial"), None),
        published=tuple(message for message in messages if isinstance(message, Event)),
        sent=tuple(message for message in messages if isinstance(message, Command)),
        outgoing=tuple(outgoing),
        error=outcome.error,
        dead_letter=outcome.copy if outcome.name == "dead" else None,
        _result=message.wire.result if isinstance(message, Command) else None,
    )


def _message(outgoing: Outgoing) -> object:
    return message_class(outgoing.envelope.type).model_validate(outgoing.envelope.data or {})


class _MemoryClaims(Claims):
    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    async def _keep(self, content: bytes) -> str:
        key = f"claims/{hashlib.sha256(content).hexdigest()}"
        self._kept[key] = content
        return key

    async def _fetch(self, key: str) -> bytes:
        if key not in self._kept:
            raise ClaimLost(ClaimLost.__doc__)
        return self._kept[key]


class _RecordingTransport(MemoryTransport):
    """Keeps what is published while the handler runs, such as streamed parts of an answer."""

    def __init__(self) -> None:
        super().__init__(MemoryBroker())
        self.sent: list[Outgoing] = []

    async def publish(self, message: Outgoing | RawCopy) -> None:
        if isinstance(message, Outgoing):
            self.sent.append(message)


@dataclass
class _Delivery:
    """An incoming message whose settlement nobody looks at."""

    body: bytes
    exchange: str
    routing_key: str
    properties: Properties
    headers: dict[str, Any] = field(default_factory=dict)
    origin: Origin | None = None

    @classmethod
    def of(cls, outgoing: Outgoing, changes: dict[str, Any]) -> "_Delivery":
        envelope = outgoing.envelope.model_copy(update=changes)
        return cls(envelope.to_wire(), outgoing.exchange, outgoing.routing_key, properties_of(envelope))

    async def ack(self) -> None:
        """Nothing to settle."""

    async def requeue(self) -> None:
        """Nothing to settle."""


@asynccontextmanager
async def running(
    *makers: Callable[[WorkerContext], Worker], settings: Settings, identity: str = "user.local"
) -> AsyncIterator[Client]:
    """Run workers on whatever bus the settings name, each with a connection of its own; yields a client."""
    names = [getattr(make, "name", "") or "worker" for make in makers]
    transports = [open_transport(settings, name) for name in names]
    services = [
        build(make, name, settings, transport) for make, name, transport in zip(makers, names, transports, strict=True)
    ]
    try:
        await provide(services, settings)
        for service in services:
            await service.start()
        for service in services:
            await service.wait_ready()
        async with connect(identity, settings=settings) as bus:
            yield bus
    finally:
        for service in reversed(services):
            await service.drain()
        for transport in transports:
            await transport.close()
