"""What a model's endpoint does wrong in the middle of a talk, with the whole dialogue runtime, in both languages."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from bus_schema.dialogue import Answered, Invoke, conversation_trace
from bus_schema.replies import Code, restarts
from mindbus import ReplyError
from tests.dialogue_kit import Runtime, dialogue_settings, runtime
from tests.llm_server import Fails, HangsUp, LlmServer, Reply, Says

pytestmark = pytest.mark.rabbit


@dataclass(frozen=True)
class Talk:
    """The words of one language."""

    greeting: str
    question: str
    answer: tuple[str, str]
    away: str
    again: str
    cut_off: str


TALKS = (
    Talk(
        greeting="Hello!",
        question="What should I take to the mill tomorrow?",
        answer=("Take the blueprints, the keys ", "and a warm coat."),
        away="The language model is not available right now. Your question is kept",
        again="Yes, please try again",
        cut_off="… [cut off]",
    ),
    Talk(
        greeting="Привет!",
        question="Что взять завтра на мельницу?",
        answer=("Возьмите чертежи, ключи ", "и тёплую куртку."),
        away="Языковая модель сейчас недоступна. Вопрос сохранён",
        again="Да, повтори, пожалуйста",
        cut_off="… [ответ оборван]",
    ),
)


@asynccontextmanager
async def talking(url: str, folder: Path, *scripts: Sequence[Reply]) -> AsyncIterator[list["Person"]]:
    """Somebody for each language in one runtime, who hears a greeting and then what the script of theirs says.

    They talk one after the other, since they share the model.
    """
    async with LlmServer(*(reply for script in scripts for reply in (Says("Hello."), *script))) as server:
        settings = dialogue_settings(url, folder, llm_base_url=server.base_url, llm_model="small")
        async with runtime(settings) as team:
            yield [Person(team, server, f"user-{number}") for number in range(len(scripts))]


@dataclass
class Person:
    """Talks to the assistant; counts the calls of the model for it."""

    team: Runtime
    model: LlmServer
    user_id: str
    calls_before: int = 0

    @property
    def calls(self) -> int:
        """Since the greeting."""
        return len(self.model.requests) - self.calls_before

    async def greet(self, talk: Talk) -> None:
        await self.say(talk.greeting)
        self.calls_before = len(self.model.requests)

    async def say(self, message: str) -> Answered:
        return await self.team.say(self.user_id, message)

    async def kept(self) -> list[str | None]:
        return [message.content for message in await self.team.history(self.user_id)]

    async def streamed(self, message: str) -> tuple[str, int, Answered]:
        """The text as a reader puts it together, how often it began again, and the whole answer."""
        text, count = "", 0
        command = Invoke(user_id=self.user_id, message=message, stream=True)
        async for piece in self.team.bus.stream(command, trace=conversation_trace(self.user_id)):
            if isinstance(piece, Answered):
                return text, count, piece
            text, count = (piece, count + 1) if restarts(piece) else (text + piece, count)
        raise AssertionError("no answer")


async def test_a_broken_stream_begins_again_and_the_words_come_once(vhost_url: str, tmp_path: Path) -> None:
    scripts = [(HangsUp(after_pieces=3), HangsUp(after_pieces=2), Says("".join(talk.answer))) for talk in TALKS]
    async with talking(vhost_url, tmp_path, *scripts) as people:
        for person, talk in zip(people, TALKS, strict=True):
            await person.greet(talk)
            text, restarted, answered = await person.streamed(talk.question)

            assert text == answered.response == (await person.kept())[-1] == "".join(talk.answer)
            assert restarted >= 1
            assert person.calls == 3


async def test_an_answer_at_the_token_limit_goes_on_where_it_stopped(vhost_url: str, tmp_path: Path) -> None:
    scripts = [(Says(talk.answer[0], finish_reason="length"), Says(talk.answer[1])) for talk in TALKS]
    async with talking(vhost_url, tmp_path, *scripts) as people:
        for person, talk in zip(people, TALKS, strict=True):
            await person.greet(talk)
            text, restarted, answered = await person.streamed(talk.question)

            assert text == answered.response == "".join(talk.answer)
            assert (restarted, answered.cut_off) == (0, False)
            assert talk.answer[0] in [message.content for message in person.model.requests[-1].messages]


async def test_an_answer_without_end_is_kept_and_marked(vhost_url: str, tmp_path: Path) -> None:
    scripts = [[Says(talk.answer[0], finish_reason="length")] * 4 for talk in TALKS]
    async with talking(vhost_url, tmp_path, *scripts) as people:
        for person, talk in zip(people, TALKS, strict=True):
            await person.greet(talk)
            answered = await person.say(talk.question)

            assert answered.response == (await person.kept())[-1] == talk.answer[0] * 4 + talk.cut_off
            assert answered.cut_off
            assert person.calls == 4


async def test_a_question_to_a_model_that_is_away_is_answered_later(vhost_url: str, tmp_path: Path) -> None:
    scripts: list[Sequence[Reply]] = [(*[Fails(500)] * 4, Says("".join(talk.answer))) for talk in TALKS]
    async with talking(vhost_url, tmp_path, *scripts) as people:
        for person, talk in zip(people, TALKS, strict=True):
            await person.greet(talk)
            with pytest.raises(ReplyError) as away:
                await person.say(talk.question)
            calls = person.calls
            answered = await person.say(talk.again)
            whole = "".join(talk.answer)

            assert (away.value.code, calls) == (Code.UNAVAILABLE, 4)
            assert away.value.message.startswith(talk.away)
            assert answered.response == whole
            assert person.model.requests[-1].messages[-1].content.endswith(talk.question)
            assert await person.kept() == [talk.greeting, "Hello.", talk.question, talk.again, whole]
