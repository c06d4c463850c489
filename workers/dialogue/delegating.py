"""What sub-agents do for one exchange: who was told what, what they answered."""

import asyncio
from collections.abc import Sequence
from itertools import groupby

from agents.dialogue.help import Round, delegation_tool, subagent_of
from agents.dialogue.trouble import UnreadableCall, no_answer, no_such, task_of, unreadable
from agents.models.histories import whole_end
from agents.models.language_model import Message, Tool, ToolCall
from agents.models.tool_calls import sayable
from agents.text import language_of
from bus_schema.dialogue import MAX_MESSAGE_CHARS
from bus_schema.history import ChatMessage, HistoryMessage, subagent_key
from bus_schema.ids import derived
from bus_schema.subagent import MAX_TASK_CHARS, ExecuteTask, TaskDone, TaskStep
from mindbus.logs import logger
from mindbus.sdk.histories import Histories
from workers.dialogue.record import Record
from workers.dialogue.subagents import NoAnswer, Subagents

_WINDOW = 50
_MOST_SHOWN = 200


class Delegating:
    """The master's helpers, for as long as it answers one message.

    `_subagent_contexts` is what spec 001 calls the memory within a request: loaded from the histories when a
    sub-agent is first asked, then grown by every task with its answer, so that the next call sees them. What one answer
    of the model gives to several sub-agents is done side by side; several tasks for the same one are done in the order
    of the calls, since each may build upon the one before.
    """

    def __init__(self, subagents: Subagents, histories: Histories, record: Record, most_rounds: int) -> None:
        self._subagents, self._histories, self._record = subagents, histories, record
        self._language = language_of(record.said.content or "")
        self._subagent_contexts: dict[str, list[ChatMessage]] = {}
        self._done_before: dict[str, str] = {}
        self.tools: Sequence[Tool] = [delegation_tool(name, about) for name, about in subagents.known.items()]
        self.most_rounds = most_rounds if self.tools else 0

    @property
    def had(self) -> Sequence[Round]:
        """What was kept before a crash."""
        return self._record.rounds

    async def give(self, number: int, text: str, calls: Sequence[ToolCall]) -> Round:
        """Have done what the model calls for; it is kept before the model hears of it."""
        numbered = sorted(enumerate(calls), key=_whom)
        together = [list(group) for _, group in groupby(numbered, key=_whom)]
        answers = dict(
            answer
            for answered in await asyncio.gather(*(self._one_by_one(number, group) for group in together))
            for answer in answered
        )
        results = tuple(
            Message(role="tool", content=answers[place], tool_call_id=call.id, name=call.name)
            for place, call in enumerate(calls)
        )
        said = sayable(text)[:MAX_MESSAGE_CHARS]
        had = Round(Message(role="assistant", content=said, tool_calls=tuple(calls)), results)
        await self._record.add_round(had)
        return had

    async def _one_by_one(self, number: int, calls: Sequence[tuple[int, ToolCall]]) -> list[tuple[int, str]]:
        return [(place, await self._answer(f"{number}.{place}", call)) for place, call in calls]

    async def _answer(self, place: str, call: ToolCall) -> str:
        """What the model is told of one call."""
        name = subagent_of(call.name)
        if name not in self._subagents.known:
            return no_such(name, self._subagents.known, self._language)
        try:
            task = task_of(call)[:MAX_TASK_CHARS]
        except UnreadableCall as why:
            return unreadable(str(why), self._language)
        # Another task in the same place is another delegation: a model that is asked again may want something else.
        delegation_id = f"dlg_{derived(self._record.answer_id, place, name, task)}"
        try:
            return await self._delegate(name, task, delegation_id)
        except NoAnswer as why:
            logger().warning("delegation failed", chat=self._record.said.user_id, subagent=name, reason=str(why))
            return no_answer(name, str(why), self._language)

    async def _delegate(self, name: str, task: str, delegation_id: str) -> str:
        context = await self._context(name)
        done_before = self._done_before.get(delegation_id)
        if done_before is not None:
            return done_before
        order = ExecuteTask(
            task=task,
            chat_id=self._record.said.user_id,
            delegation_id=delegation_id,
            context=self._record.context,
            history=whole_end(context, _MOST_SHOWN),
        )
        done = await self._subagents.ask(name, order)
        await self._keep(name, order, done)
        return done.response

    async def _context(self, name: str) -> list[ChatMessage]:
        """What was said with a sub-agent so far, in this request as well as before it."""
        if name not in self._subagent_contexts:
            key = subagent_key(name, self._record.said.user_id)
            if self._record.is_resumed:
                stored = await self._histories.stored(key)
                self._done_before |= {
                    each.id.rpartition(".")[0]: each.content
                    for each in stored
                    if each.role == "assistant" and each.content and not each.tool_calls
                }
                self._subagent_contexts[name] = list(whole_end(stored, _WINDOW))
            else:
                self._subagent_contexts[name] = await self._histories.window(key)
        return self._subagent_contexts[name]

    async def _keep(self, name: str, order: ExecuteTask, done: TaskDone) -> None:
        said = [
            TaskStep(role="user", content=order.task),
            *done.steps,
            TaskStep(role="assistant", content=done.response),
        ]
        now = self._subagents.clock()
        kept = [
            HistoryMessage(id=f"{order.delegation_id}.{place}", timestamp=now, **each.model_dump())
            for place, each in enumerate(said)
        ]
        await self._histories.append(subagent_key(name, order.chat_id), kept)
        self._subagent_contexts[name] += [ChatMessage.model_validate(each.model_dump()) for each in said]


def _whom(numbered: tuple[int, ToolCall]) -> str:
    return subagent_of(numbered[1].name)
