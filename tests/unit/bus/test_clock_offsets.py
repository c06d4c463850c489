"""Deadlines between clocks that differ."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bus_schema.envelope import Envelope, Kind
from mindbus import Command, Nothing, ReplyError, Worker, on_command
from mindbus.bus.context import ClockOffsets
from mindbus.errors import Expired
from mindbus.settings import Settings
from mindbus.testing import running

NOON = datetime(2026, 11, 24, 12, tzinfo=UTC)


class Clock:
    """A clock of the receiver's, wall and monotonic, that a test sets."""

    def __init__(self) -> None:
        self.now, self.passed_s = NOON, 0.0

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.passed_s += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def offsets(clock: Clock) -> ClockOffsets:
    return ClockOffsets(lambda: clock.now, lambda: clock.passed_s)


def asked(at: datetime, within_s: float = 30, source: str = "/mb/gateway/1") -> Envelope:
    return Envelope(
        id="cmd_1",
        source=source,
        type="mb.cmd.storage.get_timeline.v1",
        time=at,
        correlationid="cmd_1",
        mbkind=Kind.COMMAND,
        mbrequester="svc.gateway",
        expirytime=at + timedelta(seconds=within_s),
        data={},
    )


@pytest.mark.parametrize("ahead_s", [300, -300, 7000, -7200])
def test_nothing_expires_for_a_clock_that_is_wrong(offsets: ClockOffsets, clock: Clock, ahead_s: float) -> None:
    for _ in range(3):
        clock.wait(1)
        deadline = offsets.deadline_of(asked(clock.now - timedelta(seconds=ahead_s)))
        assert deadline is not None
        assert deadline - clock.now == timedelta(seconds=30)


@pytest.mark.parametrize("ahead_s", [0, 300, -300])
def test_the_time_in_the_queue_counts_on_whatever_clock(offsets: ClockOffsets, clock: Clock, ahead_s: float) -> None:
    skew = timedelta(seconds=ahead_s)
    offsets.note(asked(clock.now - skew))
    waits = asked(clock.now - skew)

    clock.wait(29)
    assert (offsets.deadline_of(waits) or NOON) > clock.now
    clock.wait(2)
    assert (offsets.deadline_of(waits) or NOON) < clock.now


def test_who_is_unknown_has_two_hours(offsets: ClockOffsets, clock: Clock) -> None:
    late, too_late = asked(NOON, source="/mb/cli/1"), asked(NOON, source="/mb/cli/2")

    clock.wait(7200)
    assert (offsets.deadline_of(late) or NOON) > clock.now
    clock.wait(31)
    assert (offsets.deadline_of(too_late) or clock.now) < clock.now


def test_a_clock_that_was_set_is_measured_anew(offsets: ClockOffsets, clock: Clock) -> None:
    offsets.note(asked(clock.now))
    clock.now += timedelta(minutes=10)
    for _ in range(3):
        clock.wait(61)
        offsets.note(asked(clock.now - timedelta(minutes=10)))

    assert offsets.note(asked(clock.now - timedelta(minutes=10))) == timedelta(minutes=10)


def test_a_clock_ahead_by_more_than_a_minute_is_named(offsets: ClockOffsets, clock: Clock) -> None:
    offsets.note(asked(clock.now + timedelta(seconds=50), source="/mb/lsm/1"))
    assert offsets.wrong_clock() == ""

    offsets.note(asked(clock.now + timedelta(seconds=290), source="/mb/glm/1"))

    assert offsets.wrong_clock() == "the clock of /mb/glm/1 is 290 s ahead of this one: set the clocks by NTP"


class TellTime(Command[Nothing], domain="clock_test", action="tell_time"):
    """Do nothing, in time."""


class HasteWorker(Worker):
    """Finds the first message of all expired."""

    name = "clock_test"

    def __init__(self, _context: object) -> None:
        self.asked: list[str] = []

    @on_command
    async def tell_time(self, _command: TellTime) -> None:
        self.asked.append("")
        if len(self.asked) == 1:
            raise Expired


async def test_who_is_told_too_early_that_it_is_too_late_asks_once_more(tmp_path: Path) -> None:
    settings = Settings(amqp_url=f"memory://{tmp_path}", data_dir=tmp_path)
    async with running(HasteWorker, settings=settings) as bus:
        with pytest.raises(ReplyError, match="deadline"):
            await bus.request(TellTime(), to="clock_test")
    async with running(HasteWorker, settings=settings) as bus:
        # As if the clock of the service were ahead.
        bus.clocks_differ = timedelta(seconds=-60)
        assert await bus.request(TellTime(), to="clock_test") == Nothing()
