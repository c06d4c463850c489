"""A registration, its garbage collected later: cut short, or held up, at every moment."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from storage_service.object_store import Guarantees
from tests.crashes.enumeration import Ending, Lives, pairs, singles
from tests.crashes.memory_world import A_GOOD_STORE, Store
from tests.crashes.uploads import Story, stories

ONE, HAUNTED, TWO = stories()[:3]
BATCH, HAUNTED_BATCH = stories()[-4:-2]
LONG = [pytest.mark.proof, pytest.mark.timeout(1800)]


def registering(ends_at: Sequence[int]) -> Lives:
    return Lives(ONE, ends_at, collections=0)


def registering_while_the_broker_drops(ends_at: Sequence[int]) -> Lives:
    # What was dead-lettered or dropped after its commit never comes again.
    return Lives(ONE, ends_at, drops=True)


def registering_what_is_large(ends_at: Sequence[int]) -> Lives:
    return Lives(ONE, ends_at, store=replace(A_GOOD_STORE, whole_bytes=0), collections=0)


def registering_without_conditions(ends_at: Sequence[int]) -> Lives:
    # What is copied aside is swept by a collection.
    return Lives(ONE, ends_at, store=Store(Guarantees(), whole_bytes=0))


def collecting(ends_at: Sequence[int]) -> Lives:
    return Lives(Story((), HAUNTED.ghost), ends_at)


def registering_and_collecting(ends_at: Sequence[int]) -> Lives:
    return Lives(HAUNTED, ends_at)


def stalling(ends_at: Sequence[int]) -> Lives:
    return Lives(TWO, ends_at, stalls=True)


def stalling_among_ghosts(ends_at: Sequence[int]) -> Lives:
    return Lives(HAUNTED, ends_at, stalls=True)


def registering_several_at_once(ends_at: Sequence[int]) -> Lives:
    return Lives(BATCH, ends_at, drops=True)


def collecting_among_several(ends_at: Sequence[int]) -> Lives:
    return Lives(HAUNTED_BATCH, ends_at, stalls=True)


SHORT: list[Ending] = [registering, registering_what_is_large]
LIVES: list[Ending] = [
    registering_while_the_broker_drops,
    registering_without_conditions,
    collecting,
    registering_and_collecting,
    stalling,
    stalling_among_ghosts,
    registering_several_at_once,
    collecting_among_several,
]


def test_the_effects_come_in_the_order_that_loses_nothing() -> None:
    assert changes(registering) == [
        *("commit of pin", "put", "commit"),
        *("publish event", "publish reply", "ack", "commit of published"),
        *("put", "delete", "commit of forget"),
    ]
    first, second = changes(collecting), changes(collecting)
    assert first == second
    assert first[:6] == ["commit of condemn", "commit of give up", "copy", "delete", "commit of finish", "copy"]


def changes(life: Ending) -> list[str]:
    """The effects by which something changes."""
    after = [lives.ended[0].removeprefix("after ") for lives in singles(life) if lives.ended[0].startswith("after ")]
    return [effect for effect in after if effect not in ("select", "head", "get", "list")]


@pytest.mark.parametrize("life", [*SHORT, *LIVES])
def test_no_moment_to_end_at_breaks_a_promise(life: Ending, report: Callable[[str], None]) -> None:
    points = sum(1 for _ in singles(life))

    assert points > 25
    report(f"{life.__name__}: {points} points, none broke a promise")


@pytest.mark.parametrize("life", [*SHORT, *(pytest.param(life, marks=LONG) for life in LIVES)])
def test_no_pair_of_moments_to_end_at_breaks_a_promise(life: Ending, report: Callable[[str], None]) -> None:
    both = sum(1 for _ in pairs(life))

    assert both > 500
    report(f"{life.__name__}: {both:,} pairs of points, none broke a promise")
