"""What a process of the benchmark is told, and what it tells."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import BaseModel

from benchmarks.orders import PlaceOrder, Receipt

PREFETCH = 100
# Confirms outstanding at a time.
WINDOW = 100
# How many ask at a time, one after the other.
CALLERS = (1, 50)

Role = Literal["handle", "publish", "ask"]
Name = Literal["mindbus", "faststream", "aio_pika"]
NAMES: tuple[Name, ...] = ("mindbus", "faststream", "aio_pika")


class Job(BaseModel):
    """One process's part in one measurement; `service` names the queue, which nobody used before."""

    contestant: Name
    role: Role
    amqp_url: str
    data_dir: Path
    service: str
    messages: int = 0


class Spent(BaseModel):
    """How long it took by the clock that all processes share, and how much of this process's CPU."""

    began_s: float
    ended_s: float
    cpu_s: float


class Handled(Spent):
    """What a worker saw; `serials` are those of the messages in the order of their handling."""

    serials: list[int]


class Asked(BaseModel):
    """How long each request took, by the number of callers at a time."""

    took_ms: dict[int, list[float]]


class Contestant(Protocol):
    """A library, used as its documentation says, over the same kind of queue with the same prefetch."""

    def worker(self, job: Job, handle: Callable[[PlaceOrder], Receipt]) -> AbstractAsyncContextManager[None]:
        """Consume until the block ends, each message acknowledged after it was handled."""

    def publisher(self, job: Job) -> AbstractAsyncContextManager[Callable[[PlaceOrder], Awaitable[object]]]:
        """Declare the queue; publish to it, each call returning with the confirm."""

    def principal(self, job: Job) -> AbstractAsyncContextManager[Callable[[PlaceOrder], Awaitable[Receipt]]]:
        """Send, then wait for the typed answer."""


def queue_name(contestant: Name, service: str) -> str:
    """MindBus derives its own; the others take what they are given."""
    return f"mb.q.{service}" if contestant == "mindbus" else service


def queue_arguments() -> dict[str, Any]:
    """The same promises for everybody: as MindBus declares its own queue of commands."""
    return {
        "x-queue-type": "quorum",
        "x-delivery-limit": 5,
        "x-dead-letter-exchange": "bench.dead",
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
        "x-max-length": 100_000,
        "x-max-length-bytes": 1 << 30,
    }
