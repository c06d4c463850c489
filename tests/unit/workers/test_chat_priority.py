"""A process without the dialogue hears of its chats on the bus, so that its background calls yield to them."""

import asyncio
from pathlib import Path

import pytest

import mindbus
from agents.models.endpoint import EndpointModel
from agents.models.language_model import ModelMessage
from bus_schema.dialogue import MessageKind, MessageReceived, MessageSent
from config.settings import FleetSettings
from mindbus.bus.worker import WorkerContext
from mindbus.testing import running, until
from tests.scripted_model import ScriptedModel
from workers import chat_priority
from workers.chat_priority import ChatPriority

QUESTION = [ModelMessage(role="user", content="Read this.")]


class SlowModel(ScriptedModel):
    """Answers when it is let."""

    def __init__(self) -> None:
        super().__init__("done")
        self.goes_on = asyncio.Event()

    async def complete(self, messages, **options):  # type: ignore[no-untyped-def]
        completion = await super().complete(messages, **options)
        await self.goes_on.wait()
        return completion


class Reader(mindbus.Worker):
    name = "reader"

    def __init__(self, context: WorkerContext, model: EndpointModel) -> None:
        self.include(ChatPriority(context.bus, model))


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FleetSettings:
    monkeypatch.setattr(chat_priority, "_PAUSE_S", 0.01)
    return FleetSettings(amqp_url=f"memory://{tmp_path.name}", data_dir=tmp_path)


async def test_a_call_is_interrupted_by_a_chat_elsewhere_and_made_again_after_it(settings: FleetSettings) -> None:
    slow = SlowModel()
    model = EndpointModel(slow, "http://127.0.0.1:1/v1")
    async with running(lambda context: Reader(context, model), settings=settings) as bus:
        await until(lambda: model.endpoint.is_followed)
        reading = asyncio.create_task(model.complete(QUESTION))
        await until(lambda: len(slow.asked) == 1)

        received = MessageReceived(user_id="anna", message_id="msg_1", kind=MessageKind.NATIVE)
        await until(lambda: _said(bus, received, model), 10, "the chat has begun")
        slow.goes_on.set()
        assert not reading.done()
        await bus.publish(MessageSent(user_id="anna", message_id="msg_2", kind=MessageKind.NATIVE))

        assert (await reading).text == "done"
    assert len(slow.asked) == 2


async def test_nobody_follows_the_chats_of_a_dialogue_in_the_same_process(settings: FleetSettings) -> None:
    model = EndpointModel(SlowModel(), "http://127.0.0.1:1/v1")
    model.endpoint.has_chat = True
    async with running(lambda context: Reader(context, model), settings=settings) as bus, asyncio.timeout(5):
        await ChatPriority(bus, model).follow_chats()

    assert not model.endpoint.is_followed


async def _said(bus: mindbus.Client, received: MessageReceived, model: EndpointModel) -> bool:
    """Say it until it is heard: the subscription begins a moment after the follower."""
    await bus.publish(received)
    return model.endpoint.chats > 0
