"""Events as marks; what led to what."""

from datetime import UTC, datetime, timedelta
from typing import Any

from bus_schema.envelope import Envelope, Kind
from bus_schema.timeline import TimelineEvent, TimelineSeries
from gateway.ui.sections import LatestReading
from gateway.ui.timeline.counts import TimelineCounts
from gateway.ui.timeline.event_drawer import causation_roots, chain_of
from gateway.ui.timeline.marks import ASK, DOT, FAILURE, WORK, TimelineMarks

BEGIN = datetime(2026, 11, 21, 9, 9, tzinfo=UTC)


def event(name: str, wire: str, after_s: float = 0, cause: str | None = "cmd", **data: Any) -> TimelineEvent:
    envelope = Envelope(
        id=name,
        source="/mb/dialogue/1",
        type=f"mb.evt.{wire}.v1",
        time=BEGIN + timedelta(seconds=after_s),
        correlationid="story",
        causationid=cause,
        mbkind=Kind.EVENT,
        mbrequester="svc.dialogue",
        mbtraceid="conv_anna",
        data=data,
    )
    return TimelineEvent.of(envelope)


def test_work_reaches_from_its_beginning_to_its_end() -> None:
    reading = TimelineMarks()
    asked = event("a", "dialogue.message_received", message_id="msg_1")
    answered = event("b", "dialogue.message_sent", 2.5, in_reply_to="msg_1")
    (first, last) = reading.read([asked, answered])
    assert first.shape == ASK
    assert last.shape == WORK
    assert last.took_s == 2.5


def test_an_agent_tells_how_long_it_took() -> None:
    (mark,) = TimelineMarks().read([event("a", "fleet.agent_result", 5, took_ms=1500, outcome="found")])
    assert mark.shape == WORK
    assert mark.start == BEGIN + timedelta(seconds=3.5)


def test_what_failed_is_told_by_its_shape() -> None:
    (mark, other) = TimelineMarks().read([event("a", "process.step_failed"), event("b", "raw.dialogue_fragment")])
    assert mark.shape == FAILURE
    assert other.shape == DOT


def test_an_event_is_a_mark_once_and_a_heartbeat_is_none() -> None:
    reading = TimelineMarks()
    seen = event("a", "raw.dialogue_fragment")
    assert len(reading.read([seen, seen, event("h", "fleet.heartbeat")])) == 1
    assert reading.read([seen]) == []


def test_a_chain_goes_from_cause_to_effect() -> None:
    fragment = event("frag", "raw.dialogue_fragment")
    tasks = event("tasks", "processed.tasks_found", 1, "frag")
    wish = event("wish", "notification.generated", 2, "tasks")
    other = event("other", "dialogue.message_sent", 3, "another-command")
    roots = causation_roots(wish, [other, wish, tasks, fragment])
    events, links = chain_of(roots, "wish")
    assert [each.event_id for each in events] == ["frag", "tasks", "wish"]
    assert links == [("frag", "tasks"), ("tasks", "wish")]


def test_what_one_command_caused_hangs_together_under_its_id() -> None:
    first, second = event("a", "dialogue.message_received"), event("b", "dialogue.message_sent", 1)
    (root,) = causation_roots(first, [first, second])
    assert root.event is None
    assert root.name == "cmd"
    assert [node.name for _, node in root.walk()] == ["cmd", "a", "b"]


def test_causes_that_go_in_a_circle_are_shown_all_the_same() -> None:
    one, other = event("a", "raw.dialogue_fragment", 0, "b"), event("b", "raw.dialogue_fragment", 1, "a")
    roots = causation_roots(one, [one, other])
    assert {node.name for root in roots for _, node in root.walk()} == {"a", "b"}


def counts_of(events: tuple[int, ...], topic: str = "dialogue") -> TimelineCounts:
    """Of the ten seconds from BEGIN on, a slot each; the last slot has only begun."""
    counts = TimelineCounts(BEGIN, BEGIN + timedelta(seconds=10), 10)
    counts.read([TimelineSeries(service="dialogue", topic=topic, events=events, failures=(0,) * len(events))])
    return counts


def test_slots_cover_the_whole_range_in_steps_of_whole_milliseconds() -> None:
    until = BEGIN + timedelta(minutes=15, seconds=1.2345)
    counts = TimelineCounts(BEGIN, until, 110)
    assert counts.width % timedelta(milliseconds=1) == timedelta()
    assert counts.since <= BEGIN < counts.since + counts.width
    assert counts.until - counts.width <= until < counts.until
    assert counts.until - counts.since == counts.slots * counts.width


def test_live_events_are_added_to_the_numbers_of_storage() -> None:
    counts = counts_of((3, *[0] * 9, 1))
    counts.add(event("a", "dialogue.message_sent", 0.4))
    counts.add(event("b", "raw.dialogue_fragment", 12))
    assert counts.by_topic() == {"dialogue": 5, "raw": 1}
    assert counts.by_service() == {"dialogue": 6}
    first, *_, last = counts.by_slot(hidden=())
    assert first == (BEGIN, 4)
    assert last == (BEGIN + timedelta(seconds=12), 1)
    assert counts.between(BEGIN, BEGIN + timedelta(seconds=9), hidden=()) == 4
    assert counts.between(BEGIN, BEGIN + timedelta(seconds=12), hidden={"dialogue"}) == 1


def test_slots_that_have_left_the_range_are_forgotten() -> None:
    counts = counts_of((3, 2, 1, *[0] * 8))
    counts.forget(BEGIN + timedelta(seconds=1.5))
    assert counts.by_slot(hidden=()) == [(BEGIN + timedelta(seconds=1), 2), (BEGIN + timedelta(seconds=2), 1)]


def test_only_the_latest_marks_are_kept() -> None:
    reading = TimelineMarks()
    reading.read(event(f"e{number}", "raw.dialogue_fragment", number) for number in range(5))
    assert reading.trim(5) is None
    assert reading.trim(2) == BEGIN + timedelta(seconds=3)
    assert list(reading.marks) == ["e3", "e4"]


def test_of_readings_that_overlap_the_one_begun_last_counts() -> None:
    readings = LatestReading()
    first = readings.begin()
    assert first()
    second = readings.begin()
    assert (first(), second()) == (False, True)
