"""An episode beside its raw text, with the reasons of its place; layers over time."""

from datetime import timedelta

import pytest

from bus_schema.episodes import AnchorReason, Layer
from bus_schema.lsm_statistics import GetLayerHistory
from memory.errors import NoSuchEpisode
from tests.clocks import NOON
from tests.lsm_kit import Archive, talk

DAY = timedelta(days=1)
LONG_AGO = NOON - 400 * DAY
WORDS = ("Решили: аванс 30 %, остальное после монтажа. " + "Погода сегодня была чудесная, мы гуляли. " * 8, "Хорошо.")


async def recorded(archive: Archive) -> str:
    outcome = await archive.record(*talk(*WORDS, begins=LONG_AGO))
    return str(outcome.episode_id)


async def test_a_packed_episode_is_shown_beside_what_it_was_made_from(archive: Archive) -> None:
    episode_id = await recorded(archive)
    await archive.pack(episode_id, LONG_AGO + 20 * DAY)

    explained = await archive.memory.queries.explain(episode_id, LONG_AGO + 20 * DAY)

    assert [turn.content for turn in explained.turns] == list(WORDS)
    assert explained.episode.layer is Layer.WARM
    assert explained.episode.kept_words == explained.kept_words < explained.episode.words
    assert explained.report is not None
    assert explained.report.verified


async def test_looking_at_an_episode_is_no_use_of_it(archive: Archive) -> None:
    episode_id = await recorded(archive)
    before = await archive.episode(episode_id)

    await archive.memory.queries.explain(episode_id, NOON)

    assert await archive.episode(episode_id) == before


async def test_a_priority_is_the_sum_of_its_terms(archive: Archive) -> None:
    episode_id = await recorded(archive)
    await archive.unpack(episode_id, LONG_AGO)

    plain = await archive.memory.queries.explain(episode_id, LONG_AGO + 14 * DAY)
    assert plain.terms.recency == pytest.approx(0.15, abs=1e-4)
    assert (plain.terms.importance, plain.terms.relevance) == (0, 0)
    assert plain.episode.priority == pytest.approx(plain.terms.recency + plain.terms.frequency)

    # A question adds its relevance, at most the weight of that.
    at, rules, (episode,) = LONG_AGO + 14 * DAY, archive.memory.queries.rules, await archive.episodes()
    at_rest = rules.priority(episode, at)
    assert at_rest == pytest.approx(plain.episode.priority)
    added = [rules.priority(episode, at, relevance) - at_rest for relevance in (-1.0, 0.5, 1.0, 7.0)]
    assert added == pytest.approx([0.0, 0.1, 0.2, 0.2])

    await archive.anchor(episode_id, reason=AnchorReason.PROJECT)
    anchor = await archive.memory.queries.explain(episode_id, LONG_AGO + 400 * DAY)
    assert anchor.terms.floor == anchor.episode.priority


async def test_the_next_layer_comes_when_it_is_told_to_come(archive: Archive) -> None:
    episode_id = await recorded(archive)
    for layer in (Layer.WARM, Layer.COLD):
        following = (await archive.memory.queries.explain(episode_id, LONG_AGO)).next
        assert following is not None
        assert following.layer is layer
        assert await archive.due(following.at - timedelta(minutes=1)) == []
        assert await archive.due(following.at + timedelta(minutes=1)) == [(episode_id, layer, "age")]
        await archive.pack(episode_id, following.at)
    assert (await archive.memory.queries.explain(episode_id, LONG_AGO)).next is None


async def test_an_episode_that_was_used_often_goes_down_once_its_recency_has_faded(archive: Archive) -> None:
    episode_id = await recorded(archive)
    await archive.pack(episode_id, LONG_AGO)
    await archive.touch([episode_id], LONG_AGO)
    following = (await archive.memory.queries.explain(episode_id, LONG_AGO)).next

    assert following is not None
    assert await archive.due(following.at + timedelta(minutes=1)) == [(episode_id, Layer.COLD, "age")]


async def test_an_unknown_episode_is_told_to_be_none(archive: Archive) -> None:
    with pytest.raises(NoSuchEpisode):
        await archive.memory.queries.explain("ep_none", NOON)


async def test_layers_over_time_add_up_to_what_is_kept(archive: Archive) -> None:
    episode_id = await recorded(archive)
    await archive.pack(episode_id, LONG_AGO + 20 * DAY)
    await archive.pack(episode_id, LONG_AGO + 200 * DAY)
    await archive.unpack(episode_id, LONG_AGO + 300 * DAY)
    await archive.record(*talk("Hello there", begins=LONG_AGO), chat="boris")
    said = (await archive.episode(episode_id)).words

    history = await archive.memory.statistics.layer_history(GetLayerHistory(chat_id="anna", steps=5), NOON)

    assert [point.at for point in history.points] == [LONG_AGO + 100 * number * DAY for number in range(5)]
    layers = [[layer for layer in Layer if point.words[layer]] for point in history.points]
    assert layers == [[Layer.HOT], [Layer.WARM], [Layer.COLD], [Layer.HOT], [Layer.HOT]]
    assert history.points[0].words[Layer.HOT] == history.points[-1].words[Layer.HOT] == said
    assert {point.raw_words for point in history.points} == {said}
    all_of_them = await archive.memory.statistics.layer_history(GetLayerHistory(), NOON)
    assert all_of_them.points[-1].words[Layer.HOT] == said + 2


async def test_what_was_packed_as_of_a_time_to_come_is_seen_packed(archive: Archive) -> None:
    episode_id = await recorded(archive)
    await archive.pack(episode_id, NOON + 20 * DAY)

    history = await archive.memory.statistics.layer_history(GetLayerHistory(), NOON)
    assert (history.points[-1].at, history.points[-1].words[Layer.HOT]) == (NOON + 20 * DAY, 0)
    till_now = await archive.memory.statistics.layer_history(GetLayerHistory(until=NOON), NOON)
    assert (till_now.points[-1].at, till_now.points[-1].words[Layer.WARM]) == (NOON, 0)


async def test_what_is_forgotten_leaves_no_trace_in_the_layers(archive: Archive) -> None:
    episode_id = await recorded(archive)
    await archive.pack(episode_id, LONG_AGO + 20 * DAY)

    await archive.work(lambda: archive.memory.erasure.erase("anna"))

    assert (await archive.memory.statistics.layer_history(GetLayerHistory(), NOON)).points == ()
