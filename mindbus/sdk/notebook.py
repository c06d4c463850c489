"""What an agent keeps between messages, together with what it has said because of them."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Generic, Self, TypeVar
from weakref import WeakValueDictionary

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from bus_schema.agent_data import AgentDatum, GetAgentData, PutAgentData
from bus_schema.dialogue import conversation_trace
from bus_schema.envelope import explain
from bus_schema.messages import Command, Event, message_class
from bus_schema.replies import Code
from mindbus.bus.client import Client
from mindbus.bus.handlers import Publish, Send
from mindbus.errors import PermanentFailure, Rejected, TemporaryFailure
from mindbus.sdk.aside import aside
from mindbus.sdk.asking import ask

StateT = TypeVar("StateT", bound=BaseModel)
Said = Event | Send | Publish

_NAMESPACE = "notes"
_MOST_TOLD = 8


class Saying(BaseModel):
    """One message that is to go out."""

    model_config = ConfigDict(frozen=True)
    type: str
    data: dict[str, JsonValue]
    service: str | None = None
    trace: str | None = None

    @classmethod
    def of(cls, said: Said) -> "Saying":
        match said:
            case Send(command, service, trace):
                return cls(type=command.wire.type, data=command.model_dump(mode="json"), service=service, trace=trace)
            case Publish(event, trace):
                return cls(type=event.wire.type, data=event.model_dump(mode="json"), trace=trace)
        return cls(type=said.wire.type, data=said.model_dump(mode="json"))

    def is_about(self, user_id: str) -> bool:
        """Whether it names the user, or belongs to their dialogue."""
        return self.trace == conversation_trace(user_id) or _names(self.data, user_id)

    def said(self) -> Said:
        """The message itself, for a handler to return."""
        message = message_class(self.type).model_validate(self.data)
        if isinstance(message, Command):
            return Send(message, self.service, self.trace)
        assert isinstance(message, Event)
        return Publish(message, self.trace)


class Turn(BaseModel):
    """All that was said because of one message."""

    model_config = ConfigDict(frozen=True)
    cause: str
    said: tuple[Saying, ...] = ()


class Page(BaseModel, Generic[StateT]):
    """What is kept under one key: the state, what was said last; `owed` is to be said although no message asks."""

    model_config = ConfigDict(frozen=True)
    state: StateT
    turns: tuple[Turn, ...] = ()
    owed: tuple[Saying, ...] = ()

    def without(self, user_id: str, state: StateT) -> Self:
        """The page with what is left of its state; what was said about the user is not said again."""
        turns = tuple(
            turn.model_copy(update={"said": tuple(each for each in turn.said if not each.is_about(user_id))})
            for turn in self.turns
        )
        owed = tuple(each for each in self.owed if not each.is_about(user_id))
        return self.model_copy(update={"state": state, "turns": turns, "owed": owed})

    def turn(self, cause: str) -> Turn | None:
        return next((each for each in self.turns if each.cause == cause), None)


class Notebook(Generic[StateT]):
    """A state per key, kept by storage: it changes together with what is said about it, or not at all.

    A message that comes again after a crash is told the same, and changes nothing. One instance writes at a time:
    who meets another's version tries again. Raises TemporaryFailure, PermanentFailure, BusUnavailable.
    """

    def __init__(self, bus: Client, agent: str, state: type[StateT]) -> None:
        self._bus, self._agent, self._state = bus, agent, state
        self._page = Page[state]  # type: ignore[valid-type]  # pydantic makes the class at run time
        # As long as somebody holds or awaits it.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def turn(
        self, key: str, cause: str, think: Callable[[StateT], Awaitable[tuple[StateT, Sequence[Said]]]]
    ) -> list[Said]:
        """What there is to say because of a message: thought once, however often it is asked."""
        async with self._alone(key):
            page, version = await self._read(key)
            turn = page.turn(cause)
            if turn is None:
                state, said = await think(page.state)
                turn = Turn(cause=cause, said=tuple(map(Saying.of, said)))
                turns = (*page.turns, turn)[-_MOST_TOLD:]
                await self._write(key, version, page.model_copy(update={"state": state, "turns": turns}))
            return [each.said() for each in turn.said]

    async def unasked(
        self,
        key: str,
        think: Callable[[StateT], tuple[StateT, Sequence[Event]]],
        tell: Callable[[Event], Awaitable[object]],
    ) -> None:
        """Say what time brings about; whoever hears it may hear it twice after a crash, never not at all."""
        async with self._alone(key):
            page, version = await self._read(key)
            state, said = think(page.state)
            owed = (*page.owed, *map(Saying.of, said))
            if not owed:
                return
            if said:
                page = page.model_copy(update={"state": state, "owed": owed})
                version = await self._write(key, version, page)
            for each in owed:
                event = message_class(each.type).model_validate(each.data)
                assert isinstance(event, Event)
                await tell(event)
            await self._write(key, version, page.model_copy(update={"owed": ()}))

    async def change(self, key: str, change: Callable[[StateT], StateT]) -> None:
        """Keep a new state about which there is nothing to say."""
        async with self._alone(key):
            page, version = await self._read(key)
            await self._write(key, version, page.model_copy(update={"state": change(page.state)}))

    async def forget(self, key: str, user_id: str, without: Callable[[StateT], StateT | None]) -> None:
        """Keep what is left of a state without a user; where that is nothing, the page goes."""
        async with self._alone(key):
            page, version = await self._read(key)
            if version:
                state = without(page.state)
                await self._write(key, version, None if state is None else page.without(user_id, state))

    async def state(self, key: str) -> StateT:
        """What is known under a key by now."""
        return (await self._read(key))[0].state

    async def states(self) -> AsyncIterator[tuple[str, StateT]]:
        """Everything, by key."""
        wanted = GetAgentData(agent=self._agent, namespace=_NAMESPACE)
        while True:
            found = await self._ask(wanted)
            for datum in found.items:
                yield datum.key, self._parsed(datum).state
            if found.next_cursor is None:
                return
            wanted = wanted.model_copy(update={"cursor": found.next_cursor})

    def _alone(self, key: str) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())

    async def _read(self, key: str) -> tuple[Page[StateT], int]:
        found = await self._ask(GetAgentData(agent=self._agent, namespace=_NAMESPACE, key=key))
        if not found.items:
            return self._page(state=self._state()), 0
        return self._parsed(found.items[0]), found.items[0].version

    def _parsed(self, datum: AgentDatum) -> Page[StateT]:
        try:
            return self._page.model_validate(datum.value)
        except ValidationError as invalid:
            reason = f"what {self._agent} keeps under {datum.key} is not a {self._state.__name__}: {explain(invalid)}"
            raise PermanentFailure(reason) from invalid

    async def _write(self, key: str, version: int, page: Page[StateT] | None) -> int:
        command = PutAgentData(
            agent=self._agent,
            namespace=_NAMESPACE,
            key=key,
            value=page.model_dump(mode="json") if page is not None else None,
            expected_version=version,
        )
        try:
            return (await aside(secrets.token_hex(8), lambda: ask(self._bus, command))).version
        except Rejected as no:
            if no.code is Code.CONFLICT:
                raise TemporaryFailure(f"{key}: somebody else has written meanwhile") from no
            raise

    async def _ask(self, query: GetAgentData) -> Any:
        return await aside(secrets.token_hex(8), lambda: ask(self._bus, query))


def _names(value: JsonValue, user_id: str) -> bool:
    if isinstance(value, dict):
        return any(_names(each, user_id) for each in value.values())
    if isinstance(value, list):
        return any(_names(each, user_id) for each in value)
    return value == user_id
