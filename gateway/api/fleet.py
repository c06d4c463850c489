"""Workers, queues and dead letters, over HTTP."""

from typing import Annotated, Any, Self

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, model_validator

from bus_schema.envelope import NotAnEnvelope, from_wire
from bus_schema.identities import ServiceName
from bus_schema.replies import Code
from gateway.backend import Backend, OperatorsBackend
from gateway.event_feed import WorkerInstance
from mindbus.bus.connection import find_broker
from mindbus.bus.deadletters import DeadLetter, DeadLetters
from mindbus.errors import Rejected

router = APIRouter(tags=["fleet"])

_MAX_LETTERS = 10_000


class NoSuchDeadLetter(Rejected, code=Code.NOT_FOUND):
    """There is no such dead letter (any more)."""


class NoSuchService(Rejected, code=Code.NOT_FOUND):
    """No service of this name has dead letters; look at the queues to see which ones do."""


class QueueInfo(BaseModel):
    """A queue, from RabbitMQ's management API."""

    name: str
    depth: int
    ready: int
    unacked: int
    consumers: int
    state: str


class DeadLetterInfo(BaseModel):
    """A message that could not be handled, with the reason."""

    message_id: str
    type: str
    service: str
    origin: str
    code: str
    reason: str
    attempt: int
    died_at: str
    requester: str
    trace_id: str


class DeadLetterDetails(DeadLetterInfo):
    """A dead letter with its body: the envelope, or the text if it is not one."""

    body: dict[str, Any] | str


class DeadLetterSelection(BaseModel):
    """Dead letters of a service: some by id, or all."""

    model_config = ConfigDict(extra="forbid")
    ids: list[str] | None = Field(default=None, min_length=1, max_length=1000)
    all: bool = False

    @model_validator(mode="after")
    def _ids_or_all(self) -> Self:
        if (self.ids is None) != self.all:
            raise ValueError("give either ids or all: true")
        return self

    def has(self, letter: DeadLetter) -> bool:
        return self.ids is None or letter.message_id in self.ids


class EditedDeadLetter(BaseModel):
    """The data that a dead letter should have had."""

    model_config = ConfigDict(extra="forbid")
    data: dict[str, Any]


class SettledDeadLetters(BaseModel):
    """Ids of the messages that were replayed or dropped."""

    message_ids: list[str]


@router.get("/workers")
async def workers(backend: OperatorsBackend) -> list[WorkerInstance]:
    """Worker instances with a heartbeat within the last hour."""
    return backend.feed.workers


@router.get("/queues")
async def queues(backend: OperatorsBackend, prefix: Annotated[str, Query(max_length=128)] = "mb.") -> list[QueueInfo]:
    """Queues with their depth and consumers."""
    return [QueueInfo.model_validate(queue, from_attributes=True) for queue in await backend.queues(prefix)]


@router.get("/dead-letters")
async def dead_letters(
    backend: OperatorsBackend,
    service: ServiceName | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> list[DeadLetterInfo]:
    """Up to `limit` dead letters of each service, oldest first."""
    return [_info(letter) for letter in await list_dead_letters(backend, service, limit)]


@router.get("/dead-letters/{service}/{message_id}")
async def dead_letter(service: ServiceName, message_id: str, backend: OperatorsBackend) -> DeadLetterDetails:
    """One dead letter with its body."""
    for letter in await list_dead_letters(backend, service, _MAX_LETTERS):
        if letter.message_id == message_id:
            return DeadLetterDetails(**_info(letter).model_dump(), body=body_of(letter))
    raise NoSuchDeadLetter


@router.post("/dead-letters/{service}/replay")
async def replay(service: ServiceName, chosen: DeadLetterSelection, backend: OperatorsBackend) -> SettledDeadLetters:
    """Send dead letters back to the queues where they failed, as first attempts."""
    letters = await _dead_letters(backend, service)
    return _settlement(await letters.replay(service, chosen.has, backend.account.identity))


@router.post("/dead-letters/{service}/{message_id}/replay")
async def replay_edited(
    service: ServiceName, message_id: str, edited: EditedDeadLetter, backend: OperatorsBackend
) -> SettledDeadLetters:
    """Send a dead letter back with new data; its id, type and requester stay the same."""
    letters = await _dead_letters(backend, service)
    for letter in await letters.look(service, _MAX_LETTERS):
        if letter.message_id == message_id:
            envelope = from_wire(letter.body).model_copy(update={"data": edited.data})
            return _settlement(
                await letters.replay_edited(service, message_id, envelope.to_wire(), backend.account.identity)
            )
    raise NoSuchDeadLetter


@router.post("/dead-letters/{service}/drop")
async def drop(service: ServiceName, chosen: DeadLetterSelection, backend: OperatorsBackend) -> SettledDeadLetters:
    """Delete dead letters permanently."""
    letters = await _dead_letters(backend, service)
    return _settlement(await letters.drop(service, chosen.has))


async def list_dead_letters(backend: Backend, service: str | None, limit: int) -> list[DeadLetter]:
    """At most `limit` of each service, the oldest first. Raises NoSuchService, BusUnavailable."""
    letters = await _dead_letters(backend, service)
    names = [service] if service else list(await backend.dead_letter_counts())
    return [letter for name in names for letter in await letters.look(name, limit)]


def body_of(letter: DeadLetter) -> dict[str, object] | str:
    """The envelope of a dead letter, or its text if it has none."""
    try:
        return from_wire(letter.body).model_dump(mode="json", exclude_none=True)
    except NotAnEnvelope:
        return letter.body.decode("utf-8", errors="replace")


async def _dead_letters(backend: Backend, service: str | None) -> DeadLetters:
    if service is not None and service not in await backend.dead_letter_counts():
        raise NoSuchService(message=f"{NoSuchService.__doc__} ({service})")
    return DeadLetters(find_broker(backend.settings))


def _info(letter: DeadLetter) -> DeadLetterInfo:
    return DeadLetterInfo.model_validate(letter, from_attributes=True)


def _settlement(letters: list[DeadLetter]) -> SettledDeadLetters:
    return SettledDeadLetters(message_ids=[letter.message_id for letter in letters])
