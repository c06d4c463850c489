"""A tiny service of the tests' own: it greets, and fails in every way there is."""

import asyncio
from datetime import timedelta

from pydantic import BaseModel, Field

from bus_schema.envelope import Envelope
from bus_schema.messages import Command, Event, Nothing, Query
from bus_schema.replies import Code
from mindbus import (
    MessageContext,
    PermanentFailure,
    Rejected,
    TemporaryFailure,
    Worker,
    WorkerContext,
    on_command,
    on_event,
    on_topic,
)


class Greeting(BaseModel):
    text: str
    times_seen: int = 0


class Greet(Command[Greeting], domain="greeter", action="greet"):
    """Say hello."""

    name: str
    note: str = Field(default="", max_length=6_000_000)


class Count(Query[Greeting], domain="greeter", action="count"):
    """How often somebody was greeted."""

    name: str


class Misbehave(Command[Nothing], domain="greeter", action="misbehave"):
    """Fail in a given way, so many times; then succeed."""

    how: str
    times: int = 1_000
    delay_ms: int | None = None


class Hold(Command[Nothing], domain="greeter", action="hold"):
    """Take until somebody opens the gate."""

    name: str = ""


class Recite(Command[Greeting], domain="greeter", action="recite"):
    """Say a text word by word."""

    text: str


class Greeted(Event, topic="greeting", name="greeted"):
    """Somebody has been greeted."""

    name: str
    text: str = ""


class Greeter(Worker):
    """Keeps what it has done in plain lists, for tests to look at."""

    name = "greeter"
    attempts = 4

    def __init__(self, context: WorkerContext) -> None:
        self.bus = context.bus
        self.greeted: list[str] = []
        self.misbehaved: list[str] = []
        self.fixed = False
        self.held = 0
        self.gate = asyncio.Event()
        self.attempts_seen: list[int] = []

    @on_command
    async def greet(self, command: Greet) -> tuple[Greeting, Greeted]:
        self.greeted.append(command.name)
        text = f"Hello, {command.name}!"
        return Greeting(text=text, times_seen=len(command.note)), Greeted(name=command.name, text=command.note)

    @on_command
    async def count(self, command: Count) -> Greeting:
        return Greeting(text=command.name, times_seen=self.greeted.count(command.name))

    @on_command
    async def misbehave(self, command: Misbehave, context: MessageContext) -> None:
        self.misbehaved.append(context.message_id)
        self.attempts_seen.append(context.attempt)
        if self.fixed or self.misbehaved.count(context.message_id) > command.times:
            return
        delay = timedelta(milliseconds=command.delay_ms) if command.delay_ms else None
        failures: dict[str, Exception] = {
            "bug": ZeroDivisionError("a mistake of ours"),
            "temporary": TemporaryFailure("not ready yet", delay),
            "permanent": PermanentFailure("never", Code.INVALID),
            "refused": Rejected(Code.NOT_FOUND, "no such thing", {"looked_for": "it"}),
        }
        raise failures[command.how]

    @on_command
    async def recite(self, command: Recite, context: MessageContext) -> Greeting:
        for word in command.text.split():
            await context.say(f"{word} ")
        return Greeting(text=command.text)

    @on_command
    async def hold(self, command: Hold) -> None:
        self.held += 1
        await self.gate.wait()


class Listener(Worker):
    """Hears greetings, typed; asks back within the handler."""

    name = "listener"

    def __init__(self, context: WorkerContext) -> None:
        self.bus = context.bus
        self.heard: list[tuple[str, int]] = []

    @on_event
    async def note(self, event: Greeted) -> None:
        answer = await self.bus.request(Count(name=event.name), timeout_s=10)
        self.heard.append((event.name, answer.times_seen))


class Eavesdropper(Worker):
    """Hears a whole topic, known types or not."""

    name = "eavesdropper"

    def __init__(self, context: WorkerContext) -> None:
        self.heard: list[Envelope] = []

    @on_topic("greeting")
    async def overhear(self, envelope: Envelope) -> None:
        self.heard.append(envelope)
