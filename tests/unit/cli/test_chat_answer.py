"""`mindbus chat`: an answer that begins again, and one that nobody waits for any more."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from bus_schema.dialogue import Answered, CancelAnswer, Invoke
from bus_schema.replies import TextPart
from config.settings import FleetSettings
from mindbus.bus.client import Client
from mindbus.cli.chat import AssistantClient


class Bus:
    """Streams an answer that breaks off once, then begins again; then it may be silent."""

    def __init__(self, *, is_silent: bool = False) -> None:
        self.is_silent = is_silent
        self.sent: list[Any] = []

    async def stream(self, command: Invoke, **_where: Any) -> AsyncIterator[str | Answered]:
        yield TextPart("Всё хор")
        if self.is_silent:
            await asyncio.Event().wait()
        yield TextPart("Всё", restarts=True)
        yield TextPart(" в порядке.")
        yield Answered(message_id=command.message_id or "", response_id="msg_2", response="Всё в порядке.")

    async def send(self, command: Any, **_where: Any) -> str:
        self.sent.append(command)
        return "sent"


def client_of(bus: Bus, folder: Path) -> AssistantClient:
    return AssistantClient(cast("Client", bus), FleetSettings(data_dir=folder))


QUESTION = Invoke(user_id="anna", message="Как дела?", message_id="msg_1", stream=True)


async def test_an_answer_that_begins_again_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await client_of(Bus(), tmp_path).answer(QUESTION)

    shown = capsys.readouterr()
    assert shown.out == "Всё хор\nВсё в порядке.\n"
    assert "The answer begins again." in shown.err


async def test_an_interrupted_wait_cancels_the_answer(tmp_path: Path) -> None:
    bus = Bus(is_silent=True)
    asking = asyncio.create_task(client_of(bus, tmp_path).answer(QUESTION))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])

    assert bus.sent == [CancelAnswer(user_id="anna", message_id="msg_1")]
