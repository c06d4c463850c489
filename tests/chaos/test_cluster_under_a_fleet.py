"""A fleet on three RabbitMQ nodes, each of which is lost in turn, under runs, dialogues and recordings."""

from pathlib import Path

import pytest

from tests.chaos.lost_nodes import each_in_turn
from tests.chaos.replicas import fleet_and_life
from tests.chaos.talker import Talker, well_ended
from tests.rabbit_cluster import rabbit_cluster

pytestmark = [pytest.mark.slow, pytest.mark.chaos, pytest.mark.rabbit, pytest.mark.backends, pytest.mark.proof]

_WORKERS = ("storage", "history", "lsm", "orchestrator", "critic", "dialogue")
_RUNS, _DIALOGUES = 50, 20


@pytest.mark.timeout(1800)
async def test_nothing_is_lost_doubled_or_out_of_order(tmp_path: Path) -> None:
    kinds = ("process", "dialogue", "recording")
    async with (
        rabbit_cluster(tmp_path / "cluster") as cluster,
        fleet_and_life(tmp_path, workers=_WORKERS, kinds=kinds, cluster=cluster) as (_, life),
    ):
        talker = Talker(life)

        async def goes_on() -> None:
            print(f"operations of each kind are done in {await life.goes_on():.1f} s")

        async with talker.talking():
            await each_in_turn(cluster, goes_on)
            while life.count("process") < _RUNS or life.count("dialogue") < _DIALOGUES:
                await life.goes_on()
        print(await well_ended(life, talker))
