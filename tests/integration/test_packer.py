"""The packer and long-term memory together, on a real RabbitMQ."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from bus_schema.episodes import ColdContent, Episode, EpisodeHead, Layer, WarmContent
from bus_schema.lsm import GetEpisode, ListEpisodes, RecordExchange, SaidMessage, SetAnchor
from bus_schema.packer import PackEpisode, RunPacking
from bus_schema.replies import Code
from config.settings import FleetSettings
from memory.packing.budget import content_words
from memory.packing.verification import verify
from mindbus import Client, Worker, WorkerContext
from mindbus.testing.wait import until
from tests.fleets import Fleet, fleet_of, settings_for
from tests.generated_episodes import Generated, generated_episodes
from tests.installed import FLEET
from tests.scripted_model import ScriptedModel
from workers.packer.worker import PackerWorker

pytestmark = pytest.mark.slow

MADE_UP = generated_episodes(12)
LATER = MADE_UP[0].turns[0].time + timedelta(days=200)


@pytest.fixture
def settings(vhost_url: str, tmp_path: Path) -> FleetSettings:
    return settings_for(vhost_url, tmp_path, packer_interval_s=0, lsm_gap_check_s=3600)


def packer(*answers: str) -> Callable[[WorkerContext], Worker]:
    def made(context: WorkerContext) -> Worker:
        return PackerWorker(context, ScriptedModel(*answers) if answers else None)

    made.name = "packer"  # type: ignore[attr-defined]  # as a Worker class has one
    return made


async def record(bus: Client, made_up: Generated, chat: str) -> str:
    said = tuple(SaidMessage(role=turn.role, content=turn.content, time=turn.time) for turn in made_up.turns)
    return (await bus.request(RecordExchange(chat_id=chat, messages=said))).episode_id


async def episode(bus: Client, episode_id: str) -> Episode:
    return await bus.request(GetEpisode(episode_id=episode_id, at=LATER))


async def heads(bus: Client) -> tuple[EpisodeHead, ...]:
    return (await bus.request(ListEpisodes(at=LATER, limit=200))).items


async def test_an_episode_is_packed_on_demand_an_anchor_no_further_than_warm(settings: FleetSettings) -> None:
    async with fleet_of(FLEET["storage"], FLEET["lsm"], packer(), settings=settings) as fleet:
        bus, made_up = fleet.bus, MADE_UP[8]
        episode_id = await record(bus, made_up, "anna")

        cold = await bus.request(PackEpisode(episode_id=episode_id, to=Layer.COLD, at=LATER))

        assert (cold.outcome, cold.layer, cold.verified) == ("packed", Layer.COLD, True)
        content = (await episode(bus, episode_id)).content
        assert isinstance(content, ColdContent)
        assert verify(content, made_up.turns).holds
        again = await bus.request(PackEpisode(episode_id=episode_id, to=Layer.COLD, at=LATER))
        assert (again.outcome, again.layer) == ("unchanged", Layer.COLD)

        anchor = await record(bus, MADE_UP[0], "boris")
        await bus.request(SetAnchor(episode_id=anchor))
        refused = await bus.request(PackEpisode(episode_id=anchor, to=Layer.COLD, at=LATER))
        assert (refused.outcome, refused.layer) == ("refused", Layer.WARM)


async def test_a_run_is_gone_on_with_until_all_that_is_due_is_packed(settings: FleetSettings) -> None:
    async with fleet_of(FLEET["storage"], FLEET["lsm"], packer(), settings=settings) as fleet:
        await require_runs_pack_everything(fleet)


async def require_runs_pack_everything(fleet: Fleet) -> None:
    bus = fleet.bus
    for number, made_up in enumerate(MADE_UP[:6]):
        await record(bus, made_up, f"chat-{number}")
    many = len(await heads(bus))

    first = await bus.request(RunPacking(at=LATER, limit=3))
    assert (first.warm + first.cold, first.is_done) == (3, False)
    rest = await bus.request(RunPacking(at=LATER))
    assert rest.is_done
    assert (first.warm + rest.warm, first.cold + rest.cold, rest.refused) == (many, many, 0)
    assert {head.layer for head in await heads(bus)} == {Layer.COLD}

    nothing = await bus.request(RunPacking(at=LATER))
    assert (nothing.warm, nothing.cold, nothing.is_done) == (0, 0, True)


async def test_whatever_a_model_answers_memory_keeps_what_was_said(settings: FleetSettings) -> None:
    answer = (
        '{"summary": "Xanadu was sold.", "key_points": [{"text": "Xanadu costs 7 moons.", "turns": [1]}],'
        ' "entities": [], "decisions": []}'
    )
    async with fleet_of(FLEET["storage"], FLEET["lsm"], packer(answer, "babble"), settings=settings) as fleet:
        made_up, babbled = MADE_UP[8], MADE_UP[9]
        mended = await record(fleet.bus, made_up, "anna")
        done = await fleet.bus.request(PackEpisode(episode_id=mended, at=LATER))
        assert "Xanadu was sold." in done.struck_out
        assert done.put_back

        alone = await record(fleet.bus, babbled, "boris")
        assert (await fleet.bus.request(PackEpisode(episode_id=alone, at=LATER))).outcome == "packed"
        for episode_id, each in ((mended, made_up), (alone, babbled)):
            content = (await episode(fleet.bus, episode_id)).content
            assert isinstance(content, WarmContent)
            assert "Xanadu" not in content.model_dump_json()
            assert 3 <= each.words / content_words(content) <= 10


async def test_what_a_model_says_in_its_own_words_can_go_cold(settings: FleetSettings) -> None:
    told = "Participants discuss that walks around the block may help more than sitting in front of the screen."
    point = '{"text": "Walks around the block help more than one more hour in front of the screen.", "turns": [1]}'
    warm = f'{{"summary": "{told}", "key_points": [{point}], "entities": [], "decisions": []}}'
    cold = '{"headline": "Participants discuss walks.", "tags": ["participants", "walks"]}'
    said = "Sometimes a walk around the block helps more than another hour of sitting in front of the screen, may be. "
    async with fleet_of(FLEET["storage"], FLEET["lsm"], packer(warm, cold), settings=settings) as fleet:
        message = SaidMessage(role="user", content=said * 10, time=LATER - timedelta(days=200))
        recorded = await fleet.bus.request(RecordExchange(chat_id="anna", messages=(message,)))
        done = await fleet.bus.request(PackEpisode(episode_id=recorded.episode_id, to=Layer.COLD, at=LATER))

        assert (done.outcome, done.struck_out) == ("packed", ())
        content = (await episode(fleet.bus, recorded.episode_id)).content
        assert isinstance(content, ColdContent)
        assert content.headline == "Participants discuss walks."


async def test_while_memory_is_away_packing_waits(settings: FleetSettings) -> None:
    async with fleet_of(packer(), settings=settings) as fleet:
        asked = asyncio.ensure_future(fleet.bus.ask(PackEpisode(episode_id="ep_unknown"), timeout_s=60))
        async with fleet_of(FLEET["lsm"], settings=settings):
            # Memory has said so, which it could not before.
            assert (await asked).code is Code.NOT_FOUND


async def test_what_has_come_of_age_is_packed_by_itself(vhost_url: str, tmp_path: Path) -> None:
    settings = settings_for(vhost_url, tmp_path, packer_interval_s=0.2, lsm_gap_check_s=3600)
    async with fleet_of(FLEET["storage"], FLEET["lsm"], packer(), settings=settings) as fleet:
        await record(fleet.bus, MADE_UP[0], "anna")

        async def is_packed() -> bool:
            return {head.layer for head in await heads(fleet.bus)} == {Layer.COLD}

        await until(is_packed, 30, "the episode is cold")
