"""No answer is lost: what a model's endpoint does wrong, as the one who asked sees it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bus_schema.dialogue import Answered, CancelAnswer, Invoke, conversation_trace
from bus_schema.replies import Code, restarts
from config.settings import FleetSettings
from mindbus import ReplyError
from mindbus.bus import sender
from mindbus.bus.connection import connect
from mindbus.testing.wait import until
from tests.brokers import Broker
from tests.dialogue_kit import Runtime, dialogue_settings, runtime
from tests.gateways import Served, gateway_settings, serving
from tests.installed import FLEET
from tests.llm_server import Drips, Fails, HangsUp, LlmServer, Reply, Says, Stalls

pytestmark = pytest.mark.rabbit


@asynccontextmanager
async def talking(url: str, folder: Path, *script: Reply) -> AsyncIterator[tuple[Runtime, LlmServer]]:
    async with LlmServer(*script) as server:
        settings: FleetSettings = dialogue_settings(url, folder, llm_base_url=server.base_url, llm_model="small")
        async with runtime(settings, "storage", "dialogue") as team:
            yield team, server


async def heard(
    team: Runtime, message: str, message_id: str | None = None, begun: asyncio.Event | None = None
) -> tuple[list[str], Answered]:
    pieces: list[str] = []
    command = Invoke(user_id="anna", message=message, message_id=message_id, stream=True)
    async for piece in team.bus.stream(command, trace=conversation_trace("anna")):
        if isinstance(piece, Answered):
            return pieces, piece
        pieces.append(piece)
        if begun:
            begun.set()
    raise AssertionError("no answer")


async def test_a_broken_stream_is_begun_again_before_the_reader(vhost_url: str, tmp_path: Path) -> None:
    async with talking(vhost_url, tmp_path, HangsUp(after_pieces=3), Says("All is well.")) as (team, server):
        pieces, answered = await heard(team, "How are things?")
        kept = [message.content for message in await team.history("anna")]

    assert answered.response == "All is well."
    restart = max(place for place, piece in enumerate(pieces) if restarts(piece))
    assert "".join(pieces[restart:]) == "All is well."
    assert kept == ["How are things?", "All is well."]
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("question", "again", "reason"),
    [
        ("Кто сегодня дежурит?", "да, повтори", "Языковая модель сейчас недоступна. Вопрос сохранён"),
        ("Who is on duty?", "Try again", "The language model is not available right now. Your question is kept"),
    ],
)
async def test_a_question_to_a_model_that_is_away_is_kept_and_answered_on_request(
    vhost_url: str, tmp_path: Path, question: str, again: str, reason: str
) -> None:
    async with talking(vhost_url, tmp_path, *[Fails(500)] * 4, Says("Monday.")) as (team, server):
        with pytest.raises(ReplyError) as away:
            await team.say("anna", question)
        failed = len(server.requests)
        answered = await team.say("anna", again)
        kept = [message.content for message in await team.history("anna")]

    assert away.value.code is Code.UNAVAILABLE
    assert away.value.message.startswith(reason)
    assert failed == 4
    assert answered.response == "Monday."
    assert server.requests[-1].messages[-1].content.splitlines()[-1].strip() == question
    assert kept == [question, again, "Monday."]


async def test_a_question_that_got_no_answer_is_answered_when_it_is_sent_again(vhost_url: str, tmp_path: Path) -> None:
    async with talking(vhost_url, tmp_path, *[Fails(503)] * 4, Says("Monday.")) as (team, _):
        with pytest.raises(ReplyError):
            await team.say("anna", "Who is on duty?", message_id="msg_mine")
        answered = await team.say("anna", "Who is on duty?", message_id="msg_mine")
        kept = [message.content for message in await team.history("anna")]

    assert answered.response == "Monday."
    assert kept == ["Who is on duty?", "Monday."]


async def test_an_answer_at_the_token_limit_is_continued_then_marked(vhost_url: str, tmp_path: Path) -> None:
    script = [Says("и ещё ", finish_reason="length")] * 4
    async with talking(vhost_url, tmp_path, *script, Says("Всё.")) as (team, _):
        cut = await team.say("anna", "Расскажи всё")
        whole = await team.say("anna", "Что ещё?")

    assert cut.response.endswith("[ответ оборван]")
    assert (cut.cut_off, whole.cut_off) == (True, False)


async def test_a_cancelled_answer_is_kept_as_far_as_it_came(vhost_url: str, tmp_path: Path) -> None:
    async with talking(vhost_url, tmp_path, Stalls(after_pieces=3), Says("Here.")) as (team, server):
        cancel = CancelAnswer(user_id="anna", message_id="msg_mine")
        begun = asyncio.Event()
        answering = asyncio.create_task(heard(team, "How are things?", "msg_mine", begun))
        await begun.wait()
        others = await team.bus.request(CancelAnswer(user_id="boris", message_id="msg_mine"))
        first = await team.bus.request(cancel)
        _, answered = await answering
        late = await team.bus.request(cancel)

    assert (others.cancelled, first.cancelled, late.cancelled) == (False, True, False)
    assert answered.cut_off
    assert answered.response.startswith("word")
    assert len(server.requests) == 1


QUESTION = {"message": "How are things?"}


@asynccontextmanager
async def served(broker: Broker, url: str, folder: Path, *script: Reply) -> AsyncIterator[tuple[Served, LlmServer]]:
    """The same over HTTP."""
    async with LlmServer(*script) as server:
        settings = gateway_settings(broker, url, folder, llm_base_url=server.base_url, llm_model="small")
        async with serving(FLEET["storage"], FLEET["history"], FLEET["dialogue"], settings=settings) as gateway:
            yield gateway, server


async def test_a_restart_is_told_to_readers_of_server_sent_events(
    broker: Broker, vhost_url: str, tmp_path: Path
) -> None:
    async with (
        served(broker, vhost_url, tmp_path, HangsUp(after_pieces=3), Says("All is well.")) as (gateway, _),
        gateway.stream("POST", "/api/dialogues/anna/messages", json=QUESTION) as frames,
    ):
        *pieces, answered = [frame async for frame in frames]

    text = ""
    for piece in pieces:
        text = piece.data["text"] if piece.data.get("restart") else text + piece.data["text"]
    assert [piece.data.get("restart", False) for piece in pieces].count(True) == 1
    assert text == answered.data["response"] == "All is well."


async def test_a_reader_who_hangs_up_ends_the_calls_of_the_model(
    broker: Broker, vhost_url: str, tmp_path: Path
) -> None:
    script = (Stalls(after_pieces=3), Stalls(), Says("All is well."))
    async with served(broker, vhost_url, tmp_path, *script) as (gateway, server):
        async with gateway.stream("POST", "/api/dialogues/anna/messages", json=QUESTION) as frames:
            await anext(frames)
        await _until_stored(gateway, "anna", 2)
        silent = asyncio.create_task(gateway.http.post("/api/dialogues/boris/messages", json=QUESTION))
        await until(lambda: len(server.requests) == 2, 10, "the call")
        silent.cancel()
        async with asyncio.timeout(15):
            again = await gateway.ok("POST", "/api/dialogues/boris/messages", json={"message": "try again"})
        half = (await _until_stored(gateway, "anna", 2))[-1]

    assert half["content"].startswith("word")
    assert half["content"].endswith("[cut off]")
    assert again["response"] == "All is well."
    assert len(server.requests) == 3


async def _until_stored(gateway: Served, user: str, count: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []

    async def are_stored() -> bool:
        page = await gateway.ok("GET", f"/api/dialogues/{user}/messages", params={"order": "oldest"})
        items[:] = page["items"]
        return len(items) >= count

    await until(are_stored, 15, f"{count} messages")
    return items


async def test_an_asker_who_has_left_the_bus_is_answered_no_more(
    vhost_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "_ASKER_AWAY_S", 0.3)
    async with talking(vhost_url, tmp_path, Drips(), Says("Here.")) as (team, server):
        command = Invoke(user_id="anna", message="How are things?", stream=True)
        async with connect("user.anna", settings=dialogue_settings(vhost_url, tmp_path)) as leaving:
            async for _piece in leaving.stream(command, trace=conversation_trace("anna")):
                break
        await team.until_said("anna", 2)
        half = (await team.history("anna"))[-1]

    assert (half.content or "").endswith("[cut off]")
    assert len(server.requests) == 1


async def test_after_the_deadline_the_model_is_not_called_any_more(vhost_url: str, tmp_path: Path) -> None:
    async with talking(vhost_url, tmp_path, Stalls(), Says("Monday.")) as (team, server):
        impatient = Invoke(user_id="anna", message="Who is on duty?")
        with pytest.raises(ReplyError):
            await team.bus.request(impatient, trace=conversation_trace("anna"), timeout_s=2)
        await until(lambda: bool(server.requests), 10, "the first call")
        calls = len(server.requests)
        async with asyncio.timeout(20):
            answered = await team.say("anna", "try again")

    assert calls == 1
    assert answered.response == "Monday."
    assert len(server.requests) == 2
