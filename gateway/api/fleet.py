"""Workers, queues, dead letters, over HTTP."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Self

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, model_validator

from bus_schema.fleet import State
from bus_schema.identities import ServiceName
from gateway.api.dependencies import Desk
from gateway.backend import LOCAL_USER
from gateway.desks.fleet import body_of
from mindbus.bus.deadletters import DeadLetter

router = APIRouter(tags=["fleet"])


class WorkerInfo(BaseModel):
    """An instance of a worker, as its last heartbeat showed it."""

    service: str
    instance: str
    state: State
    version: str
    at: datetime
    is_silent: bool


class QueueInfo(BaseModel):
    """A queue, as the broker sees it."""

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
    """The same with what is in it."""

    body: dict[str, Any] | str


class DeadLetterSelection(BaseModel):
    """Which dead letters: by id, or all of the service."""

    model_config = ConfigDict(extra="forbid")
    ids: list[str] | None = Field(default=None, min_length=1, max_length=1000)
    all: bool = False

    @model_validator(mode="after")
    def _says_which(self) -> Self:
        if (self.ids is None) != self.all:
            raise ValueError("give either ids or all: true")
        return self


class SettledDeadLetters(BaseModel):
    """The dead letters that are none any more."""

    message_ids: list[str]


@router.get("/workers")
async def workers(desk: Desk) -> list[WorkerInfo]:
    """Every instance of a worker that was heard of within the hour."""
    return [WorkerInfo(**asdict(seen)) for seen in await desk.fleet()]


@router.get("/queues")
async def queues(desk: Desk, prefix: Annotated[str, Query(max_length=128)] = "mb.") -> list[QueueInfo]:
    """Queues with their depth and consumers."""
    return [QueueInfo.model_validate(queue, from_attributes=True) for queue in await desk.queues(prefix)]


@router.get("/dead-letters")
async def dead_letters(
    desk: Desk, service: ServiceName | None = None, limit: Annotated[int, Query(ge=1, le=1000)] = 50
) -> list[DeadLetterInfo]:
    """At most so many of each service, the oldest first."""
    return [_letter(letter) for letter in await desk.dead_letters(service, limit)]


@router.get("/dead-letters/{service}/{message_id}")
async def dead_letter(service: ServiceName, message_id: str, desk: Desk) -> DeadLetterDetails:
    """One dead letter whole."""
    letter = await desk.dead_letter(service, message_id)
    return DeadLetterDetails(**_letter(letter).model_dump(), body=body_of(letter))


@router.post("/dead-letters/{service}/replay")
async def replay(service: ServiceName, chosen: DeadLetterSelection, desk: Desk) -> SettledDeadLetters:
    """Send them back to where they failed, as first attempts."""
    return _settled(await desk.replay(service, chosen.ids, LOCAL_USER))


@router.post("/dead-letters/{service}/drop")
async def drop(service: ServiceName, chosen: DeadLetterSelection, desk: Desk) -> SettledDeadLetters:
    """Delete them for good."""
    return _settled(await desk.drop(service, chosen.ids))


def _letter(letter: DeadLetter) -> DeadLetterInfo:
    return DeadLetterInfo.model_validate(letter, from_attributes=True)


def _settled(letters: list[DeadLetter]) -> SettledDeadLetters:
    return SettledDeadLetters(message_ids=[letter.message_id for letter in letters])
