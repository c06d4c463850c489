"""How many files a process of a fleet may open."""

from collections.abc import Iterator
from resource import RLIMIT_NOFILE, getrlimit, setrlimit

import pytest

from mindbus.files.disk import allow_many_open_files


@pytest.fixture
def limits() -> Iterator[tuple[int, int]]:
    """The limits of this process, which it has again afterwards."""
    before = getrlimit(RLIMIT_NOFILE)
    yield before
    setrlimit(RLIMIT_NOFILE, before)


def test_the_usual_limit_is_raised_as_far_as_it_may_be(limits: tuple[int, int]) -> None:
    _, hard = limits
    setrlimit(RLIMIT_NOFILE, (1024, hard))
    allow_many_open_files()
    raised, _ = getrlimit(RLIMIT_NOFILE)
    assert raised == min(hard, 65_536)


def test_a_higher_one_is_left_as_it_is(limits: tuple[int, int]) -> None:
    soft, hard = limits
    allow_many_open_files()
    assert getrlimit(RLIMIT_NOFILE) == (max(soft, min(hard, 65_536)), hard)
