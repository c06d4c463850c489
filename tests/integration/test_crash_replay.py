"""What died with the message that killed its worker is handled after all."""

import json
from pathlib import Path

import aio_pika
import pytest
from sqlalchemy import MetaData

from config.settings import FleetSettings
from mindbus import WorkerContext, connect
from mindbus.bus.deadletters import DeadLetter, DeadLetters
from mindbus.bus.decode import ORIGIN
from mindbus.bus.outcomes import REPLAYED_BY
from mindbus.bus.topology import REQUEUE
from mindbus.sql.database import Database
from mindbus.sql.inbox import SqlInbox
from mindbus.sql.tables import add_inbox_tables
from mindbus.testing.wait import until
from tests.fleets import fleet_of, settings_for
from tests.greetings import Greet, Greeter
from tests.management import Management
from tests.raw_amqp import an_envelope, properties_for, raw_publisher

QUEUE = "mb.q.greeter"
LIMIT = 2


class Recorder(Greeter):
    """A greeter with a database."""

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context)
        self.database = Database(context.settings.database_of("greeter"), "greeter")
        self.inbox = SqlInbox(self.database)

    async def start(self) -> None:
        metadata = MetaData()
        add_inbox_tables(metadata)
        self.database.run_on_admin_connection(metadata.create_all)

    async def stop(self) -> None:
        await self.database.dispose()


@pytest.fixture
async def settings(vhost: str, vhost_url: str, tmp_path: Path, management: Management) -> FleetSettings:
    """Its queue has a limit that is soon reached."""
    settings = settings_for(vhost_url, tmp_path)
    await management.limit_deliveries(LIMIT, vhost)
    async with fleet_of(Recorder, settings=settings):
        pass
    return settings


async def _send_into_a_crash_loop(settings: FleetSettings, vhost_url: str, *names: str) -> None:
    """Have messages taken by workers that die, until the broker gives them up."""
    async with connect(settings=settings) as bus:
        for name in names:
            await bus.send(Greet(name=name), message_id=f"of-{name}")
    for _ in range(LIMIT + 1):
        async with await aio_pika.connect(vhost_url) as connection:
            queue = await (await connection.channel()).get_queue(QUEUE, ensure=False)
            while await queue.get(fail=False) is not None:
                pass


async def _letters(dead: DeadLetters, *names: str) -> list[DeadLetter]:
    """The dead letters, once they are these."""

    async def look() -> list[DeadLetter]:
        letters = await dead.look("greeter")
        return letters if {letter.message_id for letter in letters} == {f"of-{name}" for name in names} else []

    return await until(look, what=f"dead letters of {names}")


async def test_what_died_with_another_is_handled_when_the_worker_is_back(
    vhost_url: str, settings: FleetSettings
) -> None:
    dead = DeadLetters(vhost_url)
    await _send_into_a_crash_loop(settings, vhost_url, "Ann", "Bob")
    letters = await _letters(dead, "Ann", "Bob")
    assert {letter.reason for letter in letters} == {"the worker died on it again and again"}

    async with fleet_of(Recorder, settings=settings) as fleet:
        await until(lambda: sorted(fleet[Recorder].greeted) == ["Ann", "Bob"])

    assert await dead.look("greeter") == []


async def test_what_was_handled_before_its_worker_died_is_not_handled_again(
    vhost_url: str, settings: FleetSettings
) -> None:
    async with fleet_of(Recorder, settings=settings) as fleet:
        await fleet.bus.request(Greet(name="Ann"), message_id="of-Ann")
    await _send_into_a_crash_loop(settings, vhost_url, "Ann", "Bob")
    await _letters(DeadLetters(vhost_url), "Ann", "Bob")

    async with fleet_of(Recorder, settings=settings) as fleet:
        await until(lambda: fleet[Recorder].greeted == ["Bob"])
        await _letters(DeadLetters(vhost_url), "Ann")


async def test_what_dies_again_stays_among_the_dead(vhost_url: str, settings: FleetSettings) -> None:
    await _send_into_a_crash_loop(settings, vhost_url, "Ann")
    async with raw_publisher(vhost_url) as raw:
        envelope = an_envelope(id="of-Bob", correlationid="of-Bob", data={"name": "Bob"})
        headers = {ORIGIN: QUEUE, REPLAYED_BY: "svc.greeter"}
        body, properties = json.dumps(envelope).encode(), properties_for(envelope, headers=headers)
        await raw.body(body, REQUEUE, QUEUE, **properties)
    await _send_into_a_crash_loop(settings, vhost_url)

    async with fleet_of(Recorder, settings=settings) as fleet:
        await until(lambda: fleet[Recorder].greeted == ["Ann"])
        (letter,) = await _letters(DeadLetters(vhost_url), "Bob")

    assert letter.replayed_by == "svc.greeter"
