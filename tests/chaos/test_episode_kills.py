"""Packer and long-term memory are killed amid packing: every episode is in one layer, whole, its log untouched."""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from bus_schema.episodes import ColdContent, Episode, HotContent, Layer, WarmContent
from bus_schema.lsm import GetEpisode, ListEpisodes, RecordExchange, SaidMessage
from bus_schema.packer import PackRun, RunPacking
from memory.packing.verification import verify
from mindbus import BusUnavailable, Client, ReplyError, connect
from tests.fleets import settings_for
from tests.forked_workers import forked_workers_of
from tests.generated_episodes import Generated, generated_episodes

CHATS_A_KILL = 4
RUN_WITHIN_S = 60.0

pytestmark = [pytest.mark.chaos, pytest.mark.slow]
_KINDS = {Layer.HOT: HotContent, Layer.WARM: WarmContent, Layer.COLD: ColdContent}


class Chats:
    """What was said in each, so that it can be compared with what is kept."""

    def __init__(self, bus: Client, made_up: Sequence[Generated]) -> None:
        self._bus, self._spare = bus, list(made_up)
        self._said: dict[str, Generated] = {}
        self.at = made_up[0].turns[0].time + timedelta(days=200)

    async def begin(self, many: int) -> list[str]:
        """So many new ones."""
        begun = [f"chat-{len(self._said) + number}" for number in range(many)]
        for chat in begun:
            self._said[chat] = made_up = self._spare.pop()
            said = tuple(SaidMessage(role=turn.role, content=turn.content, time=turn.time) for turn in made_up.turns)
            await self._bus.request(RecordExchange(chat_id=chat, messages=said))
        return begun

    async def require_whole(self, chats: Iterable[str] | None = None) -> Counter[Layer]:
        """How many episodes each layer has."""
        layers = Counter[Layer]()
        for chat in self._said if chats is None else chats:
            logged: list[str] = []
            for head in (await self._bus.request(ListEpisodes(chat_id=chat, at=self.at, limit=200))).items:
                episode = await self._bus.request(GetEpisode(episode_id=head.id, at=self.at))
                _require_consistent(episode, self._said[chat])
                layers[episode.layer] += 1
                logged += episode.raw_log_ids
            assert len(set(logged)) == len(logged) == len(self._said[chat].turns), "the raw log is complete"
        return layers

    async def run(self) -> PackRun:
        return await self._bus.request(RunPacking(at=self.at), timeout_s=RUN_WITHIN_S)


def _require_consistent(episode: Episode, made_up: Generated) -> None:
    content = episode.content
    assert isinstance(content, _KINDS[episode.layer])
    # Nothing but packing has changed it, one layer at a time.
    assert episode.version >= 1 + list(Layer).index(episode.layer)
    if isinstance(content, HotContent):
        said = {turn.content for turn in made_up.turns}
        assert {turn.content for turn in content.raw_messages} <= said
    elif isinstance(content, ColdContent):
        assert verify(content, made_up.turns).holds


async def _cut_short(chats: Chats) -> None:
    """A run of which nobody need hear the end."""
    with contextlib.suppress(ReplyError, BusUnavailable):
        await chats.run()


@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=[pytest.mark.proof, pytest.mark.timeout(1800)])])
async def test_every_episode_is_in_one_layer_whoever_is_killed(
    vhost_url: str, tmp_path: Path, report: Callable[[str], None], kills: int
) -> None:
    settings = settings_for(vhost_url, tmp_path, packer_interval_s=0, lsm_gap_check_s=3600, request_timeout_s=60)
    chance = random.Random(kills)
    amid = 0
    with forked_workers_of(settings) as workers:
        await workers.start("lsm", "packer")
        async with connect("user.local", settings=settings) as bus:
            chats = Chats(bus, generated_episodes(CHATS_A_KILL * kills, seed=7))
            for number in range(kills):
                begun = await chats.begin(CHATS_A_KILL)
                running = asyncio.ensure_future(_cut_short(chats))
                # At any moment of what it does.
                await asyncio.sleep(chance.random() * 0.3)
                await workers.kill(("packer", "lsm")[number % 2])
                amid += not running.done()
                await chats.require_whole(begun)
                running.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await running
            while not (await chats.run()).is_done:
                pass
            layers = await chats.require_whole()
    assert set(layers) == {Layer.COLD}
    report(f"{kills} kills, {amid} of them amid a run: {layers[Layer.COLD]} episodes, each whole, all of them cold")
