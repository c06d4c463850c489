"""Delegations to sub-agents as tasks of A2A: begun by a command, read from the timeline."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import TypeVar

from a2a.types import Message, Role, Task, TaskState

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
    SubagentEvent,
    service_of,
)
from bus_schema.timeline import GetTimeline, TimelineEvent
from gateway.a2a.dialogue_tasks import ANSWER, DialogueTasks
from gateway.a2a.task_states import states_of
from gateway.a2a.wire import OVER, id_for, message_of, status_of, text_artifact, texts_of
from gateway.backend import Backend
from mindbus.errors import Rejected, Unroutable

DELEGATION = "dlg_"
_CANCELLED = "cancelled over A2A"
_LATE = "There was no answer in time; send the message again under another id."
# Of an answer's way to the timeline.
_GRACE = timedelta(seconds=30)
_KEPT_WITHIN_S, _LOOK_S = 10.0, 0.05
_PAGE = 500

EventT = TypeVar("EventT", bound=SubagentEvent)


class DelegationTasks:
    """The delegations of whoever is signed in, a person."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._user_id = DialogueTasks(backend).user_id

    async def start(self, name: str, message: Message) -> str:
        """Have a sub-agent do it, whatever becomes of this gateway; the task's id. Raises MindBusError, A2AError."""
        self._backend.require_budget()
        task_id = id_for("dlg", self._backend.account.identity, message.message_id)
        if (known := await self._delegation(task_id)) is not None and await self._completion(known) is not None:
            return task_id
        order = ExecuteTask(
            task="\n\n".join(texts_of(message)),
            chat_id=self._user_id,
            delegation_id=task_id,
            deadline=self._backend.clock() + self._limit,
        )
        place = {"chat_id": self._user_id, "subagent": name, "delegation_id": task_id}
        told = SubagentDelegation(**place, position=0, time=self._backend.clock(), task=order.task[:MAX_SHOWN_CHARS])
        await self._tell(told)
        message_id = derived(task_id, order.wire.type)
        try:
            await self._backend.bus.send(order, to=service_of(name), trace=self._trace, message_id=message_id)
        except Unroutable as error:
            await self._end(told, f"subagent-{name} is not running")
            raise Rejected(
                Code.UNAVAILABLE, f"the sub-agent {name} is not running; send it again when it is"
            ) from error
        await self._until_kept(task_id)
        return task_id

    async def get(self, task_id: str) -> Task:
        """The task as the timeline has it. Raises MindBusError."""
        delegation = await self._delegation(task_id)
        if delegation is None:
            raise Rejected(Code.NOT_FOUND, f"there is no task {task_id}")
        task = Task(id=task_id, context_id=self._trace)
        task.history.append(message_of(delegation.task, f"{task_id}-task", task, Role.ROLE_USER))
        task.metadata.update({"subagent": delegation.subagent})
        done = await self._completion(delegation)
        if done is None:
            is_late = self._backend.clock() > delegation.time + self._limit + _GRACE
            state, words = (TaskState.TASK_STATE_FAILED, _LATE) if is_late else (TaskState.TASK_STATE_WORKING, "")
            task.status.CopyFrom(status_of(state, delegation.time, words, task_id))
        elif done.is_error:
            is_cancelled = done.response == _CANCELLED
            state = TaskState.TASK_STATE_CANCELED if is_cancelled else TaskState.TASK_STATE_FAILED
            task.status.CopyFrom(status_of(state, done.time, done.response, task_id))
        else:
            task.artifacts.append(text_artifact(ANSWER, ANSWER, await self._whole(done)))
            task.status.CopyFrom(status_of(TaskState.TASK_STATE_COMPLETED, done.time))
        return task

    async def follow(self, task_id: str) -> AsyncGenerator[Task]:
        """The task now, then its end. Raises MindBusError."""
        async for task in states_of(self._backend, lambda: self.get(task_id)):
            yield task

    async def cancel(self, task_id: str) -> Task:
        """Have the sub-agent stop. Raises MindBusError."""
        task, delegation = await self.get(task_id), await self._delegation(task_id)
        if delegation is None or task.status.state in OVER:
            raise Rejected(Code.CONFLICT, f"the task {task_id} is over")
        cancel = CancelTask(delegation_id=task_id, chat_id=self._user_id)
        await self._backend.bus.send(cancel, to=service_of(delegation.subagent))
        await self._end(delegation, _CANCELLED)
        task.status.CopyFrom(status_of(TaskState.TASK_STATE_CANCELED, self._backend.clock(), _CANCELLED, task_id))
        return task

    @property
    def _trace(self) -> str:
        return conversation_trace(self._user_id)

    @property
    def _limit(self) -> timedelta:
        return timedelta(seconds=self._backend.settings.subagent_timeout_s)

    async def _until_kept(self, task_id: str) -> None:
        """Wait until the timeline has the task: from then on it can be asked for."""
        try:
            async with asyncio.timeout(_KEPT_WITHIN_S):
                while True:
                    if await self._delegation(task_id) is not None:
                        return
                    await asyncio.sleep(_LOOK_S)
        except TimeoutError:
            why = "the timeline has not taken the task yet; send the message again"
            raise Rejected(Code.UNAVAILABLE, why) from None

    async def _delegation(self, task_id: str) -> SubagentDelegation | None:
        event_id = derived(task_id, SubagentDelegation.wire.type, 0)
        page = await self._backend.recorded(GetTimeline(trace_id=self._trace, event_id=event_id))
        return next(iter(_of(SubagentDelegation, page.items, task_id)), None)

    async def _completion(self, delegation: SubagentDelegation) -> SubagentCompletion | None:
        """The first end that was told: a cancelled task may still be answered."""
        query: GetTimeline | None = GetTimeline(
            trace_id=self._trace,
            topics=("subagent",),
            since=delegation.time,
            until=delegation.time + self._limit + _GRACE,
            limit=_PAGE,
        )
        while query is not None:
            page = await self._backend.recorded(query)
            if found := _of(SubagentCompletion, page.items, delegation.delegation_id):
                return found[0]
            has_more = len(page.items) == _PAGE and page.next_cursor
            query = query.model_copy(update={"cursor": page.next_cursor}) if has_more else None
        return None

    async def _whole(self, done: SubagentCompletion) -> str:
        if done.ref is None:
            return done.response
        return (await self._backend.artifacts.get(done.ref.artifact_id, trace=self._trace)).decode()

    async def _end(self, delegation: SubagentDelegation, why: str) -> None:
        place = delegation.model_dump(include={"chat_id", "subagent", "delegation_id"})
        now = self._backend.clock()
        await self._tell(SubagentCompletion(**place, position=LAST_POSITION, time=now, response=why, is_error=True))

    async def _tell(self, event: SubagentDelegation | SubagentCompletion) -> None:
        message_id = derived(event.delegation_id, event.wire.type, event.position)
        await self._backend.own_bus.publish(event, trace=self._trace, message_id=message_id)


def _of(kind: type[EventT], events: tuple[TimelineEvent, ...], task_id: str) -> list[EventT]:
    """Events of a kind about a task."""
    of_kind = (event.envelope.data or {} for event in events if event.envelope.type == kind.wire.type)
    return [kind.model_validate(data) for data in of_kind if data.get("delegation_id") == task_id]
