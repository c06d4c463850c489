"""The sub-agents that the master knows, how it gives them tasks."""

import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from bus_schema.dialogue import conversation_trace
from bus_schema.ids import derived
from bus_schema.replies import Code
from bus_schema.subagent import (
    LAST_POSITION,
    MAX_SHOWN_CHARS,
    CancelTask,
    ExecuteTask,
    SubagentCompletion,
    SubagentDelegation,
    TaskDone,
    service_of,
)
from mindbus.bus.client import Client
from mindbus.bus.context import current_message
from mindbus.errors import BusUnavailable, NoReply, ReplyError, Unroutable
from mindbus.sdk.aside import aside

# What the master needs of its own asker's patience for an answer of its own.
_FOR_THE_ANSWER_S = 10.0
# The sub-agent gives up first, so that whoever waits hears why.
_GRACE_S = 2.0


class NoAnswer(Exception):
    """The sub-agent is not there, has failed, or takes too long."""


@dataclass(frozen=True)
class Subagents:
    """Whom the master may turn to, by name, each with what it is good for."""

    known: Mapping[str, str]
    bus: Client
    clock: Callable[[], datetime]
    timeout_s: float

    async def ask(self, name: str, order: ExecuteTask) -> TaskDone:
        """Have a task done; what happens meanwhile is told. Raises NoAnswer; BusUnavailable."""
        place = {"chat_id": order.chat_id, "subagent": name, "delegation_id": order.delegation_id}
        told = SubagentDelegation(**place, position=0, time=self.clock(), task=order.task[:MAX_SHOWN_CHARS])
        await self._tell(told)
        try:
            return await self._done(name, order)
        except Unroutable:
            why = f"subagent-{name} is not running"
        except ReplyError as failed:
            why = failed.message
            if isinstance(failed, NoReply):
                await self._cancel(name, order)
        failure = SubagentCompletion(
            **place, position=LAST_POSITION, time=self.clock(), response=why[:MAX_SHOWN_CHARS], is_error=True
        )
        await self._tell(failure)
        raise NoAnswer(why)

    async def _done(self, name: str, order: ExecuteTask) -> TaskDone:
        timeout_s = self._patience_s()
        if timeout_s <= 0:
            raise ReplyError(Code.EXPIRED, "no time is left for it")
        deadline = self.clock() + timedelta(seconds=timeout_s - min(_GRACE_S, timeout_s / 4))
        timed, trace = order.model_copy(update={"deadline": deadline}), conversation_trace(order.chat_id)
        # Each time under an id of its own, so that whoever asks again after a crash is answered, not its dead
        # predecessor; what is asked again is known by the delegation's id.
        return await aside(
            secrets.token_hex(8),
            lambda: self.bus.request(timed, to=service_of(name), timeout_s=timeout_s, trace=trace),
        )

    def _patience_s(self) -> float:
        context = current_message()
        ends_at = context.envelope.expirytime if context else None
        if ends_at is None:
            return self.timeout_s
        return min(self.timeout_s, (ends_at - self.clock()).total_seconds() - _FOR_THE_ANSWER_S)

    async def _cancel(self, name: str, order: ExecuteTask) -> None:
        """It would work for nobody; one that cannot be told ends by its deadline."""
        with suppress(BusUnavailable):
            cancel = CancelTask(delegation_id=order.delegation_id)
            await aside(order.delegation_id, lambda: self.bus.send(cancel, to=service_of(name)))

    async def _tell(self, event: SubagentDelegation | SubagentCompletion) -> None:
        message_id = derived(event.delegation_id, event.wire.type, event.position)
        await self.bus.publish(event, trace=conversation_trace(event.chat_id), message_id=message_id)
