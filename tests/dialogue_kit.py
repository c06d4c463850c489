"""A dialogue runtime for tests: its workers on a real broker, what they have said and kept."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bus_schema.conversations import GetMessages
from bus_schema.dialogue import Answered, DialogueMessage, Invoke, MessageKind, conversation_trace
from bus_schema.envelope import Envelope
from bus_schema.timeline import GetTimeline, TimelineEvent
from config.settings import FleetSettings
from mindbus.testing.wait import until
from tests.fleets import Fleet, fleet_of, settings_for
from tests.installed import FLEET

RUNTIME = ("storage", "history", "tracker", "task_manager", "context_manager", "mood_watcher", "context", "dialogue")


class Runtime:
    """People talk to it, then look at what has become of that."""

    def __init__(self, fleet: Fleet) -> None:
        self.bus = fleet.bus
        self.fleet = fleet

    async def say(self, user_id: str, text: str, **fields: Any) -> Answered:
        return await self.bus.request(
            Invoke(user_id=user_id, message=text, **fields), trace=conversation_trace(user_id)
        )

    async def history(self, user_id: str) -> list[DialogueMessage]:
        page = await self.bus.request(GetMessages(user_id=user_id, limit=200))
        return list(page.items)

    async def sequence(self, user_id: str) -> list[str]:
        """Spec 004 §5.2 writes a dialogue like this."""
        who = {"user": "user", "assistant": "ai"}
        kinds = {MessageKind.HIDDEN: "hidden instruction"}
        said = await self.history(user_id)
        return [f"[{who[message.role]}:{kinds.get(message.kind, message.kind)}]" for message in said]

    async def until_said(self, user_id: str, count: int, within_s: float = 30) -> None:
        async def is_said() -> bool:
            return len(await self.history(user_id)) >= count

        await until(is_said, within_s, f"{count} messages with {user_id}")

    async def timeline(self, **wanted: Any) -> list[TimelineEvent]:
        events: list[TimelineEvent] = []
        query = GetTimeline(limit=500, **wanted)
        while True:
            page = await self.bus.request(query)
            events += page.items
            if len(page.items) < query.limit:
                return events
            query = query.model_copy(update={"cursor": page.next_cursor})

    async def until_on_timeline(
        self, name: str, count: int = 1, deadline_s: float = 30, **wanted: Any
    ) -> list[Envelope]:
        found: list[Envelope] = []

        async def there() -> bool:
            found[:] = [event.envelope for event in await self.timeline(**wanted) if event.name == name]
            return len(found) >= count

        await until(there, 30, f"{count} × {name}")
        return found


@asynccontextmanager
async def runtime(settings: FleetSettings, *names: str) -> AsyncIterator[Runtime]:
    """The whole of it, or the workers named; a dialogue has need of its history."""
    wanted = dict.fromkeys(names or RUNTIME)
    if "dialogue" in wanted:
        wanted = {"history": None, **wanted}
    async with fleet_of(*(FLEET[name] for name in wanted), settings=settings) as fleet:
        yield Runtime(fleet)


def dialogue_settings(url: str, folder: Path, **options: Any) -> FleetSettings:
    """Short intervals, no quiet hours; what is quick is what is asked for."""
    habits = folder / "habits.yaml"
    habits.write_text("default: {quiet_from: null, quiet_until: null, gap_minutes: 0}\nusers: {}\n", encoding="utf-8")
    defaults = {"heartbeat_s": 1, "habits": str(habits)}
    return settings_for(url, folder, **(defaults | options))
