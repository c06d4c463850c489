"""The base of agents that make something of what was said."""

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from pydantic import BaseModel

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
from mindbus.sdk.artifacts import open_artifacts
from mindbus.sdk.aside import aside
from mindbus.sdk.conversations import Conversations
from mindbus.sdk.notebook import Notebook, Said

StateT = TypeVar("StateT", bound=BaseModel)


class ProcessingAgent(Worker, ABC, Generic[StateT]):
    """Hears every fragment of every dialogue, on a queue of its own: name it, give it a `state`, write `process`.

    A fragment is processed once: the new state is kept together with what is to be told, so that a crash in between
    repeats neither. Fragments of one key come in their order; keys run side by side.
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
        self.notebook: Notebook[StateT] = Notebook(self.bus, self.name, self.state)  # type: ignore[arg-type]

    @abstractmethod
    async def process(self, fragment: DialogueFragment, state: StateT) -> tuple[StateT, Sequence[Event | Send]]:
        """The state after a fragment, with what is to be told, to whom it may concern or to a service.

        All of its words are in it. A service that was never started here is told nothing.
        """

    def orders(self, fragment: DialogueFragment, said: Sequence[Said]) -> Sequence[Send]:
        """What services are to do because of a fragment, made of what was said about it, the same after a crash.

        Override where there is more than `process` returned: what can be made of its events need not be kept with them.
        """
        return [each for each in said if isinstance(each, Send)]

    def key(self, user_id: str) -> str:
        """Under which key the state is that a user's fragments change: everybody has their own, unless overridden."""
        return user_id

    def without(self, state: StateT, user_id: str) -> tuple[StateT | None, dict[str, int]]:
        """What is left of a state once a user is to be forgotten, with what was removed, counted by kind.

        Override along with `key`: of a state that is one user's alone nothing is left.
        """
        return (None, {"notes": 1}) if self.key(user_id) == user_id else (state, {})

    async def forgotten(self, user_id: str) -> None:
        """Override to do what follows from having forgotten a user."""

    @property
    def identity(self) -> str:
        """An agent, no service."""
        return f"agent.{self.name}"

    def order_key(self, message: Message | Envelope) -> str | None:
        """One fragment after the other changes a state."""
        return self.key(message.user_id) if isinstance(message, DialogueFragment | DeleteUser) else None

    async def start(self) -> None:
        """Open the way to what is told by pointer."""
        await self.artifacts.start()

    async def stop(self) -> None:
        """Close it."""
        await self.artifacts.stop()

    @on_event
    async def hear(self, fragment: DialogueFragment, context: MessageContext) -> list[Said]:
        began = time.monotonic()
        about = fragment.fragment_id
        await self.bus.publish(AgentActivityStarted(agent=self.name, about=about))
        whole = await self.conversations.whole(fragment)
        try:
            said = await self.notebook.turn(self.key(fragment.user_id), about, lambda state: self.process(whole, state))
        except Exception:
            failed = self._result(about, "failed", began)
            await aside(f"failed/{context.attempt}", lambda: self.bus.publish(failed, trace=context.trace_id))
            raise
        await aside("orders", lambda: self._order(self.orders(whole, said)))
        await self.after(fragment)
        return [
            *(each for each in said if not isinstance(each, Send)),
            self._result(about, "found" if said else "nothing", began),
        ]

    @on_command
    async def delete_user(self, command: DeleteUser, context: MessageContext) -> Removed:
        """Forget what a user has said; what others said stays."""
        context.require_operator()
        user_id = command.user_id
        counts: dict[str, int] = {}

        def forgetting(state: StateT) -> StateT | None:
            left, removed = self.without(state, user_id)
            counts.update(removed)
            return left

        await self.notebook.forget(self.key(user_id), user_id, forgetting)
        await self.forgotten(user_id)
        return Removed.of(counts)

    async def after(self, fragment: DialogueFragment) -> None:
        """Override to do what follows from a new state; after a crash it is done once more."""

    async def _order(self, orders: Sequence[Send]) -> None:
        """Confirmed before the fragment is done with; a crash in between repeats them under the same ids."""
        for order in orders:
            try:
                await self.bus.send(order.command, to=order.service, trace=order.trace)
            except Unroutable as nobody:
                logger().info("nobody takes it", type=order.command.wire.type, reason=str(nobody))

    def _result(self, about: str, outcome: str, began: float) -> AgentResult:
        took_ms = int(1000 * (time.monotonic() - began))
        return AgentResult.model_validate({"agent": self.name, "about": about, "outcome": outcome, "took_ms": took_ms})
