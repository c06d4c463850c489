"""Episodes go down by time and priority, up by use, anchors never to the bottom; nothing else moves them."""

from datetime import timedelta

import pytest

from bus_schema.dialogue import MessageKind
from bus_schema.episodes import AnchorReason, ColdContent, HotContent, Layer, Note, WarmContent
from bus_schema.lsm_events import EpisodeReactivated, EpisodeTouched
from config.settings import FleetSettings
from memory.errors import AnchorsStay, EpisodeHasChanged, NoSuchEpisode, NotTheNextLayer, PackRejected
from mindbus.sql.database import Database
from tests.clocks import NOON
from tests.lsm_kit import ANNA, Archive, said, talk
from tests.postgres import DatabaseOf

DAY = timedelta(days=1)
TALK = (
    "Let us decide on the database for the Orion project.",
    "PostgreSQL would suit it, Maria from Berlin said so.",
    "We decided to use PostgreSQL for the Orion project.",
    "Noted: PostgreSQL, from March 3 on.",
)


async def an_episode(archive: Archive, *contents: str) -> str:
    outcome = await archive.record(*talk(*(contents or TALK)))
    assert outcome.episode_id is not None
    return outcome.episode_id


async def cold(archive: Archive, episode_id: str) -> None:
    await archive.pack(episode_id, NOON + 15 * DAY)
    await archive.pack(episode_id, NOON + 100 * DAY)


async def test_an_episode_goes_down_when_its_time_has_come_not_before(archive: Archive) -> None:
    episode_id = await an_episode(archive)
    ended = (await archive.episode(episode_id)).ended_at

    assert await archive.due(ended + 14 * DAY - timedelta(seconds=1)) == []
    assert await archive.due(ended + 14 * DAY) == [(episode_id, Layer.WARM, "age")]
    await archive.pack(episode_id)
    assert await archive.due(ended + 90 * DAY - timedelta(seconds=1)) == []
    assert await archive.due(ended + 90 * DAY) == [(episode_id, Layer.COLD, "age")]


async def test_every_layer_keeps_what_it_is_to_keep(archive: Archive) -> None:
    episode_id = await an_episode(archive)
    assert isinstance((await archive.episode(episode_id)).content, HotContent)

    head, packed = await archive.pack(episode_id)
    assert (head.layer, packed.layer_before, packed.layer) == (Layer.WARM, Layer.HOT, Layer.WARM)
    warm = (await archive.episode(episode_id)).content
    assert isinstance(warm, WarmContent)
    assert "PostgreSQL" in " ".join(decision.text for decision in warm.decisions)

    await archive.pack(episode_id)
    episode = await archive.episode(episode_id)
    assert isinstance(episode.content, ColdContent)
    assert (episode.headline, episode.turns) == (episode.content.headline, 4)
    assert await archive.log() == list(TALK)


async def test_a_pack_of_what_has_changed_meanwhile_is_a_conflict(archive: Archive) -> None:
    episode_id = await an_episode(archive)
    proposal = await archive.proposal(episode_id)
    await archive.touch([episode_id])

    with pytest.raises(EpisodeHasChanged):
        await archive.apply(proposal)

    assert (await archive.episode(episode_id)).layer is Layer.HOT


async def test_a_pack_that_no_longer_holds_since_more_was_said_is_a_conflict(archive: Archive) -> None:
    episode_id = await an_episode(archive)
    proposal = await archive.proposal(episode_id)
    await archive.record(said("We have decided: Maria from Berlin moves to Lisbon in May."))

    with pytest.raises(EpisodeHasChanged):
        await archive.apply(proposal)


async def test_the_same_pack_again_changes_nothing(archive: Archive) -> None:
    proposal = await archive.proposal(await an_episode(archive))
    head, _ = await archive.apply(proposal)

    again, told = await archive.apply(proposal)

    assert (again, told) == (head, None)


async def test_a_pack_that_lost_a_decision_is_refused(archive: Archive) -> None:
    episode_id = await an_episode(archive)
    proposal = await archive.proposal(episode_id)
    poorer = proposal.content.model_copy(update={"decisions": ()})

    with pytest.raises(PackRejected):
        await archive.apply(proposal.model_copy(update={"content": poorer}))

    assert (await archive.episode(episode_id)).layer is Layer.HOT


async def test_a_pack_with_sources_in_other_episodes_is_refused(archive: Archive) -> None:
    episode_id = await an_episode(archive)
    proposal = await archive.proposal(episode_id)
    assert isinstance(proposal.content, WarmContent)
    points = {"key_points": ("We decided to use PostgreSQL.",), "key_point_sources": (("raw_other",),)}

    with pytest.raises(PackRejected):
        await archive.apply(proposal.model_copy(update={"content": proposal.content.model_copy(update=points)}))


