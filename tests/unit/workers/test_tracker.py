"""One event that storage fails over keeps no other from the timeline."""

from pathlib import Path

from sqlalchemy import text

from bus_schema.dialogue import MessageKind, MessageReceived
from bus_schema.fleet import Heartbeat, ProcessMetrics
from bus_schema.ids import mint
from bus_schema.timeline import EventsSaved, GetTimeline, SaveEvents
from config.settings import FleetSettings
from mindbus import Worker, WorkerContext, on_command
from mindbus.sql.database import Database
from mindbus.testing.wait import until
from tests.fleets import fleet_of, settings_for
from tests.installed import FLEET
from tests.postgres import DatabaseOf
from workers.tracker import TrackerWorker

POISON = "poison"


class DelicateStorage(Worker):
    """Fails over one event, whatever comes with it."""

    name = "storage"
    attempts = 1

    def __init__(self, _context: WorkerContext) -> None:
        self.saved: list[str] = []

    @on_command
    async def save(self, command: SaveEvents) -> EventsSaved:
        users = [str(event.user_id) for event in command.events]
        if POISON in users:
            raise ValueError("this event cannot be saved")
        self.saved += users
        return EventsSaved(count=len(users))


async def test_one_event_that_storage_fails_over_does_not_keep_the_others(tmp_path: Path) -> None:
    settings = FleetSettings(amqp_url=f"memory://{tmp_path}", data_dir=tmp_path)
    users = [f"user{number}" for number in range(20)]
    async with fleet_of(DelicateStorage, TrackerWorker, settings=settings) as fleet:
        for user in (*users[:10], POISON, *users[10:]):
            await fleet.bus.publish(MessageReceived(user_id=user, message_id=mint("msg"), kind=MessageKind.NATIVE))

        await until(lambda: set(users) <= set(fleet[DelicateStorage].saved), 30)
        assert POISON not in fleet[DelicateStorage].saved


async def test_what_is_told_every_few_seconds_is_not_kept(tmp_path: Path) -> None:
    settings = settings_for(f"memory://{tmp_path}", tmp_path)
    async with fleet_of(FLEET["storage"], TrackerWorker, settings=settings) as fleet:
        await fleet.bus.publish(Heartbeat(service="cook", instance="1", ready=True, version="1"))
        await fleet.bus.publish(ProcessMetrics(process="cook@kitchen.1", exposition="eJwDAAAAAAE="))
        await fleet.bus.publish(MessageReceived(user_id="anna", message_id=mint("msg"), kind=MessageKind.NATIVE))

        async def kept() -> list[str]:
            page = await fleet.bus.request(GetTimeline(limit=50))
            return [event.envelope.type for event in page.items]

        await until(kept, 30)
        assert await kept() == [MessageReceived.wire.type]


async def test_a_row_that_the_database_refuses_keeps_no_other_from_the_timeline(
    database_of: DatabaseOf, tmp_path: Path
) -> None:
    url = database_of("storage")
    refusing = (
        f"CREATE TRIGGER poison BEFORE INSERT ON timeline WHEN NEW.user_id = '{POISON}' "
        "BEGIN SELECT RAISE(ABORT, 'this row cannot be stored'); END"
        if url.startswith("sqlite")
        else f"ALTER TABLE timeline ADD CONSTRAINT poison CHECK (user_id <> '{POISON}')"
    )
    Database(url, "storage").run_on_admin_connection(lambda connection: connection.execute(text(refusing)))
    settings = settings_for(f"memory://{tmp_path}", tmp_path, storage_database_url=url)
    users = [f"user{number}" for number in range(20)]
    async with fleet_of(FLEET["storage"], TrackerWorker, settings=settings) as fleet:
        for user in (*users[:10], POISON, *users[10:]):
            await fleet.bus.publish(MessageReceived(user_id=user, message_id=mint("msg"), kind=MessageKind.NATIVE))

        async def all_are_there() -> bool:
            page = await fleet.bus.request(GetTimeline(topics=("dialogue",), limit=50))
            return sorted(str(event.user_id) for event in page.items) == sorted(users)

        await until(all_are_there, 30)
