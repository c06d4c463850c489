"""Parts of an answer are heard while it is made, whether or not anything follows them."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import BaseModel

import mindbus
from bus_schema.replies import Code, TextPart
from config.settings import FleetSettings
from mindbus import Client, Command, MessageContext, Rejected, ReplyError, TemporaryFailure
from mindbus.testing.deliver import running


class Spoken(BaseModel):
    text: str


class Speak(Command[Spoken], domain="speaker", action="speak"):
    words: tuple[str, ...]
    is_refused: bool = False


class Speaker(mindbus.Worker):
    """Says its words, then waits until it is heard."""

    name = "speaker"

    def __init__(self) -> None:
        self.is_heard = asyncio.Event()

    @mindbus.on_command
    async def speak(self, command: Speak, context: MessageContext) -> Spoken:
        for word in command.words:
            await context.say(word)
        if command.is_refused:
            raise Rejected(Code.CONFLICT, "changed my mind")
        await self.is_heard.wait()
        return Spoken(text="".join(command.words))


@pytest.fixture
def speaker() -> Speaker:
    return Speaker()


@pytest.fixture
def settings(tmp_path: Path) -> FleetSettings:
    return FleetSettings(amqp_url=f"memory://{tmp_path}", data_dir=tmp_path)


async def test_what_is_said_is_heard_though_nothing_follows(speaker: Speaker, settings: FleetSettings) -> None:
    words = ("что ", "сказано, ", "то ", "слышно")
    heard: list[str] = []
    async with running(lambda _kit: speaker, settings=settings) as bus, asyncio.timeout(10):
        async for part in bus.stream(Speak(words=words)):
            if isinstance(part, Spoken):
                assert part.text == "".join(heard)
                break
            heard.append(part)
            if "".join(heard) == "".join(words):
                speaker.is_heard.set()
    assert 1 <= len(heard) < len(words)


async def test_the_parts_come_before_the_result_without_a_pause_at_the_end(
    speaker: Speaker, settings: FleetSettings
) -> None:
    speaker.is_heard.set()
    async with running(lambda _kit: speaker, settings=settings) as bus, asyncio.timeout(10):
        parts = [part async for part in bus.stream(Speak(words=("a", "b", "c")))]
    assert parts[-1] == Spoken(text="abc")
    assert "".join(str(part) for part in parts[:-1]) == "abc"


async def test_after_a_refusal_nothing_is_said_any_more(speaker: Speaker, settings: FleetSettings) -> None:
    heard: list[object] = []

    async def listen(bus: Client) -> None:
        async for part in bus.stream(Speak(words=("a", "b", "c"), is_refused=True)):
            heard.append(part)

    async with running(lambda _kit: speaker, settings=settings) as bus, asyncio.timeout(10):
        with pytest.raises(ReplyError, match="changed my mind"):
            await listen(bus)
    assert len(heard) <= 1


async def test_whoever_did_not_ask_to_be_told_is_not(speaker: Speaker, settings: FleetSettings) -> None:
    speaker.is_heard.set()
    async with running(lambda _kit: speaker, settings=settings) as bus, asyncio.timeout(10):
        assert await bus.request(Speak(words=("a", "b"))) == Spoken(text="ab")


class Stutterer(mindbus.Worker):
    """Fails in the middle of its first attempt; in the second it takes back its first words."""

    name = "speaker"
    attempts = 2

    def __init__(self) -> None:
        self.heard = asyncio.Semaphore(0)

    @mindbus.on_command
    async def speak(self, command: Speak, context: MessageContext) -> Spoken:
        await context.say("half a word")
        await self.heard.acquire()
        if context.attempt == 1:
            raise TemporaryFailure("lost the thread", timedelta(0))
        await context.say(TextPart("the ", restarts=True))
        await context.say("whole")
        return Spoken(text="the whole")


async def test_a_text_begins_again_with_another_attempt_and_where_its_writer_says_so(settings: FleetSettings) -> None:
    stutterer, parts = Stutterer(), []
    async with running(lambda _kit: stutterer, settings=settings) as bus, asyncio.timeout(20):
        async for part in bus.stream(Speak(words=()), timeout_s=20):
            parts.append(part)
            stutterer.heard.release()

    assert parts[-1] == Spoken(text="the whole")
    texts = [part for part in parts if isinstance(part, TextPart)]
    assert [text.restarts for text in texts[:3]] == [False, True, True]
    assert "".join(texts[2:]) == "the whole"