async def test_no_layer_is_left_out_on_the_way_down(archive: Archive) -> None:
    episode_id = await an_episode(archive)
    content = ColdContent(headline="PostgreSQL for the Orion project")

    with pytest.raises(NotTheNextLayer):
        await archive.apply(await archive.proposal(episode_id, to=Layer.COLD, content=content))


async def test_an_anchor_goes_warm_never_cold(archive: Archive) -> None:
    episode_id = await an_episode(archive, "My name is Anna Weber. I work as a designer in Berlin.", "Hello Anna!")
    much_later = NOON + 2000 * DAY

    assert await archive.due(much_later) == [(episode_id, Layer.WARM, "age")]
    await archive.pack(episode_id)
    assert await archive.due(much_later) == []
    with pytest.raises(AnchorsStay):
        await archive.pack(episode_id)
    assert (await archive.episode(episode_id, much_later)).priority == 0.5


async def test_what_is_no_anchor_by_hand_never_becomes_one_by_its_words(archive: Archive) -> None:
    episode_id = await an_episode(archive, "My name is Anna.", "Hello Anna!")
    head, (told,) = await archive.anchor(episode_id, is_anchor=False)
    assert (head.is_anchor, told.is_anchor) == (False, False)

    await archive.record(*talk("Remember this forever: I live in Porto.", begins=NOON + timedelta(minutes=5)))

    assert not (await archive.episode(episode_id)).is_anchor


async def test_an_anchor_by_hand_says_why(archive: Archive) -> None:
    episode_id = await an_episode(archive)

    head, (told,) = await archive.anchor(episode_id, reason=AnchorReason.PROJECT)

    assert (head.is_anchor, head.anchor_reason, told.reason) == (True, AnchorReason.PROJECT, AnchorReason.PROJECT)


async def test_a_cold_episode_that_becomes_an_anchor_is_hot_again(archive: Archive) -> None:
    episode_id = await an_episode(archive)
    await cold(archive, episode_id)

    head, told = await archive.anchor(episode_id)

    assert (head.layer, [type(event).__name__ for event in told]) == (
        Layer.HOT,
        ["EpisodeAnchored", "EpisodeReactivated"],
    )


async def test_unpacking_a_cold_episode_makes_it_hot_with_every_word_of_it(archive: Archive) -> None:
    episode_id = await an_episode(archive)
    await cold(archive, episode_id)
    later = NOON + 120 * DAY

    content, told = await archive.unpack(episode_id, later)

    assert [turn.content for turn in content.raw_messages] == list(TALK)
    assert isinstance(told, EpisodeReactivated)
    assert told.layer_before is Layer.COLD
    episode = await archive.episode(episode_id, later)
    assert (episode.layer, episode.last_accessed) == (Layer.HOT, later)
    assert await archive.due(later + 13 * DAY) == []


async def test_a_warm_episode_that_is_used_often_is_hot_again(archive: Archive) -> None:
    episode_id = await an_episode(archive)
    await archive.pack(episode_id)
    at = NOON + 20 * DAY

    first, second, third = [await archive.touch([episode_id], at) for _ in range(3)]

    assert [type(event) for event in first + second] == [EpisodeTouched, EpisodeTouched]
    assert [event.wire.type for event in third] == [EpisodeTouched.wire.type, EpisodeReactivated.wire.type]
    assert (await archive.episode(episode_id, at)).layer is Layer.HOT


async def test_a_cold_episode_that_is_found_stays_cold_until_it_is_unpacked(archive: Archive) -> None:
    episode_id = await an_episode(archive)
    await cold(archive, episode_id)

    for _ in range(5):
        await archive.touch([episode_id], NOON + 200 * DAY)

    assert (await archive.episode(episode_id)).layer is Layer.COLD


async def test_use_as_of_long_ago_makes_nothing_older(archive: Archive) -> None:
    episode_id = await an_episode(archive)
    before = await archive.episode(episode_id)

    await archive.touch([episode_id], NOON - 500 * DAY)

    after = await archive.episode(episode_id)
    assert (after.last_accessed, after.access_count) == (before.last_accessed, 1)


async def test_use_raises_the_priority(archive: Archive) -> None:
    episode_id = await an_episode(archive)
    at = NOON + 10 * DAY
    before = (await archive.episode(episode_id, at)).priority

    await archive.touch([episode_id], at)

    assert (await archive.episode(episode_id, at)).priority > before


