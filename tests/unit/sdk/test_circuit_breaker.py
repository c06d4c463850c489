"""What keeps failing is left in peace."""

from dataclasses import dataclass

import pytest

from bus_schema.replies import Code
from mindbus import ReplyError
from mindbus.sdk.errors import CircuitOpen, MemoryFailed
from mindbus.sdk.requests import CircuitBreaker


@dataclass
class Watch:
    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def breaker(watch: Watch) -> CircuitBreaker:
    return CircuitBreaker(opens_after=2, opens_for_s=5, clock=watch)


def fail(breaker: CircuitBreaker, failure: Exception | None = None) -> None:
    failure = failure or MemoryFailed("silence")
    with pytest.raises(type(failure)), breaker.guard():
        raise failure


def test_after_so_many_failures_in_a_row_nobody_gets_through(breaker: CircuitBreaker) -> None:
    fail(breaker)
    with breaker.guard():
        pass
    fail(breaker)
    fail(breaker)

    with pytest.raises(CircuitOpen), breaker.guard():
        pytest.fail("it got through")


def test_after_a_while_one_tries_for_all(breaker: CircuitBreaker, watch: Watch) -> None:
    fail(breaker)
    fail(breaker)
    watch.now_s = 5
    with breaker.guard(), pytest.raises(CircuitOpen), breaker.guard():
        pytest.fail("another one got through")
    with breaker.guard():
        pass


def test_where_the_one_fails_the_while_begins_anew(breaker: CircuitBreaker, watch: Watch) -> None:
    fail(breaker)
    fail(breaker)
    watch.now_s = 5
    fail(breaker)
    watch.now_s = 9

    with pytest.raises(CircuitOpen), breaker.guard():
        pytest.fail("it got through")


def test_that_another_one_is_open_says_nothing(breaker: CircuitBreaker) -> None:
    fail(breaker)
    fail(breaker, CircuitOpen())
    fail(breaker)

    with pytest.raises(CircuitOpen), breaker.guard():
        pytest.fail("it got through")


def test_a_no_is_an_answer(breaker: CircuitBreaker) -> None:
    fail(breaker)
    fail(breaker, ReplyError(Code.CONFLICT, "taken"))
    fail(breaker)

    with breaker.guard():
        pass
