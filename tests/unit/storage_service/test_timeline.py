"""The timeline keeps every event once, in the order in which it heard of it."""

from datetime import timedelta

import pytest

from bus_schema.envelope import Envelope, Kind
from bus_schema.ids import mint
from bus_schema.storage_maintenance import GetStorageStats
from bus_schema.timeline import GetTimeline, GetTimelineBuckets, TimelineEvent
from mindbus.testing import run_task
from storage_service.maintenance.survey import MaintenanceRules
from storage_service.timeline import Timeline
from tests.clocks import NOON
from tests.storage_kit import OpenDepot


@pytest.fixture
def timeline(open_depot: OpenDepot) -> Timeline:
    return Timeline(open_depot().database)


async def record(timeline: Timeline, *events: TimelineEvent) -> int:
    async with timeline.database.at_hand():
        return await timeline.save(events)


def an_event(
    minute: float,
    name: str = "dialogue.message_received",
    user: str | None = "anna",
    service: str = "dialogue",
    **more: object,
) -> TimelineEvent:
    event_id = mint("evt")
    data = ({"user_id": user, "preview": "Привет"} if user else {"weather": "дождь"}) | more
    return TimelineEvent.of(
        Envelope(
            id=event_id,
            source=f"/mb/{service}/1",
            type=f"mb.evt.{name}.v1",
            time=NOON + timedelta(minutes=minute),
            correlationid=event_id,
            mbkind=Kind.EVENT,
            mbrequester="svc.dialogue",
            mbtraceid=f"conv_{user}" if user else None,
            data=data,
        )
    )


async def counted(timeline: Timeline, **wanted: object) -> dict[tuple[str, str], tuple[list[int], list[int]]]:
    """Events and failures by service and topic, in ten buckets of a minute."""
    span = {"since": NOON, "until": NOON + timedelta(minutes=10), "buckets": 10}
    found = await timeline.buckets(GetTimelineBuckets.model_validate(span | wanted))
    return {(one.service, one.topic): (list(one.events), list(one.failures)) for one in found.series}


async def ids(timeline: Timeline, **wanted: object) -> list[str]:
    return [event.event_id for event in (await timeline.page(GetTimeline.model_validate(wanted))).items]


async def test_events_are_read_whole_in_the_order_in_which_they_were_recorded(timeline: Timeline) -> None:
    late, early = an_event(9), an_event(1, "weather.rain", None)
    assert await record(timeline, late, early) == 2

    page = await timeline.page(GetTimeline())

    assert [event.model_copy(update={"sequence": None}) for event in page.items] == [late, early]
    assert [event.name for event in page.items] == ["message_received", "weather.rain"]


async def test_events_leave_once_their_time_is_over(timeline: Timeline) -> None:
    await record(timeline, *(an_event(minute) for minute in range(2100)), last := an_event(3000))

    assert await timeline.prune(NOON + timedelta(minutes=2500)) == 2100

    assert await timeline.extent() == (1, last.time)
    assert await ids(timeline) == [last.event_id]


async def test_a_worker_prunes_what_its_statistics_say(open_depot: OpenDepot) -> None:
    depot = open_depot(rules=MaintenanceRules(timeline_kept=timedelta(days=2)))
    timeline = depot.storage.timeline
    await record(timeline, old := an_event(0), an_event(2000))
    depot.clock.advance(days=2, minutes=1)

    stats = await depot.handle(GetStorageStats(), by="user.local")
    await run_task(depot.worker, "prune_timeline")

    assert (stats.events, stats.oldest_event) == (2, old.time)
    assert stats.kept_days.items() >= {"events in the timeline": 2, "events that no worker takes": 10}.items()
    assert await timeline.extent() == (1, NOON + timedelta(minutes=2000))


async def test_an_id_may_be_as_long_as_the_wire_allows(timeline: Timeline) -> None:
    event = an_event(1).model_copy(update={"event_id": "e" * 128})

    assert await record(timeline, event) == 1
    assert await ids(timeline) == ["e" * 128]


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


async def test_an_event_is_found_by_its_id(timeline: Timeline) -> None:
    event, other = an_event(1), an_event(2)
    await record(timeline, event, other)
    assert await ids(timeline, event_id=event.event_id) == [event.event_id]
    assert await ids(timeline, event_id="evt_of_nobody") == []


async def test_failures_are_found_among_the_rest(timeline: Timeline) -> None:
    failures = [
        an_event(1, "process.step_failed"),
        an_event(2, "process.failed"),
        an_event(3, "fleet.agent_result", outcome="failed"),
        an_event(4, "subagent.subagent_tool_result", is_error=True),
    ]
    rest = [an_event(5, "fleet.agent_result", outcome="found"), an_event(6, "weather.rain", is_error="no"), an_event(7)]
    await record(timeline, *rest, *failures)

    assert await ids(timeline, failures_only=True) == [event.event_id for event in failures]
    newest = await ids(timeline, failures_only=True, newest_first=True, limit=2)
    assert newest == [failures[3].event_id, failures[2].event_id]


async def test_events_are_counted_by_service_topic_and_time(timeline: Timeline) -> None:
    await record(
        timeline,
        *(an_event(minute) for minute in (0, 0.5, 0.99, 9.99)),
        an_event(3, "raw.dialogue_fragment"),
        an_event(3, "process.step_failed", service="orchestrator"),
        an_event(3.5, "process.step_completed", service="orchestrator"),
        *(an_event(minute) for minute in (-0.01, 10)),
    )

    nothing = [0] * 10
    assert await counted(timeline) == {
        ("dialogue", "dialogue"): ([3, *[0] * 8, 1], nothing),
        ("dialogue", "raw"): ([0, 0, 0, 1, *[0] * 6], nothing),
        ("orchestrator", "process"): ([0, 0, 0, 2, *[0] * 6], [0, 0, 0, 1, *[0] * 6]),
    }


async def test_only_events_that_meet_the_conditions_are_counted(timeline: Timeline) -> None:
    await record(timeline, an_event(1), an_event(1, user="boris"), an_event(1, "weather.rain", None, "sky"))

    first = ([0, 1, *[0] * 8], [0] * 10)
    assert await counted(timeline, user_id="anna") == {("dialogue", "dialogue"): first}
    assert await counted(timeline, trace_id="conv_boris") == {("dialogue", "dialogue"): first}
    assert await counted(timeline, topics=("weather", "raw")) == {("sky", "weather"): first}
    assert await counted(timeline, since=NOON + timedelta(minutes=5)) == {}
    assert await counted(timeline, through=1) == {("dialogue", "dialogue"): first}


def test_a_time_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(ValueError, match="until must be later than since"):
        GetTimelineBuckets(since=NOON, until=NOON)
