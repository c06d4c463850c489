"""What was said is in the log for good, in an episode at once."""

import asyncio
from datetime import timedelta

import pytest

from bus_schema.dialogue import MessageKind
from bus_schema.episodes import AnchorReason, Layer
from bus_schema.lsm_events import EpisodeAnchored, EpisodeOpened, EpisodeRecorded
from memory.errors import MessageDiffers
from memory.lsm.log_changes import LogListener
from memory.lsm.tables import TurnRow
from tests.clocks import NOON
from tests.lsm_kit import ANNA, Archive, said, talk

HOUR = timedelta(hours=1)


async def test_what_is_said_is_kept_word_for_word_in_one_episode(archive: Archive) -> None:
    outcome = await archive.record(*talk("Привет!", "Hello, how can I help?"))

    assert await archive.log() == ["Привет!", "Hello, how can I help?"]
    assert outcome.episode_id is not None
    episode = await archive.episode(outcome.episode_id)
    assert episode.layer is Layer.HOT
    assert episode.raw_log_ids == outcome.raw_log_ids
    assert [type(event) for event in outcome.events] == [EpisodeOpened, EpisodeRecorded]


async def test_a_message_that_comes_again_is_kept_once(archive: Archive) -> None:
    message = said("Hello", message_id="msg_1")
    first = await archive.record(message)

    again = await archive.record(message)

    assert (again.raw_log_ids, again.episode_id, again.events) == (first.raw_log_ids, first.episode_id, [])
    assert await archive.count(TurnRow) == 1


async def test_a_message_without_an_id_is_the_same_if_all_of_it_is(archive: Archive) -> None:
    await archive.record(said("Hello"))
    await archive.record(said("Hello"))
    await archive.record(said("Hello", NOON + timedelta(seconds=1)))

    assert await archive.count(TurnRow) == 2


async def test_other_words_under_the_same_id_are_refused_with_all_that_came_with_them(archive: Archive) -> None:
    await archive.record(said("Hello", message_id="msg_1"))

    with pytest.raises(MessageDiffers):
        await archive.record(said("New", message_id="msg_2"), said("Goodbye", message_id="msg_1"))

    assert await archive.log() == ["Hello"]


async def test_the_same_id_in_another_chat_is_another_message(archive: Archive) -> None:
    await archive.record(said("Hello", message_id="msg_1"))
    await archive.record(said("Bonjour", message_id="msg_1"), chat="boris")

    assert await archive.log("boris") == ["Bonjour"]


async def test_after_a_long_silence_another_episode_begins(archive: Archive) -> None:
    await archive.record(*talk("One", "Two"))
    await archive.record(*talk("Three", "Four", begins=NOON + 4 * HOUR))

    assert [row.turns for row in await archive.episodes()] == [2, 2]


async def test_a_full_episode_is_gone_on_from_by_the_next(archive: Archive) -> None:
    await archive.record(*talk(*(f"Turn {number}" for number in range(14))))

    rows = await archive.episodes()
    assert [row.turns for row in rows] == [6, 6, 2]
    assert [row.continues_from for row in rows] == [None, rows[0].id, rows[1].id]


async def test_an_imported_log_of_years_has_an_episode_for_every_talk(archive: Archive) -> None:
    months = [NOON - timedelta(days=30 * number) for number in range(24)]
    await archive.record(*(each for begins in months for each in talk("Question", "Answer", begins=begins)))

    rows = await archive.episodes()
    assert [row.started_at for row in rows] == sorted(months)
    assert all(row.last_accessed == row.ended_at for row in rows)


async def test_what_comes_late_finds_its_place_by_its_time(archive: Archive) -> None:
    await archive.record(*talk("One", "Two"))
    await archive.record(*talk("Far later", begins=NOON + 9 * HOUR))

    late = await archive.record(said("In between", NOON + timedelta(seconds=30)))

    rows = await archive.episodes()
    assert late.episode_id == rows[0].id
    assert [turn.content for turn in (await archive.episode(rows[0].id)).content.raw_messages] == [  # type: ignore[union-attr]  # it is hot
        "One",
        "In between",
        "Two",
    ]


async def test_what_comes_late_to_a_packed_episode_has_one_of_its_own(archive: Archive) -> None:
    first = await archive.record(*talk("The release was moved to Friday.", "Noted."))
    assert first.episode_id is not None
    await archive.pack(first.episode_id)

    late = await archive.record(said("In between", NOON + timedelta(seconds=30)))

    assert late.episode_id != first.episode_id
    assert (await archive.episode(first.episode_id)).turns == 2


async def test_many_who_tell_at_once_tell_one_after_the_other(archive: Archive) -> None:
    told = [said(f"Told {number}", NOON + timedelta(seconds=number % 7)) for number in range(12)]

    await asyncio.gather(*(archive.record(one, other) for one, other in zip(told, reversed(told), strict=True)))

    assert sorted(await archive.log()) == sorted(each.content for each in told)
    assert sum(row.turns for row in await archive.episodes()) == 12


async def test_a_hidden_instruction_is_in_the_log_yet_in_no_episode(archive: Archive) -> None:
    outcome = await archive.record(said("Tell him gently", kind=MessageKind.HIDDEN, is_heard=True))

    assert outcome.episode_id is None
    assert await archive.log() == ["Tell him gently"]
    assert await archive.episodes() == []


async def test_what_is_never_to_be_forgotten_makes_an_anchor(archive: Archive) -> None:
    outcome = await archive.record(*talk("Hello", "Hello, who is it?", "My name is Anna."))

    (row,) = await archive.episodes()
    assert (row.is_anchor, row.anchor_reason) == (True, AnchorReason.PROFILE)
    told = EpisodeAnchored(episode_id=row.id, chat_id=ANNA, is_anchor=True, reason=AnchorReason.PROFILE)
    assert told in outcome.events


async def test_what_the_assistant_says_makes_no_anchor(archive: Archive) -> None:
    await archive.record(said("My name is MindBus.", role="assistant"))

    assert [row.is_anchor for row in await archive.episodes()] == [False]


async def test_listeners_of_the_log_are_called_after_the_commit(archive: Archive) -> None:
    class Listener(LogListener):
        def __init__(self) -> None:
            self.changes: list[tuple[str, str | None]] = []

        def on_recorded(self, chat_id: str) -> None:
            self.changes.append(("recorded", chat_id))

        def on_erased(self, chat_id: str | None) -> None:
            self.changes.append(("erased", chat_id))

    listener = Listener()
    archive.memory.listeners.add(listener)
    await archive.record(said("Hello", message_id="msg_1"))
    with pytest.raises(MessageDiffers):
        await archive.record(said("New"), said("Goodbye", message_id="msg_1"))
    await archive.work(lambda: archive.memory.erasure.erase(ANNA))

    assert listener.changes == [("recorded", ANNA), ("erased", ANNA)]
