"""What a model's endpoint does wrong in the middle of a talk, with the whole dialogue runtime, in both languages."""

from collections.abc import AsyncIterator
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
in_both_languages = pytest.mark.parametrize("talk", TALKS, ids=("english", "russian"))


@asynccontextmanager
async def talking(url: str, folder: Path, *script: Reply) -> AsyncIterator[tuple[Runtime, LlmServer]]:
    async with LlmServer(Says("Hello."), *script) as server:
        settings = dialogue_settings(url, folder, llm_base_url=server.base_url, llm_model="small")
        async with runtime(settings) as team:
            yield team, server


async def streamed(team: Runtime, message: str) -> tuple[str, int, Answered]:
    """The text as a reader puts it together, how often it began again, and the whole answer."""
    text, count = "", 0
    command = Invoke(user_id="anna", message=message, stream=True)
    async for piece in team.bus.stream(command, trace=conversation_trace("anna")):
        if isinstance(piece, Answered):
            return text, count, piece
        text, count = (piece, count + 1) if restarts(piece) else (text + piece, count)
    raise AssertionError("no answer")


@in_both_languages
async def test_a_broken_stream_begins_again_and_the_words_come_once(vhost_url: str, tmp_path: Path, talk: Talk) -> None:
    whole = "".join(talk.answer)
    async with talking(vhost_url, tmp_path, HangsUp(after_pieces=3), HangsUp(after_pieces=2), Says(whole)) as (
        team,
        llm,
    ):
        await team.say("anna", talk.greeting)
        text, restarted, answered = await streamed(team, talk.question)
        kept = [message.content for message in await team.history("anna")]

    assert text == answered.response == kept[-1] == whole
    assert restarted >= 1
    assert len(llm.requests) == 4


@in_both_languages
async def test_an_answer_at_the_token_limit_goes_on_where_it_stopped(
    vhost_url: str, tmp_path: Path, talk: Talk
) -> None:
    first, rest = talk.answer
    async with talking(vhost_url, tmp_path, Says(first, finish_reason="length"), Says(rest)) as (team, llm):
        await team.say("anna", talk.greeting)
        text, restarted, answered = await streamed(team, talk.question)

    assert text == answered.response == first + rest
    assert (restarted, answered.cut_off) == (0, False)
    assert first in [message.content for message in llm.requests[-1].messages]


@in_both_languages
async def test_an_answer_without_end_is_kept_and_marked(vhost_url: str, tmp_path: Path, talk: Talk) -> None:
    endless = [Says(talk.answer[0], finish_reason="length")] * 4
    async with talking(vhost_url, tmp_path, *endless) as (team, llm):
        await team.say("anna", talk.greeting)
        answered = await team.say("anna", talk.question)
        kept = (await team.history("anna"))[-1].content

    assert answered.response == kept == talk.answer[0] * 3 + talk.answer[0] + talk.cut_off
    assert answered.cut_off
    assert len(llm.requests) == 5


@in_both_languages
async def test_a_question_to_a_model_that_is_away_is_answered_later(vhost_url: str, tmp_path: Path, talk: Talk) -> None:
    whole = "".join(talk.answer)
    async with talking(vhost_url, tmp_path, *[Fails(500)] * 4, Says(whole)) as (team, llm):
        await team.say("anna", talk.greeting)
        with pytest.raises(ReplyError) as away:
            await team.say("anna", talk.question)
        calls = len(llm.requests) - 1
        answered = await team.say("anna", talk.again)
        kept = [message.content for message in await team.history("anna")]

    assert (away.value.code, calls) == (Code.UNAVAILABLE, 4)
    assert away.value.message.startswith(talk.away)
    assert answered.response == whole
    assert llm.requests[-1].messages[-1].content == talk.question
    assert kept == [talk.greeting, "Hello.", talk.question, talk.again, whole]
