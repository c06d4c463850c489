"""Base class of agents that process the fragments of dialogues."""

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from bus_schema.data import DeleteUser, Removed
from bus_schema.dialogue import DialogueFragment
from bus_schema.envelope import Envelope
from bus_schema.fleet import AgentActivityStarted, AgentResult
from bus_schema.messages import Event, Message
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import Send, on_command, on_event
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.errors import Unroutable
from mindbus.logs import logger
from mindbus.sdk.agent_state import AgentStateStore, OutgoingMessage
from mindbus.sdk.artifacts import open_artifacts
from mindbus.sdk.conversations import Conversations
from mindbus.sdk.requests import in_id_scope

StateT = TypeVar("StateT", bound=BaseModel)


class NoNotes(BaseModel):
    """State of an agent that keeps nothing besides the outcomes of a user's last fragments."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ProcessingAgent(Worker, ABC, Generic[StateT]):
    """Receives every fragment of every dialogue, on a queue of its own: give it a name, a `state` and `process`.

    A fragment is processed once: the new state is stored together with the messages about it, so that a crash repeats
    neither. Fragments of one key are processed in order, keys in parallel.
    """

    state: ClassVar[type[BaseModel]]
    concurrency = 16

    def __init__(self, context: WorkerContext) -> None:
        self.bus = context.bus.acting_as(self.identity, service=self.name)
        self.clock = context.clock
        self.artifacts = open_artifacts(self.bus, context.settings, context.clock)
        self.conversations = Conversations(
            self.bus, self.artifacts, largest_inline_bytes=context.settings.max_body_bytes // 2
        )
        self.state_store: AgentStateStore[StateT] = AgentStateStore(self.bus, self.name, self.state)  # type: ignore[arg-type]

    @abstractmethod
    async def process(self, fragment: DialogueFragment, state: StateT) -> tuple[StateT, Sequence[Event | Send]]:
        """The state after a fragment, with events to publish and commands to send.

        The fragment has the text of all its messages. A command to a service that was never started is dropped.
        """

    def orders(self, fragment: DialogueFragment, messages: Sequence[OutgoingMessage]) -> Sequence[Send]:
        """Commands because of a fragment, derived from the messages about it, the same after a crash.

        Override to add commands that can be derived from the events and so need not be stored with them.
        """
        return [message for message in messages if isinstance(message, Send)]

    def key(self, user_id: str) -> str:
        """The key of the state that a user's fragments change: by default a state per user."""
        return user_id

    def without(self, state: StateT, user_id: str) -> tuple[StateT | None, dict[str, int]]:
        """A state without a user, None where nothing is left, with the number of removed things by kind.

        Override along with `key`: by default the state is the user's alone.
        """
        return (None, {"notes": 1}) if self.key(user_id) == user_id else (state, {})

    async def forgotten(self, user_id: str) -> None:
        """Override for what follows the removal of a user."""

    @property
    def identity(self) -> str:
        """Identity of an agent, not of a service."""
        return f"agent.{self.name}"

    def order_key(self, message: Message | Envelope) -> str | None:
        """The key of the state: its fragments are processed one after the other."""
        return self.key(message.user_id) if isinstance(message, DialogueFragment | DeleteUser) else None

    async def start(self) -> None:
        await self.artifacts.start()

    async def stop(self) -> None:
        await self.artifacts.stop()

    @on_event
    async def process_fragment(self, fragment: DialogueFragment, context: MessageContext) -> list[OutgoingMessage]:
        began = time.monotonic()
        about = fragment.fragment_id
        await self.bus.publish(AgentActivityStarted(agent=self.name, about=about))
        complete = await self.conversations.whole(fragment)
        try:
            messages = await self.state_store.process_once(
                self.key(fragment.user_id), about, lambda state: self.process(complete, state)
            )
        except Exception:
            failed = self._result(about, "failed", began)
            await in_id_scope(f"failed/{context.attempt}", lambda: self.bus.publish(failed, trace=context.trace_id))
            raise
        await self.apply(complete, messages)
        await in_id_scope("orders", lambda: self._order(self.orders(complete, messages)))
        await self.after(fragment)
        return [
            *(message for message in messages if not isinstance(message, Send)),
            self._result(about, "found" if messages else "nothing", began),
        ]

    @on_command
    async def delete_user(self, command: DeleteUser, context: MessageContext) -> Removed:
        """Delete what comes from a user; what comes from others stays."""
        user_id = command.user_id
        counts: dict[str, int] = {}

        def without_user(state: StateT) -> StateT | None:
            remaining, removed = self.without(state, user_id)
            counts.update(removed)
            return remaining

        await self.state_store.forget(self.key(user_id), user_id, without_user)
        await self.forgotten(user_id)
        return Removed.of(counts)

    async def apply(self, fragment: DialogueFragment, messages: Sequence[OutgoingMessage]) -> None:
        """Override to apply the outcome elsewhere before it is published; repeated after a crash."""

    async def after(self, fragment: DialogueFragment) -> None:
        """Override for what follows a new state; repeated after a crash."""

    async def _order(self, orders: Sequence[Send]) -> None:
        """Send, confirmed before the fragment is acknowledged; a crash repeats them under the same ids."""
        for order in orders:
            try:
                await self.bus.send(order.command, to=order.service, trace=order.trace)
            except Unroutable as error:
                logger().info("command dropped", type=order.command.wire.type, reason=str(error))

    def _result(self, about: str, outcome: str, began: float) -> AgentResult:
        took_ms = int(1000 * (time.monotonic() - began))
        return AgentResult.model_validate({"agent": self.name, "about": about, "outcome": outcome, "took_ms": took_ms})
