"""Many who ask one service at once share its messages; each hears what became of their own."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from bus_schema.conversations import Saved, SaveMessage, SaveMessages
from bus_schema.dialogue import DialogueMessage
from bus_schema.replies import Code, ReplyBatch
from mindbus import Worker, WorkerContext, on_command
from mindbus.bus.outcomes import reply_of
from mindbus.errors import Rejected, TemporaryFailure
from mindbus.sdk.conversations import Conversations
from tests.clocks import NOON
from tests.fleets import Fleet, fleet_of, settings_for


class Storage(Worker):
    """Notes who comes with whom; answers the first once `opened`, refuses what nobody may say."""

    name = "storage"
    attempts = 1

    def __init__(self, _kit: WorkerContext) -> None:
        self.came: list[list[str]] = []
        self.opened = asyncio.Event()
        self.has_begun = asyncio.Event()
        self.is_well, self.goes_away = True, False

    @on_command
    async def save(self, command: SaveMessage) -> Saved:
        self.came.append([command.message_id])
        self.has_begun.set()
        await self.opened.wait()
        return Saved(message_id=command.message_id)

    @on_command
    async def save_all(self, command: SaveMessages) -> ReplyBatch:
        self.came.append([message.message_id for message in command.messages])
        if not self.is_well:
            raise TemporaryFailure("out of sorts")
        if any(message.content == "the unreadable" for message in command.messages):
            self.is_well = not self.goes_away
            raise Rejected(Code.INVALID, "none of it")
        return ReplyBatch(items=tuple(map(reply_of, map(self._outcome, command.messages))))

    def _outcome(self, message: DialogueMessage) -> Saved | Rejected:
        if message.content == "the unspeakable":
            return Rejected(Code.CONFLICT, "not that")
        return Saved(message_id=message.message_id)


class Speakers:
    """Users who say something at the same moment."""

    def __init__(self, fleet: Fleet) -> None:
        self.storage: Storage = fleet[Storage]
        self.conversations = Conversations(fleet.bus.acting_as("svc.dialogue"), None, largest_inline_bytes=1000)  # type: ignore[arg-type]  # no artifacts here

    def say(self, number: int, content: str = "Hello") -> "asyncio.Task[Saved]":
        message = DialogueMessage(
            message_id=f"msg_{number}",
            user_id=f"user{number}",
            role="user",
            content=content,
            time=NOON + timedelta(seconds=number),
        )
        return asyncio.create_task(self.conversations.keep(message))

    async def first(self) -> "asyncio.Task[Saved]":
        """One of them, with whom storage is busy from now on."""
        saying = self.say(0)
        await self.storage.has_begun.wait()
        return saying


@pytest.fixture
async def speakers(tmp_path: Path) -> AsyncIterator[Speakers]:
    async with fleet_of(Storage, settings=settings_for(f"memory://{tmp_path}", tmp_path)) as fleet:
        yield Speakers(fleet)


async def test_what_comes_while_one_is_under_way_goes_in_one_message(speakers: Speakers) -> None:
    first = await speakers.first()
    others = [speakers.say(number) for number in range(1, 8)]
    await asyncio.sleep(0)
    speakers.storage.opened.set()

    saved = await asyncio.gather(first, *others)

    assert [each.message_id for each in saved] == [f"msg_{number}" for number in range(8)]
    assert speakers.storage.came == [["msg_0"], [f"msg_{number}" for number in range(1, 8)]]


async def test_who_asks_alone_asks_alone(speakers: Speakers) -> None:
    speakers.storage.opened.set()
    for number in range(3):
        await speakers.say(number)

    assert speakers.storage.came == [["msg_0"], ["msg_1"], ["msg_2"]]


async def test_one_that_is_refused_keeps_no_other_from_it(speakers: Speakers) -> None:
    first = await speakers.first()
    spoken, unspeakable, after = speakers.say(1), speakers.say(2, "the unspeakable"), speakers.say(3)
    await asyncio.sleep(0)
    speakers.storage.opened.set()

    with pytest.raises(Rejected, match="not that") as refusal:
        await unspeakable
    assert refusal.value.code is Code.CONFLICT
    assert [(await each).message_id for each in (first, spoken, after)] == ["msg_0", "msg_1", "msg_3"]


async def test_all_hear_that_their_message_failed_and_may_ask_again(speakers: Speakers) -> None:
    first = await speakers.first()
    others = [speakers.say(number) for number in (1, 2)]
    await asyncio.sleep(0)
    speakers.storage.is_well = False
    speakers.storage.opened.set()

    await first
    for each in others:
        with pytest.raises(TemporaryFailure, match="out of sorts"):
            await each

    assert (await speakers.say(3)).message_id == "msg_3"


async def test_where_the_service_goes_away_the_rest_of_a_refused_group_is_not_tried(speakers: Speakers) -> None:
    first, speakers.storage.goes_away = await speakers.first(), True
    others = [speakers.say(number, "the unreadable") for number in (1, 2, 3)]
    await asyncio.sleep(0)
    speakers.storage.opened.set()

    failures = await asyncio.gather(*others, return_exceptions=True)

    await first
    assert all(isinstance(each, TemporaryFailure) for each in failures)
    assert ["msg_1"] in speakers.storage.came
    assert ["msg_2"] not in speakers.storage.came


async def test_the_others_go_on_when_one_gives_up(speakers: Speakers) -> None:
    first = await speakers.first()
    staying, leaving = speakers.say(1), speakers.say(2)
    await asyncio.sleep(0)
    first.cancel()
    leaving.cancel()
    speakers.storage.opened.set()

    assert (await staying).message_id == "msg_1"
    assert speakers.storage.came == [["msg_0"], ["msg_1"]]
    await asyncio.gather(first, leaving, return_exceptions=True)
    assert first.cancelled()
    assert leaving.cancelled()


async def test_a_message_that_is_refused_as_a_whole_is_sent_in_parts(speakers: Speakers) -> None:
    first = await speakers.first()
    contents = ["Hello", "the unreadable", "Good day"]
    others = [speakers.say(number, content) for number, content in enumerate(contents, 1)]
    await asyncio.sleep(0)
    speakers.storage.opened.set()

    saved = await asyncio.gather(first, *others, return_exceptions=True)

    assert [isinstance(each, Saved) for each in saved] == [True, True, False, True]
    assert isinstance(saved[2], Rejected)
    assert saved[2].code is Code.INVALID
    assert sorted(speakers.storage.came[2:]) == [["msg_1"], ["msg_2"], ["msg_3"]]
