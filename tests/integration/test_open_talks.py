"""The assistant keeps the talks that it leads in memory; what others change of them counts from the next message."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bus_schema.conversations import MessageStored, SaveMessage
from bus_schema.data import DeleteUser
from bus_schema.dialogue import conversation_trace
from bus_schema.envelope import Envelope
from bus_schema.history import ClearHistory, ShowHistory, chat_key
from bus_schema.ids import derived
from mindbus import WorkerContext
from mindbus.bus.context import MessageContext
from mindbus.bus.worker import CallNext
from mindbus.sdk.recall import ContextItem, UserContexts
from tests.dialogue_kit import Runtime, dialogue_settings
from tests.fleets import fleet_of
from tests.installed import FLEET
from tests.scripted_model import ScriptedModel
from workers.dialogue.worker import DialogueWorker


class Talk(Runtime):
    """A dialogue with a scripted model, and the types of what storage and history have handled."""

    def __init__(self, fleet: Any, model: ScriptedModel, handled: list[str]) -> None:
        super().__init__(fleet)
        self.model, self.handled = model, handled

    @property
    def shown(self) -> list[str]:
        """What the model was shown last, but for its instructions."""
        return [message.content for message in self.model.asked[-1] if message.role != "system"]

    @property
    def said(self) -> list[str]:
        """The same without the date and the material that stand before the words."""
        return [content.strip().splitlines()[-1] for content in self.shown]


def counted(name: str, handled: list[str]) -> Any:
    async def count(context: MessageContext, call_next: CallNext) -> Any:
        handled.append(context.envelope.type)
        return await call_next()

    def make(context: WorkerContext) -> Any:
        worker = FLEET[name](context)
        worker.middleware = (count, *worker.middleware)
        return worker

    make.name = name  # type: ignore[attr-defined]  # as a Worker class has one
    return make


@pytest.fixture
async def talk(vhost_url: str, tmp_path: Path) -> AsyncIterator[Talk]:
    model, handled = ScriptedModel("I see."), list[str]()

    def dialogue(context: WorkerContext) -> DialogueWorker:
        return DialogueWorker(context, model)

    dialogue.name = "dialogue"  # type: ignore[attr-defined]  # as a Worker class has one
    makers = (counted("storage", handled), counted("history", handled), dialogue)
    async with fleet_of(*makers, settings=dialogue_settings(vhost_url, tmp_path)) as fleet:
        yield Talk(fleet, model, handled)


async def test_the_second_answer_writes_and_reads_nothing(talk: Talk) -> None:
    await talk.say("anna", "My name is Anna.")
    talk.handled.clear()

    await talk.say("anna", "What is my name?")

    asked = [each for each in talk.handled if each.startswith("mb.cmd.")]
    assert sorted(asked) == ["mb.cmd.history.append.v1", *["mb.cmd.storage.save_message.v1"] * 2]
    assert talk.said == ["My name is Anna.", "I see.", "What is my name?"]


async def test_messages_that_are_stored_together_belong_each_to_its_own_story(talk: Talk) -> None:
    users = [f"user{number}" for number in range(12)]
    await asyncio.gather(*(talk.say(user, "My name is Anna.") for user in users))
    talk.handled.clear()

    heard: list[Envelope] = []
    async with talk.bus.subscribe("dialogue.*") as events:
        await asyncio.gather(*(talk.say(user, "What is my name?") for user in users))
        async with asyncio.timeout(20):
            # Of each exchange: received, sent, and both of its messages stored.
            async for event in events:
                heard.append(event)
                if len(heard) == 4 * len(users):
                    break

    assert "mb.cmd.storage.save_messages.v1" in talk.handled
    assert "mb.cmd.history.append_many.v1" in talk.handled
    assert Counter(each.type for each in heard)[MessageStored.wire.type] == 2 * len(users)
    stories = {((each.data or {})["user_id"], each.correlationid, each.mbtraceid) for each in heard}
    assert sorted(user for user, _, _ in stories) == sorted(users)
    assert len({story for _, story, _ in stories}) == len(users)
    assert {trace for _, _, trace in stories} == {conversation_trace(user) for user in users}
    assert len({(each.traceparent or "").split("-")[1] for each in heard}) == len(users)


async def test_a_history_that_was_cleared_is_not_shown_with_the_next_message(talk: Talk) -> None:
    await talk.say("anna", "My name is Anna.")
    await talk.bus.request(ClearHistory(key=chat_key("anna")))

    await talk.say("anna", "What is my name?")

    assert talk.said == ["What is my name?"]


async def test_the_next_message_is_answered_with_the_new_items_about_its_user(talk: Talk) -> None:
    await talk.say("anna", "Hello!")
    await UserContexts(talk.bus).replace("anna", [ContextItem(id="fact_1", text="Anna is allergic to nuts.")])

    await talk.say("anna", "What shall I eat?")

    assert "Anna is allergic to nuts." in talk.shown[-1]


async def test_nothing_is_kept_of_a_user_who_was_erased(talk: Talk) -> None:
    await talk.say("anna", "My name is Anna.")
    await UserContexts(talk.bus).replace("anna", [ContextItem(id="fact_1", text="Anna is allergic to nuts.")])
    await talk.say("anna", "I am hungry.")
    for service in ("history", "storage"):
        await talk.bus.request(DeleteUser(user_id="anna"), to=service)

    await talk.say("anna", "What is my name?")

    assert talk.said == ["What is my name?"]


async def test_an_answer_that_a_crash_kept_from_the_history_gets_there_with_the_repetition(talk: Talk) -> None:
    await talk.say("anna", "Hello!")
    question = {"message_id": "msg_q", "role": "user", "content": "What is my name?"}
    answer = {"message_id": f"msg_{derived('msg_q', 'answer')}", "role": "assistant", "content": "Anna."}
    for fields in (question, answer):
        stored = {"user_id": "anna", "time": datetime.now(UTC), **fields}
        await talk.bus.acting_as("svc.dialogue").request(
            SaveMessage.model_validate(stored), trace=conversation_trace("anna")
        )

    answered = await talk.say("anna", "What is my name?", message_id="msg_q")
    again = await talk.say("anna", "What is my name?", message_id="msg_q")

    stored_history = await talk.bus.request(ShowHistory(key=chat_key("anna")))
    assert (answered.response, again) == ("Anna.", answered)
    assert [each.content for each in stored_history.messages][2:] == ["What is my name?", "Anna."]
