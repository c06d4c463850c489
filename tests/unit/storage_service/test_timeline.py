"""The timeline keeps every event once, in the order in which it heard of it."""

from datetime import timedelta

import pytest

from bus_schema.envelope import Envelope, Kind
from bus_schema.ids import mint
from bus_schema.timeline import GetTimeline, TimelineEvent
from storage_service.timeline import Timeline
from tests.clocks import NOON
from tests.storage_kit import OpenDepot


@pytest.fixture
def timeline(open_depot: OpenDepot) -> Timeline:
    return Timeline(open_depot().database)


async def record(timeline: Timeline, *events: TimelineEvent) -> int:
    async with timeline.database.at_hand():
        return await timeline.save(events)


def an_event(minute: int, name: str = "dialogue.message_received", user: str | None = "anna") -> TimelineEvent:
    event_id = mint("evt")
    data = {"user_id": user, "preview": "Привет"} if user else {"weather": "дождь"}
    return TimelineEvent.of(
        Envelope(
            id=event_id,
            source="/mb/dialogue/1",
            type=f"mb.evt.{name}.v1",
            time=NOON + timedelta(minutes=minute),
            correlationid=event_id,
            mbkind=Kind.EVENT,
            mbrequester="svc.dialogue",
            mbtraceid=f"conv_{user}" if user else None,
            data=data,
        )
    )


async def ids(timeline: Timeline, **wanted: object) -> list[str]:
    return [event.event_id for event in (await timeline.page(GetTimeline.model_validate(wanted))).items]


async def test_events_are_read_whole_in_the_order_in_which_they_were_recorded(timeline: Timeline) -> None:
    late, early = an_event(9), an_event(1, "weather.rain", None)
    assert await record(timeline, late, early) == 2

    page = await timeline.page(GetTimeline())

    assert [event.model_copy(update={"sequence": None}) for event in page.items] == [late, early]
    assert [event.name for event in page.items] == ["message_received", "weather.rain"]


async def test_an_event_that_comes_again_is_recorded_once(timeline: Timeline) -> None:
    event = an_event(1)
    assert await record(timeline, event) == 1
    assert await record(timeline, event, an_event(2)) == 1
    assert len(await ids(timeline)) == 2


async def test_whoever_has_read_all_goes_on_from_there(timeline: Timeline) -> None:
    await record(timeline, *(an_event(minute) for minute in range(5)))
    first = await timeline.page(GetTimeline(limit=3))
    rest = await timeline.page(GetTimeline(limit=3, cursor=first.next_cursor))
    assert len(rest.items) == 2
    assert await ids(timeline, cursor=rest.next_cursor) == []

    new = an_event(0)
    await record(timeline, new)

    assert await ids(timeline, cursor=rest.next_cursor) == [new.event_id]


async def test_the_newest_are_read_first_back_to_the_beginning(timeline: Timeline) -> None:
    recorded = [an_event(minute) for minute in range(5)]
    await record(timeline, *recorded)

    first = await timeline.page(GetTimeline(limit=3, newest_first=True))
    rest = await timeline.page(GetTimeline(limit=3, newest_first=True, cursor=first.next_cursor))

    assert [event.event_id for event in (*first.items, *rest.items)] == [event.event_id for event in recorded[::-1]]
    assert rest.next_cursor is None
    assert (await timeline.page(GetTimeline(limit=5, newest_first=True, cursor="1"))).items == ()


async def test_each_filter_finds_its_own(timeline: Timeline) -> None:
    anna, boris, rain = an_event(1), an_event(2, user="boris"), an_event(3, "weather.rain", None)
    await record(timeline, anna, boris, rain)
    assert await ids(timeline, user_id="anna") == [anna.event_id]
    assert await ids(timeline, trace_id="conv_boris") == [boris.event_id]
    assert await ids(timeline, topics=("weather", "raw")) == [rain.event_id]
    assert await ids(timeline, since=NOON + timedelta(minutes=2)) == [boris.event_id, rain.event_id]
    assert await ids(timeline, until=NOON + timedelta(minutes=2)) == [anna.event_id]
    assert await ids(timeline, since=NOON + timedelta(days=365)) == []
