"""When a message is tried again."""

import errno
import socket
from datetime import UTC, datetime, timedelta

import pytest

from bus_schema.replies import Code
from mindbus import BusUnavailable, MindBusError, NoReply, ReplyError, TemporaryFailure
from mindbus.bus.outcomes import BUG_ATTEMPTS, may_try_again, rung_for
from mindbus.bus.topology import NotARung, rungs_of

LADDER = rungs_of("1s,10s,1m,10m")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_each_attempt_waits_on_the_next_rung_and_the_last_is_the_end() -> None:
    assert [rung_for(attempt, LADDER, None).name for attempt in (1, 2, 3, 4, 5, 99)] == [
        "1s",
        "10s",
        "1m",
        "10m",
        "10m",
        "10m",
    ]


@pytest.mark.parametrize(("wanted_s", "rung"), [(0, "1s"), (1, "1s"), (2, "10s"), (61, "10m"), (99_999, "10m")])
def test_a_wanted_delay_takes_the_first_rung_that_is_no_shorter(wanted_s: int, rung: str) -> None:
    assert rung_for(1, LADDER, timedelta(seconds=wanted_s)).name == rung


def test_rungs_are_sorted_by_their_delay() -> None:
    assert [rung.name for rung in rungs_of("2h, 500ms ,10s")] == ["500ms", "10s", "2h"]


@pytest.mark.parametrize("ladder", ["", "10", "1 s", "-1s", "0s", "1d", "1.5s"])
def test_what_is_no_ladder_is_refused(ladder: str) -> None:
    with pytest.raises(NotARung, match="a number with its unit"):
        rungs_of(ladder)


@pytest.mark.parametrize(
    "failure",
    [
        *(TemporaryFailure("x"), BusUnavailable("x"), NoReply("mb.cmd.a.b.v1", 1)),
        *(OSError(number, "x") for number in (errno.EMFILE, errno.ENOSPC, errno.EROFS, errno.EIO, errno.ENETUNREACH)),
        *(ConnectionRefusedError("x"), ConnectionResetError(), socket.gaierror(socket.EAI_AGAIN, "x")),
    ],
)
def test_expected_failures_use_the_whole_budget(failure: Exception) -> None:
    assert may_try_again(failure, 4, 5, NOW, None)
    assert not may_try_again(failure, 5, 5, NOW, None)


@pytest.mark.parametrize(
    "failure",
    [
        *(ZeroDivisionError(), ReplyError(Code.NOT_FOUND, "x"), MindBusError("x", code=Code.UNAVAILABLE)),
        *(FileNotFoundError(errno.ENOENT, "x"), PermissionError("x"), OSError("x"), TimeoutError()),
    ],
)
def test_bugs_use_a_small_one(failure: Exception) -> None:
    assert may_try_again(failure, BUG_ATTEMPTS - 1, 5, NOW, None)
    assert not may_try_again(failure, BUG_ATTEMPTS, 5, NOW, None)


def test_nothing_is_tried_past_the_askers_deadline() -> None:
    assert may_try_again(TemporaryFailure("x"), 1, 5, NOW, NOW + timedelta(seconds=1))
    assert not may_try_again(TemporaryFailure("x"), 1, 5, NOW, NOW)
