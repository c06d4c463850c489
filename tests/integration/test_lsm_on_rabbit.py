"""Long-term memory as others meet it: on a real RabbitMQ, through the client."""

import sqlite3
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from bus_schema.conversations import SaveMessage
from bus_schema.data import DeleteUser
from bus_schema.dialogue import MAX_MESSAGE_CHARS, DialogueFragment, DialogueMessage, conversation_trace
from bus_schema.episodes import Episode, EpisodeHead, Layer, WarmContent
from bus_schema.lsm import GetEpisode, ListEpisodes, RecordExchange, SaidMessage, SetAnchor, UnpackEpisode
from bus_schema.lsm_events import EpisodePacked, EpisodeRecorded
from bus_schema.lsm_search import GetHotEpisodes, SearchEpisodes
from bus_schema.lsm_statistics import GetEpisodeStats
from bus_schema.packer import ApplyPack, GetDueEpisodes
from bus_schema.replies import Code
from config.settings import FleetSettings
from mindbus import ReplyError, WorkerContext
from mindbus.sdk.artifacts import open_artifacts
from mindbus.testing.wait import until
from tests.clocks import NOON
from tests.fleets import Fleet, fleet_of, settings_for
from tests.hashing_embedder import HashingEmbedder
from tests.installed import FLEET
from tests.lsm_kit import ANNA, a_report, packed
from workers.lsm.worker import LsmWorker, lsm_with

MONTHS = timedelta(days=120)
TALK = (
    "Let us use PostgreSQL for the Orion project, said Maria.",
    "We decided to use PostgreSQL for the Orion project.",
)


@pytest.fixture
def settings(vhost_url: str, tmp_path: Path) -> FleetSettings:
    return settings_for(vhost_url, tmp_path, lsm_gap_check_s=0.2)


def lsm(context: WorkerContext) -> LsmWorker:
    """With an embedder that takes no time to load."""

    async def opening() -> HashingEmbedder:
        return HashingEmbedder()

    return lsm_with(opening, context)


lsm.name = "lsm"  # type: ignore[attr-defined]  # as a Worker class has one


@pytest.fixture
async def fleet(settings: FleetSettings) -> AsyncIterator[Fleet]:
    async with fleet_of(FLEET["storage"], lsm, settings=settings) as running:
        yield running


def exchange(*contents: str, begins: datetime = NOON, chat: str = ANNA) -> RecordExchange:
    messages = [
        SaidMessage(role=role, content=text, time=begins + timedelta(minutes=place))
        for place, (role, text) in enumerate(zip(cycle(("user", "assistant")), contents, strict=False))
    ]
    return RecordExchange(chat_id=chat, messages=tuple(messages))


def stored(number: int, text: str = "Hello", chat: str = ANNA) -> SaveMessage:
    return SaveMessage(
        message_id=f"msg_{number}", user_id=chat, role="user", content=text, time=NOON + timedelta(minutes=number)
    )


async def episodes_of(fleet: Fleet, chat: str = ANNA) -> tuple[EpisodeHead, ...]:
    return (await fleet.bus.request(ListEpisodes(chat_id=chat))).items


async def pack(fleet: Fleet, episode: Episode) -> EpisodeHead:
    content = packed(episode)
    command = ApplyPack(
        episode_id=episode.id,
        expected_version=episode.version,
        to=Layer(content.layer),
        content=content,
        report=a_report(),
    )
    return await fleet.bus.request(command)


async def test_an_episode_from_its_first_word_down_the_layers_and_back(fleet: Fleet) -> None:
    async with fleet.bus.subscribe(EpisodePacked) as events:
        told = aiter(events)
        recorded = await fleet.bus.request(exchange(*TALK))
        due = (await fleet.bus.request(GetDueEpisodes(at=NOON + MONTHS))).items
        assert [(item.episode_id, item.to) for item in due] == [(recorded.episode_id, Layer.WARM)]

        for layer in (Layer.WARM, Layer.COLD):
            episode = await fleet.bus.request(GetEpisode(episode_id=recorded.episode_id))
            assert (await pack(fleet, episode)).layer is layer
            assert (await anext(told)).layer is layer

    content = await fleet.bus.request(UnpackEpisode(episode_id=recorded.episode_id, at=NOON + MONTHS))
    assert tuple(turn.content for turn in content.raw_messages) == TALK
    hot = await fleet.bus.request(GetHotEpisodes(chat_id=ANNA, budget_words=100))
    assert [turn.content for each in hot.episodes for turn in each.turns] == list(TALK)
    stats = await fleet.bus.request(GetEpisodeStats(chat_id=ANNA))
    assert (stats.turns, stats.layers[Layer.HOT].episodes) == (2, 1)


async def test_what_storage_keeps_is_heard_at_once(fleet: Fleet) -> None:
    async with fleet.bus.subscribe(EpisodeRecorded) as events:
        await fleet.bus.acting_as("svc.dialogue").request(stored(1, "Меня зовут Анна."))
        event = await anext(aiter(events))

    (head,) = await episodes_of(fleet)
    assert (head.id, head.turns, head.is_anchor) == (event.episode_id, 1, True)


