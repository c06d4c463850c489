"""Following the timeline: every event once, in order, whatever happens on the way."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta

import pytest

from bus_schema.envelope import Envelope, Kind
from bus_schema.replies import Code
from bus_schema.timeline import GetTimeline, TimelineEvent, TimelinePage
from config.settings import FleetSettings
from gateway.event_feed import EventFeed, MissedEvents
from gateway.timeline_tail import TimelineTail, UnknownCursor, fits
from mindbus import ReplyError, connect
from mindbus.tasks import running
from mindbus.testing.wait import until

START = datetime(2026, 3, 14, 12, tzinfo=UTC)


def told(number: int, user: str | None = None, topic: str = "weather") -> Envelope:
    data = {"user_id": user} if user else {}
    return Envelope(
        id=f"e{number}",
        source="/mb/sky/1",
        type=f"mb.evt.{topic}.rained.v1",
        time=START + timedelta(seconds=number),
        correlationid=f"e{number}",
        mbkind=Kind.EVENT,
        mbrequester="svc.sky",
        mbtraceid=f"t{number % 3}",
        data=data,
    )


class Storage:
    """A timeline of which a part can be slow to be saved; `asked` counts the questions."""

    def __init__(self) -> None:
        self.events: list[TimelineEvent] = []
        self.asked = 0
        self.is_away = False

    def save(self, *envelopes: Envelope, gap: int = 1) -> None:
        for envelope in envelopes:
            last = self.events[-1].sequence if self.events else 0
            event = TimelineEvent.of(envelope).model_copy(update={"sequence": (last or 0) + gap})
            self.events.append(event)

    async def read(self, wanted: GetTimeline) -> TimelinePage:
        self.asked += 1
        await asyncio.sleep(0)
        if self.is_away:
            raise ReplyError(Code.UNAVAILABLE, "away")
        after = int(wanted.cursor or 0)
        if wanted.newest_first:
            back = [event for event in self.events[::-1] if not after or (event.sequence or 0) < after]
            page = back[: wanted.limit]
            return TimelinePage(items=tuple(page), next_cursor=str(page[-1].sequence) if page else None)
        found = [event for event in self.events if (event.sequence or 0) > after and fits(wanted, event)]
        page = found[: wanted.limit]
        return TimelinePage(items=tuple(page), next_cursor=str(page[-1].sequence if page else after))


class Sky:
    """A tail with its storage, a feed that tells what the test has it tell."""

    def __init__(self, tail: TimelineTail, storage: Storage, feed: EventFeed) -> None:
        self.tail, self.storage, self.feed = tail, storage, feed

    def rains(self, *envelopes: Envelope) -> None:
        for envelope in envelopes:
            self.feed.put(envelope)
            self.storage.save(envelope)

    def hear(self, wanted: GetTimeline) -> "Heard":
        return Heard(self.tail, wanted)


class Heard:
    """What a follower has heard so far."""

    def __init__(self, tail: TimelineTail, wanted: GetTimeline) -> None:
        self.ids: list[str] = []
        self._task = asyncio.create_task(self._hear(tail, wanted))

    async def until(self, count: int) -> list[str]:
        await until(lambda: len(self.ids) >= count)
        return self.ids

    async def leave(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _hear(self, tail: TimelineTail, wanted: GetTimeline) -> None:
        async with aclosing(tail.follow(wanted)) as events:
            async for event in events:
                self.ids.append(event.event_id)


@pytest.fixture
async def sky(request: pytest.FixtureRequest) -> AsyncIterator[Sky]:
    storage = Storage()
    settings = FleetSettings(amqp_url=f"memory://{request.node.name}")
    async with connect(settings=settings) as bus:
        feed = EventFeed(bus, settings.heartbeat_s, lambda: START)
        tail = TimelineTail(storage.read, feed)
        async with running(tail.run(), "tail"):
            yield Sky(tail, storage, feed)


def ids(*numbers: int) -> list[str]:
    return [f"e{number}" for number in numbers]


async def test_a_follower_hears_what_was_then_what_comes_each_once_in_order(sky: Sky) -> None:
    sky.storage.save(*map(told, range(450)))
    heard = sky.hear(GetTimeline(limit=100))
    await heard.until(450)
    for number in range(450, 600):
        sky.rains(told(number))
        if number % 40 == 0:
            await heard.until(number - 30)

    assert await heard.until(600) == ids(*range(600))
    await heard.leave()


async def test_of_more_than_a_screen_shows_the_newest_are_read(sky: Sky) -> None:
    sky.storage.save(*map(told, range(450)))

    newest, is_all = await sky.tail.read(GetTimeline(limit=100, newest_first=True), 2)
    everything, has_all = await sky.tail.read(GetTimeline(limit=100, newest_first=True), 9)

    assert ([event.event_id for event in newest], is_all) == (ids(*range(250, 450)), False)
    assert ([event.event_id for event in everything], has_all) == (ids(*range(450)), True)


async def test_a_follower_from_now_hears_only_what_comes(sky: Sky) -> None:
    sky.storage.save(*map(told, range(37)), gap=3)
    place = await sky.tail.start_cursor(None)
    heard = sky.hear(GetTimeline(cursor=place))
    sky.rains(told(40), told(41))

    assert place == "111"
    assert await heard.until(2) == ids(40, 41)
    await heard.leave()


async def test_a_follower_of_the_newest_hears_what_comes_after_its_cursor(sky: Sky) -> None:
    sky.storage.save(*map(told, range(37)))
    heard = sky.hear(GetTimeline(cursor="35", limit=10, newest_first=True))
    sky.rains(told(40), told(41))

    assert await heard.until(4) == ids(35, 36, 40, 41)
    await heard.leave()


async def test_a_follower_that_comes_back_goes_on_where_it_was(sky: Sky) -> None:
    first = sky.hear(GetTimeline(cursor=await sky.tail.start_cursor(None)))
    sky.rains(told(1), told(2))
    await first.until(2)
    await first.leave()
    sky.rains(told(3))

    again = sky.hear(GetTimeline(cursor=await sky.tail.start_cursor("2")))
    sky.rains(told(4))

    assert await again.until(2) == ids(3, 4)
    await again.leave()


@pytest.mark.slow
async def test_what_is_saved_late_or_told_to_nobody_is_heard_all_the_same(sky: Sky) -> None:
    heard = sky.hear(GetTimeline())
    sky.rains(told(0))
    await heard.until(1)
    asked = sky.storage.asked
    sky.feed.put(told(1))
    await until(lambda: sky.storage.asked > asked + 2)
    sky.storage.save(told(1))
    await heard.until(2)

    sky.storage.save(told(2))
    sky.feed.put(MissedEvents())

    assert await heard.until(3) == ids(0, 1, 2)
    await heard.leave()


async def test_followers_share_the_questions(sky: Sky) -> None:
    place = await sky.tail.start_cursor(None)
    crowd = [sky.hear(GetTimeline(cursor=place)) for _ in range(50)]
    sky.rains(told(0))
    for heard in crowd:
        await heard.until(1)
    before = sky.storage.asked
    sky.rains(*map(told, range(1, 21)))
    for heard in crowd:
        assert await heard.until(21) == ids(*range(21))
        await heard.leave()

    assert sky.storage.asked - before < 20


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"user_id": "anna"}, ids(0, 4, 8)),
        ({"trace_id": "t1"}, ids(1, 4, 7)),
        ({"topics": ("weather",)}, ids(0, 2, 4, 6, 8)),
        ({"since": START + timedelta(seconds=7)}, ids(7, 8)),
        ({"until": START + timedelta(seconds=2)}, ids(0, 1)),
    ],
)
async def test_a_condition_holds_for_what_was_and_for_what_comes(
    sky: Sky, wanted: dict[str, object], expected: list[str]
) -> None:
    rain = [told(n, "anna" if n % 4 == 0 else None, "weather" if n % 2 == 0 else "news") for n in range(9)]
    sky.storage.save(*rain[:4])
    heard = sky.hear(GetTimeline.model_validate(wanted))
    everything = sky.hear(GetTimeline())
    await everything.until(4)
    sky.rains(*rain[4:])
    await everything.until(9)

    assert await heard.until(len(expected)) == expected
    await heard.leave()
    await everything.leave()


@pytest.mark.slow
async def test_while_storage_is_away_followers_wait(sky: Sky) -> None:
    heard = sky.hear(GetTimeline())
    sky.rains(told(1))
    await heard.until(1)
    sky.storage.is_away = True
    sky.rains(told(2))
    asked = sky.storage.asked
    await until(lambda: sky.storage.asked > asked)
    sky.storage.is_away = False

    assert await heard.until(2) == ids(1, 2)
    await heard.leave()


async def test_who_is_far_behind_catches_up_from_storage(sky: Sky) -> None:
    async with aclosing(sky.tail.follow(GetTimeline(cursor="0", limit=200))) as slow:
        sky.rains(told(0))
        heard = [(await anext(slow)).event_id]
        fast = sky.hear(GetTimeline(cursor="0", limit=200))
        for number in range(1, 2500):
            sky.rains(told(number))
        await fast.until(2500)
        async for event in slow:
            heard.append(event.event_id)
            if len(heard) == 2500:
                break
    await fast.leave()

    assert heard == ids(*range(2500))


@pytest.mark.parametrize("cursor", ["4", "1000", "-1", "x", "", "²", "9" * 30])
async def test_a_place_that_there_is_not_is_refused(sky: Sky, cursor: str) -> None:
    sky.storage.save(told(1), told(2), told(3))

    for there in ("0", "2", "3"):
        assert await sky.tail.start_cursor(there) == there
    sky.storage.events.pop(1)
    assert await sky.tail.start_cursor("2") == "2"
    with pytest.raises(UnknownCursor):
        await sky.tail.start_cursor(cursor)


@pytest.mark.parametrize("count", [0, 1, 1000])
async def test_the_end_is_found_at_once_whatever_numbers_were_left_out(sky: Sky, count: int) -> None:
    sky.storage.save(*map(told, range(count)), gap=7)

    assert await sky.tail.start_cursor(None) == str(7 * count)
    assert sky.storage.asked == 1
