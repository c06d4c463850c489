"""The user's tasks as tools of the dialogue, used in the user's name."""

from collections.abc import Callable
from datetime import datetime

from agents.dialogue.task_tools import (
    TASK_TOOLS,
    AddArguments,
    BadArguments,
    ListArguments,
    MoveArguments,
    TaskArguments,
    TaskWords,
    arguments_of,
    matching_tasks,
    repeats_result,
)
from agents.models.explicit_calls import CANCEL, COMPLETE
from agents.models.language_model import ToolCall
from agents.present import Present
from bus_schema.dialogue import DialogueMessage, conversation_trace
from bus_schema.ids import derived
from bus_schema.messages import Command
from bus_schema.processing import Task, TaskStatus
from bus_schema.tasks import AddTask, CallOffTask, CompleteTask, ListTasks, UpdateTask
from language.words import language_of
from mindbus.bus.client import Client
from mindbus.errors import BusUnavailable, Rejected, TemporaryFailure
from mindbus.sdk.requests import items_of, request_in_scope

_TIMEOUT_S = 10.0
_PAGE = 200


class TaskTools:
    """Carries out the calls of one exchange; what was added or changed before a crash is not repeated.

    It `goes_round` once the model has given it one of its own results as a task.
    """

    names = frozenset(tool.name for tool in TASK_TOOLS)

    def __init__(self, bus: Client, clock: Callable[[], datetime], said: DialogueMessage, present: Present) -> None:
        self._bus, self._clock, self._said, self._present = bus, clock, said, present
        self._results: list[str] = []
        self.goes_round = False

    async def use(self, call: ToolCall, place: str) -> str:
        """Result of a call, in words for the model; a failure too. `place` is that of the call in the exchange."""
        words = TaskWords(language_of(self._said.content or ""), self._clock(), self._present.zone)
        if repeats_result(call, self._results):
            self.goes_round = True
            return words.phrase("repeated")
        try:
            result = await self._used(call, place, words)
        except (BadArguments, Rejected, TemporaryFailure, BusUnavailable) as error:
            result = words.phrase("failed", why=str(error))
        self._results.append(result)
        return result

    async def _used(self, call: ToolCall, place: str, words: TaskWords) -> str:
        match arguments_of(call):
            case ListArguments(due=due):
                return words.listed(await self._open(words.due_before(due)), due)
            case AddArguments() as new:
                task = await self._change(
                    AddTask(
                        user_id=self._present.user_id,
                        text=new.text,
                        owner=new.owner or None,
                        when=new.due or None,
                        remind=new.remind,
                        message_id=self._said.message_id,
                        task_id=f"task_{derived(self._said.message_id, place)}",
                    )
                )
                return words.phrase("reminder" if task.remind_at else "added", task=words.task(task))
            case TaskArguments() as about:
                return await self._closed_or_moved(call.name, about, words)
        raise AssertionError("unreachable: there is no other tool")

    async def _closed_or_moved(self, tool: str, about: TaskArguments, words: TaskWords) -> str:
        meant = matching_tasks(about.task, await self._open(None), is_done=tool == COMPLETE)
        if len(meant) != 1:
            return words.candidates(about.task, meant)
        task_id, user_id = meant[0].task_id, self._present.user_id
        if isinstance(about, MoveArguments):
            at = words.same_time_on(about.due, meant[0])
            when = None if at else about.due
            moved = await self._change(UpdateTask(task_id=task_id, user_id=user_id, due=at, when=when))
            return words.phrase("moved", task=words.task(moved))
        if tool == COMPLETE:
            done = await self._change(CompleteTask(task_id=task_id, user_id=user_id))
            return words.phrase("done", task=words.phrase("quote", text=done.text))
        assert tool == CANCEL
        cancelled = await self._change(CallOffTask(task_id=task_id, user_id=user_id))
        return words.phrase("cancelled", task=words.phrase("quote", text=cancelled.text))

    async def _open(self, due_before: datetime | None) -> list[Task]:
        query = ListTasks(user_id=self._present.user_id, status=TaskStatus.OPEN, due_before=due_before, limit=_PAGE)
        trace = conversation_trace(self._present.user_id)
        return [task async for task in items_of(self._bus, query, trace=trace, timeout_s=_TIMEOUT_S)]

    async def _change(self, command: Command[Task]) -> Task:
        trace = conversation_trace(self._present.user_id)
        return await request_in_scope(self._bus, command, trace=trace, timeout_s=_TIMEOUT_S)
