"""The part of the chat's history that one exchange writes, under ids that a redelivery repeats."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import takewhile

from agents.dialogue.agent import BETWEEN, DelegationRound
from agents.dialogue.delegation import readable_task, subagent_of
from agents.dialogue.generation import asks_again
from agents.models.conversation import history_calls, last_complete, model_messages
from agents.models.language_model import ModelMessage
from bus_schema.dialogue import (
    HIDDEN_MARK,
    MAX_MESSAGE_CHARS,
    MAX_PREVIEW_CHARS,
    DialogueMessage,
    MessageKind,
)
from bus_schema.history import ChatMessage, HistoryMessage, chat_key
from bus_schema.message_parts import DelegatedTask
from mindbus.sdk.conversations import HistoryClient
from workers.dialogue.open_talks import HistoryWindow

_CONTEXT_MESSAGES = 10


class ExchangeRecord:
    """The talk before this exchange, then as much of the exchange as is kept already.

    Everything here raises Rejected, TemporaryFailure or BusUnavailable.
    """

    def __init__(
        self,
        histories: HistoryClient,
        said: DialogueMessage,
        answer_id: str,
        clock: Callable[[], datetime],
        window: HistoryWindow,
    ) -> None:
        self.said, self.answer_id = said, answer_id
        self._window = window
        self._histories, self._clock = histories, clock
        # What this exchange has appended, and the history's version after it; None once somebody else has written.
        self.appended: list[HistoryMessage] = []
        self.version = window.version
        self.rounds: list[DelegationRound] = []
        self.answered: str | None = None
        self.is_resumed = False

    async def resume(self, told_calls: Collection[str] = ()) -> None:
        """See what was kept before: before a crash, or before the asker brought the results of these calls."""
        self.is_resumed, self.version = True, None
        stored = await self._histories.stored_messages(chat_key(self.said.user_id))
        own = [each for each in stored if each.id.startswith((f"{self.answer_id}.", self.answer_id))]
        before = takewhile(lambda each: each.id != self.said.message_id, stored)
        earlier = [each for each in before if each not in own and each.timestamp <= self.said.time]
        self._window = HistoryWindow(earlier, [each.id for each in earlier], None, model_messages(earlier))
        closing: str | None = None
        for message in model_messages(own):
            if message.tool_calls:
                self.rounds.append(DelegationRound(message, ()))
            elif message.role == "tool":
                self.rounds[-1] = DelegationRound(self.rounds[-1].said, (*self.rounds[-1].results, message))
            else:
                closing = message.content
        self.mark_told(told_calls)
        if closing is not None:
            # With what was said on the way, as the user was told.
            self.answered = "".join((*_texts(self.rounds), closing))

    @property
    def talk(self) -> list[ModelMessage]:
        """The conversation as the model is shown it, the current message last."""
        return [*self._window.shown, *model_messages([self._user_message()])]

    def last_ids(self, count: int) -> tuple[str, ...]:
        """Ids of so many last messages of the talk."""
        ids = self._window.ids
        return (*ids[max(0, len(ids) - count + 1) :], self.said.message_id)

    @property
    def context(self) -> tuple[ChatMessage, ...]:
        """The last messages of the conversation, for sub-agents."""
        worded = [ChatMessage(role=each.role, content=each.content) for each in self._window.messages if _is_talk(each)]
        return (
            *last_complete(worded, _CONTEXT_MESSAGES),
            ChatMessage(role="user", content=self._user_message().content),
        )

    def delegations(self, known: Collection[str]) -> tuple[DelegatedTask, ...]:
        """Tasks given to the known sub-agents so far, each with its result, in the order of the calls."""
        results = [pair for each in self.rounds for pair in zip(each.said.tool_calls, each.results, strict=False)]
        return tuple(
            DelegatedTask(subagent=subagent_of(call.name), task=task, response=result.content)
            for call, result in results
            if subagent_of(call.name) in known and (task := readable_task(call))
        )

    def mark_told(self, call_ids: Collection[str]) -> None:
        """Leave out of the answer what was said by the last of these calls, since their asker has it."""
        told = [place for place, each in enumerate(self.rounds) if each.said.tool_calls[0].id in call_ids]
        for place in range(told[-1] + 1 if told else 0):
            self.rounds[place] = replace(self.rounds[place], is_told=True)

    def untold(self, text: str) -> str:
        """The text without what the rounds have that were told with it."""
        return f"{text.strip()}{BETWEEN}".removeprefix("".join(_texts(self.rounds))).removesuffix(BETWEEN)

    async def add_round(self, completed: DelegationRound) -> None:
        """Keep a round, all of it or nothing."""
        number = len(self.rounds)
        now = self._clock()
        kept = [
            HistoryMessage(
                id=f"{self.answer_id}.{number}.{place}",
                timestamp=now,
                role=message.role,
                # A tool may have nothing to say.
                content=message.content if message.role == "tool" else message.content or None,
                tool_calls=history_calls(message.tool_calls) or None,
                tool_call_id=message.tool_call_id,
                name=message.name,
            )
            for place, message in enumerate(completed.messages)
        ]
        await self._append(kept)
        self.rounds.append(completed)

    async def conclude(self, answer: DialogueMessage) -> None:
        """Keep the answer, without what was said before sub-agents were asked, which is there already."""
        content = (answer.content or "").removeprefix("".join(_texts(self.rounds)))
        closing = HistoryMessage(
            id=self.answer_id, timestamp=answer.time, role="assistant", content=content or answer.content
        )
        await self._append([closing])

    async def _append(self, messages: Sequence[HistoryMessage]) -> None:
        """Append to the history, after the user's message where nothing of the exchange is there yet."""
        added = [*(() if self.rounds else (self._user_message(),)), *messages]
        done = await self._histories.append(chat_key(self.said.user_id), added)
        self.version = done.version if done.preceding == self.version and self.version is not None else None
        self.appended += added

    def _user_message(self) -> HistoryMessage:
        said, text = self.said, self.said.content or ""
        if said.kind is MessageKind.HIDDEN:
            text = text.removeprefix(HIDDEN_MARK)
            return HistoryMessage(id=said.message_id, timestamp=said.time, role="system", content=text)
        return HistoryMessage(id=said.message_id, timestamp=said.time, role="user", content=text)


def preview_of(message: DialogueMessage) -> str:
    """The beginning of a message, for people who watch."""
    text = " ".join((message.content or "").split())
    return text if len(text) <= MAX_PREVIEW_CHARS else f"{text[: MAX_PREVIEW_CHARS - 1]}…"


def with_unanswered_question(said: DialogueMessage, talk: Sequence[DialogueMessage]) -> DialogueMessage:
    """The message; one that only asks to try again has the words of the user's messages that got no answer."""
    if said.kind is MessageKind.HIDDEN or not asks_again(said.content or ""):
        return said
    before = list(takewhile(lambda each: each.message_id != said.message_id, talk))
    unanswered = takewhile(lambda each: each.role == "user" and each.kind is not MessageKind.HIDDEN, reversed(before))
    questions = [each.content for each in unanswered if each.content and not asks_again(each.content)]
    question = "\n\n".join(reversed(questions))[-MAX_MESSAGE_CHARS:]
    return said.model_copy(update={"content": question}) if question else said


def _texts(rounds: Sequence[DelegationRound]) -> list[str]:
    return [each.untold for each in rounds]


def _is_talk(message: ChatMessage) -> bool:
    return message.role in ("user", "assistant") and bool(message.content)
