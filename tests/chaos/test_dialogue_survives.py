"""A simulated day is kept, heard and answered whole, whatever is killed in the middle of it."""

import asyncio
import random
import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from benchmarks.servers.workers import Workers
from bus_schema.sim import GetSimStatus, StartSim
from mindbus.testing.wait import until
from tests.dialogue_kit import RUNTIME, Runtime, dialogue_settings, runtime
from tests.forked_workers import forked_workers_of
from tests.simulated_days import require_whole, whole_day

pytestmark = pytest.mark.chaos

VICTIMS = ("dialogue", "task_manager", "context")
UNHARMED = tuple(name for name in RUNTIME if name not in VICTIMS)
WITHIN_S = 200


async def kill_meanwhile(team: Runtime, workers: Workers, kills: int, limit: int, chance: random.Random) -> list[str]:
    """Spread over the day; everybody's turn comes, the first time in order."""
    killed = []
    for number in range(kills):
        await until(partial(has_come_to, team, limit * (number + 1) // (kills + 2)), WITHIN_S)
        victim = VICTIMS[number] if number < len(VICTIMS) else chance.choice(VICTIMS)
        await workers.kill(victim)
        killed.append(victim)
    return killed


async def has_come_to(team: Runtime, messages: int) -> bool:
    counts = (await team.bus.request(GetSimStatus())).counts
    return counts is not None and counts.sent >= messages


@pytest.mark.parametrize(
    ("kills", "limit", "speed"),
    [(3, 24, 1500), pytest.param(10, 200, 60, marks=[pytest.mark.proof, pytest.mark.timeout(900)])],
)
async def test_nothing_is_lost_or_doubled_by_kills(
    vhost_url: str, tmp_path: Path, report: Callable[[str], None], kills: int, limit: int, speed: float
) -> None:
    seed = secrets.randbits(32)
    settings = dialogue_settings(vhost_url, tmp_path)
    order = StartSim(profiles="team_ru", seed=7, speed=speed, limit=limit)
    async with runtime(settings, *UNHARMED, "sim") as team:
        with forked_workers_of(settings) as workers:
            await workers.start(*VICTIMS)
            day = asyncio.create_task(whole_day(team, order, WITHIN_S + 30 * kills))
            killed = await kill_meanwhile(team, workers, kills, limit, random.Random(seed))
            whole = await day

    require_whole(whole, order)
    report(
        f"{killed} killed: {limit} messages, {len(whole.fragments)} fragments,"
        f" {len(whole.events_of('processed'))} processed, {len(whole.named('notification_generated'))} notifications"
        f" of which {len(whole.named('notification_sent'))} were told"
    )
