"""One event that storage fails over keeps no other from the timeline."""

from pathlib import Path

from bus_schema.dialogue import MessageKind, MessageReceived
from bus_schema.ids import mint
from bus_schema.timeline import EventsSaved, SaveEvents
from config.settings import FleetSettings
from mindbus import Worker, WorkerContext, on_command
from mindbus.testing.wait import until
from tests.fleets import fleet_of
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
