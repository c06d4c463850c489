"""Long-term memory as others meet it: on a real RabbitMQ, through the client."""

import re
import sqlite3
import zlib
from collections.abc import AsyncIterator
from contextlib import suppress
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
from bus_schema.lsm_statistics import ExplainEpisode, GetEpisodeStats, MemorySizes
from bus_schema.packer import ApplyPack, GetDueEpisodes
from bus_schema.replies import Code
from bus_schema.storage import GetArtifact, SearchArtifacts
from config.settings import FleetSettings
from mindbus import ReplyError, WorkerContext
from mindbus.cli.users import ask_owners
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
    assert (stats.turns, stats.layers[Layer.HOT].episodes, stats.sizes) == (2, 1, None)


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


SECRET = "Zanzibar"
LONG_TALK = tuple(
    f"On day {day} Vesna told us that the lighthouse keeper of {SECRET} painted door number {day} in another colour, "
    "as extraordinarily conscientious representatives of administrations notwithstanding thunderstorms and "
    "misunderstandings customarily demonstrate."
    for day in range(40)
)


async def test_raw_turns_of_long_cold_episodes_move_to_artifacts_and_go_with_their_user(
    settings: FleetSettings, tmp_path: Path
) -> None:
    settings = settings.model_copy(update={"lsm_raw_days": 1e-6})
    async with fleet_of(FLEET["storage"], lsm, settings=settings) as fleet:
        episode_id = (await fleet.bus.request(exchange(*LONG_TALK))).episode_id
        await until(lambda: has_vectors(fleet))
        before = await found_about_doors(fleet)
        await cool(fleet, episode_id)
    assert SECRET not in dump_of(tmp_path)

    # Another process builds the index of what the artifact has.
    async with fleet_of(FLEET["storage"], lsm, settings=settings) as fleet:
        assert await found_about_doors(fleet) == before
        explained = await fleet.bus.request(ExplainEpisode(episode_id=episode_id))
        assert explained.raw_turns == "artifact"
        content = await fleet.bus.request(UnpackEpisode(episode_id=episode_id))
        assert tuple(turn.content for turn in content.raw_messages) == LONG_TALK
        assert (await sizes_of(fleet)).archived_texts == 0
        await cool(fleet, episode_id)

        assert has_archive(tmp_path / "artifacts")
        (artifact,) = (
            await fleet.bus.acting_as("svc.lsm").request(SearchArtifacts(artifact_type="episode_turns"))
        ).items
        bus = fleet.bus.acting_as("user.local")
        forgotten = await ask_owners(bus, DeleteUser(user_id=ANNA), ("storage", "lsm"), within_s=30)
        assert (forgotten.failed, forgotten.removed["storage"]["artifacts"]) == ({}, 1)
        with pytest.raises(ReplyError):
            await fleet.bus.acting_as("svc.lsm").request(GetArtifact(artifact_id=artifact.id))
        await until(lambda: not has_archive(tmp_path / "artifacts"))


async def has_vectors(fleet: Fleet) -> bool:
    return not (await fleet.bus.request(GetEpisodeStats())).waiting_for_vectors


async def found_about_doors(fleet: Fleet) -> list[tuple[str, str]]:
    found = await fleet.bus.request(SearchEpisodes(query="Who painted door 7?", chat_id=ANNA, touch=False))
    assert not found.unreadable
    return [(turn.raw_log_id, turn.content) for each in found.episodes for turn in each.turns]


async def sizes_of(fleet: Fleet) -> MemorySizes:
    sizes = (await fleet.bus.request(GetEpisodeStats(chat_id=ANNA, with_sizes=True))).sizes
    assert sizes is not None
    return sizes


async def cool(fleet: Fleet, episode_id: str | None) -> None:
    """Down to the cold layer, then until its texts are in an artifact."""
    assert episode_id is not None
    for _layer in range(2):
        await pack(fleet, await fleet.bus.request(GetEpisode(episode_id=episode_id)))

    async def is_archived() -> bool:
        return (await sizes_of(fleet)).archived_texts > 0

    await until(is_archived)
    assert (await sizes_of(fleet)).texts == 0


def dump_of(folder: Path) -> str:
    with sqlite3.connect(folder / "lsm.db") as connection:
        return "\n".join(line for line in connection.iterdump() if '"raw_log"' in line)


def has_archive(folder: Path) -> bool:
    """Whether any file has a compressed stream that tells the word."""
    for path in filter(Path.is_file, folder.rglob("*")):
        stored = path.read_bytes()
        for start in (found.start() for found in re.finditer(re.escape(b"\x1f\x8b\x08"), stored)):
            with suppress(zlib.error):
                if SECRET.encode() in zlib.decompressobj(wbits=31).decompress(stored[start:]):
                    return True
    return False
