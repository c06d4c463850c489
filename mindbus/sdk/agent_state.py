"""State that an agent keeps between messages, stored together with what it publishes because of them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Generic, Self, TypeVar
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
from mindbus.sdk.requests import items_of, request_in_scope

StateT = TypeVar("StateT", bound=BaseModel)
OutgoingMessage = Event | Send | Publish

_NAMESPACE = "notes"
_MAX_OUTCOMES = 8


class StoredMessage(BaseModel):
    model_config = ConfigDict(frozen=True)
    type: str
    data: dict[str, JsonValue]
    service: str | None = None
    trace: str | None = None

    @classmethod
    def of(cls, message: OutgoingMessage) -> "StoredMessage":
        match message:
            case Send(command, service, trace):
                return cls(type=command.wire.type, data=command.model_dump(mode="json"), service=service, trace=trace)
            case Publish(event, trace):
                return cls(type=event.wire.type, data=event.model_dump(mode="json"), trace=trace)
        return cls(type=message.wire.type, data=message.model_dump(mode="json"))

    def is_about(self, user_id: str) -> bool:
        """Whether it names the user, or belongs to their dialogue."""
        return self.trace == conversation_trace(user_id) or _names(self.data, user_id)

    def message(self) -> OutgoingMessage:
        message = message_class(self.type).model_validate(self.data)
        if isinstance(message, Command):
            return Send(message, self.service, self.trace)
        assert isinstance(message, Event)
        return Publish(message, self.trace)


class MessageOutcome(BaseModel):
    """All that was published or sent because of one message."""

    model_config = ConfigDict(frozen=True)
    cause: str
    said: tuple[StoredMessage, ...] = ()


class StoredState(BaseModel, Generic[StateT]):
    """The value under one key: the state, the last outcomes, and `owed`, what is to be published without a cause."""

    model_config = ConfigDict(frozen=True)
    state: StateT
    turns: tuple[MessageOutcome, ...] = ()
    owed: tuple[StoredMessage, ...] = ()

    def without(self, user_id: str, state: StateT) -> Self:
        """A copy with another state and without the messages about a user."""
        turns = tuple(turn.model_copy(update={"said": _not_about(user_id, turn.said)}) for turn in self.turns)
        return self.model_copy(update={"state": state, "turns": turns, "owed": _not_about(user_id, self.owed)})

    def outcome(self, cause: str) -> MessageOutcome | None:
        return next((turn for turn in self.turns if turn.cause == cause), None)


class AgentStateStore(Generic[StateT]):
    """A state per key, kept by storage; it changes together with the messages about the change, or not at all.

    A message that comes again after a crash gets the same outcome and changes nothing. One instance writes at a time:
    an instance that meets another's version tries again. Raises TemporaryFailure, PermanentFailure, BusUnavailable.
    """

    def __init__(self, bus: Client, agent: str, state: type[StateT]) -> None:
        self._bus, self._agent, self._state = bus, agent, state
        self._stored = StoredState[state]  # type: ignore[valid-type]  # pydantic makes the class at run time
        # A lock exists as long as somebody holds or awaits it.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def process_once(
        self, key: str, cause: str, decide: Callable[[StateT], Awaitable[tuple[StateT, Sequence[OutgoingMessage]]]]
    ) -> list[OutgoingMessage]:
        """The messages because of a cause; `decide` runs once for it, however often this is called."""
        async with self._lock(key):
            stored, version = await self._read(key)
            outcome = stored.outcome(cause)
            if outcome is None:
                state, messages = await decide(stored.state)
                outcome = MessageOutcome(cause=cause, said=tuple(map(StoredMessage.of, messages)))
                turns = (*stored.turns, outcome)[-_MAX_OUTCOMES:]
                await self._write(key, version, stored.model_copy(update={"state": state, "turns": turns}))
            return [record.message() for record in outcome.said]

    async def publish_due(
        self,
        key: str,
        decide: Callable[[StateT], tuple[StateT, Sequence[Event]]],
        publish: Callable[[Event], Awaitable[object]],
    ) -> None:
        """Publish what is due without a message; at least once, twice after a crash."""
        async with self._lock(key):
            stored, version = await self._read(key)
            state, events = decide(stored.state)
            owed = (*stored.owed, *map(StoredMessage.of, events))
            if not owed:
                return
            if events:
                stored = stored.model_copy(update={"state": state, "owed": owed})
                version = await self._write(key, version, stored)
            for record in owed:
                event = message_class(record.type).model_validate(record.data)
                assert isinstance(event, Event)
                await publish(event)
            await self._write(key, version, stored.model_copy(update={"owed": ()}))

    async def change(self, key: str, change: Callable[[StateT], StateT]) -> None:
        async with self._lock(key):
            stored, version = await self._read(key)
            await self._write(key, version, stored.model_copy(update={"state": change(stored.state)}))

    async def forget(self, key: str, user_id: str, without: Callable[[StateT], StateT | None]) -> None:
        """Store a state without a user; None deletes the key."""
        async with self._lock(key):
            stored, version = await self._read(key)
            if version:
                state = without(stored.state)
                await self._write(key, version, None if state is None else stored.without(user_id, state))

    async def state(self, key: str) -> StateT:
        """The state under a key, a new one where there is none."""
        return (await self._read(key))[0].state

    async def states(self) -> AsyncIterator[tuple[str, StateT]]:
        query = GetAgentData(agent=self._agent, namespace=_NAMESPACE)
        async for datum in items_of(self._bus, query):
            yield datum.key, self._parse(datum).state

    def _lock(self, key: str) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())

    async def _read(self, key: str) -> tuple[StoredState[StateT], int]:
        page = await request_in_scope(self._bus, GetAgentData(agent=self._agent, namespace=_NAMESPACE, key=key))
        if not page.items:
            return self._stored(state=self._state()), 0
        return self._parse(page.items[0]), page.items[0].version

    def _parse(self, datum: AgentDatum) -> StoredState[StateT]:
        try:
            return self._stored.model_validate(datum.value)
        except ValidationError as error:
            reason = f"what {self._agent} keeps under {datum.key} is not a {self._state.__name__}: {explain(error)}"
            raise PermanentFailure(reason) from error

    async def _write(self, key: str, version: int, stored: StoredState[StateT] | None) -> int:
        command = PutAgentData(
            agent=self._agent,
            namespace=_NAMESPACE,
            key=key,
            value=stored.model_dump(mode="json") if stored is not None else None,
            expected_version=version,
        )
        try:
            return (await request_in_scope(self._bus, command)).version
        except Rejected as error:
            if error.code is Code.CONFLICT:
                raise TemporaryFailure(f"{key}: another instance has written meanwhile") from error
            raise


def _not_about(user_id: str, messages: Iterable[StoredMessage]) -> tuple[StoredMessage, ...]:
    return tuple(message for message in messages if not message.is_about(user_id))


def _names(value: JsonValue, user_id: str) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return any(_names(item, user_id) for item in value)
    return value == user_id
