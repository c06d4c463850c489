"""The history worker is killed while many chats go on: nothing is lost, doubled, out of order, or another chat's."""

import asyncio
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bus_schema.history import AppendHistory, GetHistory, HistoryMessage, ShowHistory, chat_key, subagent_key
from mindbus import Client, connect
from mindbus.testing.wait import until
from tests.fleets import settings_for
from tests.forked_workers import forked_workers_of
from tests.history_kit import exchange, said

CHATS = 20
DELEGATIONS = 10
SUBAGENTS = ("analytic", "critic")

pytestmark = [pytest.mark.chaos, pytest.mark.slow]


class Master:
    """Has one chat's delegations, each kept before the next, some told twice, as by who has not heard the answer."""

    def __init__(self, bus: Client, chat: int, chance: random.Random) -> None:
        self._bus, self.chat, self._chance = bus, chat, chance
        self.kept: dict[str, list[str]] = {}
        self.delegations = 0

    async def work(self) -> None:
        for number in range(DELEGATIONS):
            await self._append(chat_key(self.chat), [said(f"{self.chat}-{number}-asked")])
            key = subagent_key(self._chance.choice(SUBAGENTS), self.chat)
            await self._append(key, self._of_this_chat(exchange(number, results=self._chance.randrange(3))))
            await self._see_it(key)
            await self._append(chat_key(self.chat), [said(f"{self.chat}-{number}-answered", role="assistant")])
            self.delegations += 1

    async def _append(self, key: str, messages: list[HistoryMessage]) -> None:
        command = AppendHistory(key=key, messages=tuple(messages))
        if self._chance.random() < 1 / 4:
            # Nobody waits for the first: it may be at work when the second comes.
            await self._bus.send(command)
        self.kept.setdefault(key, []).extend(message.id for message in messages)
        assert (await self._bus.request(command)).length == len(self.kept[key])

    async def _see_it(self, key: str) -> None:
        seen = await self._bus.request(GetHistory(key=key, context_window=1000))
        assert seen.length == len(self.kept[key])
        assert all(str(message.content).startswith(f"chat {self.chat}:") for message in seen.messages)

    def _of_this_chat(self, messages: list[HistoryMessage]) -> list[HistoryMessage]:
        return [
            message.model_copy(update={"id": f"{self.chat}-{message.id}", "content": f"chat {self.chat}: {message.id}"})
            for message in messages
        ]


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=[pytest.mark.backends, pytest.mark.proof])])
def redis_url_or_none(request: pytest.FixtureRequest) -> str | None:
    return request.getfixturevalue("redis_url") if request.param == "redis" else None


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=[pytest.mark.proof, pytest.mark.timeout(900)])])
async def test_no_message_is_lost_doubled_or_out_of_order(
    vhost_url: str, tmp_path: Path, redis_url_or_none: str | None, report: Callable[[str], None], kills: int
) -> None:
    options = {"redis_url": redis_url_or_none, "request_timeout_s": 300, "max_history": 1000}
    settings = settings_for(vhost_url, tmp_path, **options)
    chance = random.Random(kills)
    with forked_workers_of(settings) as workers:
        await workers.start("history")
        async with connect("svc.dialogue", settings=settings) as bus:
            masters = [Master(bus, 100 + number, random.Random(number)) for number in range(CHATS)]
            began = time.monotonic()
            talking = asyncio.gather(*(master.work() for master in masters))
            for number in range(kills):
                wanted = CHATS * DELEGATIONS * (number + 1) // (kills + 2)
                await until(lambda: talking.done() or sum(m.delegations for m in masters) >= wanted, 120)  # noqa: B023
                # At any moment of what it does.
                await asyncio.sleep(chance.random() * 0.02)
                await workers.kill("history")
            await talking
            took = time.monotonic() - began

            for master in masters:
                for key, expected in master.kept.items():
                    found = (await bus.request(ShowHistory(key=key))).messages
                    assert [message.id for message in found] == expected
    messages = sum(len(ids) for master in masters for ids in master.kept.values())
    report(f"{settings.redis_url or 'sqlite'}: {CHATS} chats, {messages} messages, {kills} kills in {took:.1f} s")