async def test_what_was_said_while_lsm_was_not_there_is_filled_in(settings: FleetSettings) -> None:
    async with fleet_of(FLEET["storage"], settings=settings) as alone:
        for number in range(5):
            await alone.bus.acting_as("svc.dialogue").request(stored(number))
    async with fleet_of(FLEET["storage"], lsm, settings=settings) as fleet:

        async def turns() -> bool:
            return sum(head.turns for head in await episodes_of(fleet)) == 5

        await until(turns)


async def test_what_was_said_by_pointer_is_kept_word_for_word(fleet: Fleet, settings: FleetSettings) -> None:
    long = "Длинное письмо. " * 4000
    trace = conversation_trace(ANNA)
    async with open_artifacts(fleet.bus, settings) as artifacts:
        put = await artifacts.put(long.encode(), artifact_type="message", trace=trace, content_type="text/plain")
    said = {"message_id": "msg_1", "user_id": ANNA, "role": "user", "time": NOON, "ref": put.manifest.ref}
    await fleet.bus.acting_as("svc.dialogue").request(SaveMessage.model_validate(said))

    async def is_heard() -> bool:
        return bool(await episodes_of(fleet))

    await until(is_heard)
    (head,) = await episodes_of(fleet)
    content = await fleet.bus.request(UnpackEpisode(episode_id=head.id))
    assert content.raw_messages[0].content == long[:MAX_MESSAGE_CHARS]


async def test_a_stretch_that_ends_is_told_with_its_episode(fleet: Fleet) -> None:
    saved = stored(1, "The tomatoes have yellow leaves.")
    await fleet.bus.acting_as("svc.dialogue").request(saved)
    message = DialogueMessage.model_validate(saved.model_dump())
    fragment = DialogueFragment(
        fragment_id="frag_1",
        user_id=ANNA,
        message_ids=(message.message_id,),
        messages=(message,),
        started_at=message.time,
        ended_at=message.time,
        reason="ended",
    )
    async with fleet.bus.subscribe(EpisodeRecorded) as events:
        await fleet.bus.publish(fragment)
        async for event in events:
            if event.fragment_id == "frag_1":
                break

    (head,) = await episodes_of(fleet)
    assert (head.id, head.turns) == (event.episode_id, 1)


async def test_a_forgotten_user_stays_forgotten_though_the_log_is_compared_again(fleet: Fleet) -> None:
    await fleet.bus.acting_as("svc.dialogue").request(stored(1))
    await fleet.bus.request(exchange("Other things", chat="boris"))

    async def is_heard() -> bool:
        return bool(await episodes_of(fleet))

    await until(is_heard)
    bus = fleet.bus.acting_as("user.local")
    await bus.request(DeleteUser(user_id=ANNA), to="storage")
    removed = await bus.request(DeleteUser(user_id=ANNA), to="lsm")

    # Whether it had a vector by then is a matter of moments.
    counts = {kind: count for kind, count in removed.counts.items() if kind != "vectors"}
    assert counts == {"memberships": 1, "turns": 1, "episodes": 1, "chats": 1}
    assert await episodes_of(fleet) == ()
    assert len(await episodes_of(fleet, "boris")) == 1


async def test_of_whoever_is_forgotten_no_word_is_left_in_the_database(fleet: Fleet, tmp_path: Path) -> None:
    secret = "Zanzibar"
    recorded = await fleet.bus.request(exchange(f"My name is Anna, the word is {secret}.", "Noted."))
    await pack(fleet, await fleet.bus.request(GetEpisode(episode_id=recorded.episode_id)))
    await fleet.bus.request(UnpackEpisode(episode_id=recorded.episode_id))
    await pack(fleet, await fleet.bus.request(GetEpisode(episode_id=recorded.episode_id)))
    await fleet.bus.request(SearchEpisodes(query=secret, chat_id=ANNA))

    await fleet.bus.acting_as("user.local").request(DeleteUser(user_id=ANNA), to="lsm")

    with sqlite3.connect(tmp_path / "lsm.db") as connection:
        assert secret not in "\n".join(connection.iterdump())


BAD: dict[str, tuple[Any, Code]] = {
    "unknown episode": (GetEpisode(episode_id="ep_unknown"), Code.NOT_FOUND),
    "unknown episode to unpack": (UnpackEpisode(episode_id="ep_unknown"), Code.NOT_FOUND),
    "unknown episode to anchor": (SetAnchor(episode_id="ep_unknown"), Code.NOT_FOUND),
    "unknown episode to pack": (
        ApplyPack(
            episode_id="ep_unknown",
            expected_version=1,
            to=Layer.WARM,
            content=WarmContent(summary="Anna moves."),
            report=a_report(),
        ),
        Code.NOT_FOUND,
    ),
    "a cursor of nobody": (ListEpisodes(cursor="bm9uZQ=="), Code.INVALID),
}


async def test_bad_questions_are_answered_with_a_reason(fleet: Fleet) -> None:
    for what, (command, code) in BAD.items():
        with pytest.raises(ReplyError) as no:
            await fleet.bus.request(command)
        assert no.value.code is code, what
        assert no.value.message, what