async def test_beyond_its_tokens_a_chat_sends_its_oldest_down_but_no_anchor_nor_what_is_being_said(
    database_of: DatabaseOf,
) -> None:
    archive = Archive(Database(database_of("lsm"), "lsm"), FleetSettings(lsm_max_turns=6, lsm_hot_tokens=100))
    long = " ".join(["word"] * 30)
    ids = []
    for hours, words in enumerate(("My name is Anna.", long, long, long, long)):
        begins = NOON + timedelta(hours=4 * hours)
        ids.append((await archive.record(*talk(words, begins=begins))).episode_id)
    await archive.record(*talk(long), chat="boris")

    due = await archive.due(NOON + timedelta(hours=16, minutes=1))

    assert due == [(ids[1], Layer.WARM, "tokens"), (ids[2], Layer.WARM, "tokens")]
    await archive.database.dispose()


async def test_what_is_due_comes_in_batches_the_longest_waiting_first(archive: Archive) -> None:
    ids = [(await archive.record(*talk(f"Matter {day}", begins=NOON + day * DAY))).episode_id for day in (3, 1, 2, 0)]
    expected = [ids[3], ids[1], ids[2], ids[0]]
    later = NOON + 50 * DAY

    first = await archive.due(later, limit=2)
    rest = await archive.due(later, after=first[-1][0])

    assert [each for each, *_ in first + rest] == expected


async def test_an_unknown_episode_is_said_to_be_unknown(archive: Archive) -> None:
    with pytest.raises(NoSuchEpisode):
        await archive.episode("ep_unknown")
    with pytest.raises(NoSuchEpisode):
        await archive.unpack("ep_unknown")
    with pytest.raises(NoSuchEpisode):
        await archive.anchor("ep_unknown")
    assert await archive.touch(["ep_unknown"]) == []


async def test_notes_are_made_with_the_pack_and_stay_in_every_layer(archive: Archive) -> None:
    episode_id = await an_episode(archive, *TALK, "My favourite answers about databases are short.")
    before = await archive.episode(episode_id)
    ours = Note(kind="event", text="decided to use PostgreSQL for Orion", raw_log_ids=before.raw_log_ids[2:3])
    invented = Note(kind="event", text="decided to use MongoDB for Orion", raw_log_ids=before.raw_log_ids[2:3])
    assert before.notes == ()

    with pytest.raises(PackRejected) as refused:
        await archive.pack(episode_id, notes=(invented,))
    await archive.pack(episode_id, notes=(ours,))
    warm = await archive.episode(episode_id)
    await archive.pack(episode_id)
    packed = await archive.episode(episode_id)
    await archive.unpack(episode_id)

    assert invented.text in str(refused.value.details)
    assert {(note.kind, note.text) for note in warm.notes} >= {
        ("preference", "My favourite answers about databases are short."),
        ("event", ours.text),
    }
    assert (packed.layer, packed.notes) == (Layer.COLD, warm.notes)
    await archive.pack(episode_id)
    assert set((await archive.episode(episode_id)).notes) == set(warm.notes)


async def test_whoever_is_forgotten_leaves_nothing(archive: Archive) -> None:
    episode_id = await an_episode(archive, *TALK[:3], "Noted.", "I prefer to keep it for ten years.")
    await archive.pack(episode_id)
    await archive.record(*talk("Привет"), chat="boris")

    counts = await archive.work(lambda: archive.memory.erasure.erase(ANNA))

    assert counts == {
        "packs": 1,
        "notes": 1,
        "vectors": 0,
        "memberships": 5,
        "turns": 5,
        "episodes": 1,
        "searches": 0,
        "chats": 1,
    }
    assert await archive.log() == []
    assert await archive.log("boris") == ["Привет"]
    assert (await archive.stats()).chats == 1


async def test_the_measures_are_counted_by_layer(archive: Archive) -> None:
    episode_id = await an_episode(archive)
    await archive.record(*talk("My name is Boris.", begins=NOON + DAY))
    await archive.pack(episode_id)

    stats = await archive.stats(ANNA)

    assert (stats.turns, stats.episodes, stats.anchors, stats.verified_packs) == (5, 2, 1, 1)
    assert stats.layers[Layer.WARM].raw_words > stats.layers[Layer.WARM].words > 0
    assert stats.layers[Layer.HOT].words == stats.layers[Layer.HOT].raw_words == 4


async def test_every_pack_is_counted_by_its_layer(archive: Archive) -> None:
    episode_id = await an_episode(archive)
    await archive.pack(episode_id)
    await archive.pack(episode_id)

    stats = await archive.stats(ANNA)

    assert [stats.layers[layer].packs for layer in Layer] == [0, 1, 1]
    assert stats.verified_packs == 2


async def test_what_never_gets_a_vector_does_not_wait_for_one(archive: Archive) -> None:
    await archive.record(
        said("Привет"), said("", NOON + DAY), said("Отвечай коротко.", NOON + 2 * DAY, kind=MessageKind.HIDDEN)
    )

    assert (await archive.stats()).waiting_for_vectors == 1
