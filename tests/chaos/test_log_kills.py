"""Long-term memory is killed while it takes down what is said: every word is in the log, once."""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from bus_schema.conversations import SaveMessage
from bus_schema.lsm import GetEpisode, ListEpisodes, RecordExchange, SaidMessage
from mindbus import BusUnavailable, Client, ReplyError, connect
from mindbus.testing.wait import until
from tests.clocks import NOON
from tests.fleets import settings_for
from tests.forked_workers import forked_workers_of

MESSAGES_A_KILL = 20
TOLD, HEARD = "told", "heard"

pytestmark = [pytest.mark.chaos, pytest.mark.slow]


async def say(bus: Client, number: int) -> None:
    """One message to each chat, whatever becomes of the answer."""
    time = NOON + timedelta(minutes=number)
    message = SaidMessage(message_id=f"msg_{number}", role="user", content=f"Told {number}", time=time)
    stored = SaveMessage(message_id=f"msg_{number}", user_id=HEARD, role="user", content=f"Heard {number}", time=time)
    await bus.acting_as("svc.dialogue").request(stored)
    while True:
        with contextlib.suppress(ReplyError, BusUnavailable):
            await bus.request(RecordExchange(chat_id=TOLD, messages=(message,)), timeout_s=5)
            return


async def log_of(bus: Client, chat: str) -> list[str]:
    """All that its episodes have, which are hot."""
    found: list[str] = []
    for head in (await bus.request(ListEpisodes(chat_id=chat, limit=200))).items:
        episode = await bus.request(GetEpisode(episode_id=head.id))
        assert episode.content.layer == "hot"
        found += [turn.content for turn in episode.content.raw_messages]
    return sorted(found)


@pytest.mark.parametrize("kills", [2, pytest.param(50, marks=[pytest.mark.proof, pytest.mark.timeout(1800)])])
async def test_every_word_is_in_the_log_once_whenever_lsm_is_killed(
    vhost_url: str, tmp_path: Path, report: Callable[[str], None], kills: int
) -> None:
    settings = settings_for(vhost_url, tmp_path, lsm_gap_check_s=1)
    total = kills * MESSAGES_A_KILL
    with forked_workers_of(settings) as workers:
        await workers.start("storage", "lsm")
        async with connect("user.local", settings=settings) as bus:
            for kill in range(kills):
                numbers = range(kill * MESSAGES_A_KILL, (kill + 1) * MESSAGES_A_KILL)
                saying = asyncio.gather(*(say(bus, number) for number in numbers))
                await workers.kill("lsm")
                await saying
            for chat, word in ((TOLD, "Told"), (HEARD, "Heard")):
                expected = sorted(f"{word} {number}" for number in range(total))

                async def is_whole(chat: str = chat, expected: list[str] = expected) -> bool:
                    return await log_of(bus, chat) == expected

                await until(is_whole, 30)
    report(f"{kills} kills of lsm amid {2 * total} messages: each in the log, once")
