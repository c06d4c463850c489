"""A crash at every moment of a registration, then a second one at every moment of what follows."""

from collections.abc import Callable

from tests.crashes.enumeration import Lives, crash_pairs, single_crashes
from tests.crashes.uploads import stories

ALONE = stories()[0].uploads[:1]


def test_the_effects_of_a_registration_come_in_the_order_that_loses_nothing() -> None:
    moments = [lives.crashed[0] for lives in single_crashes(ALONE)]

    changes = [moment.removeprefix("after ") for moment in moments if moment.startswith("after ")]
    assert [change for change in changes if change not in ("select", "head", "get")] == [
        *("commit of pin", "copy", "commit", "ack"),
        *("publish event", "publish reply", "commit of relayed"),
        *("delete", "commit of forget"),
    ]


def test_no_crash_and_no_pair_of_crashes_breaks_a_promise(report: Callable[[str], None]) -> None:
    assert Lives(ALONE, ()).run().crashed == []
    singles = sum(1 for _ in single_crashes(ALONE))
    pairs = sum(1 for _ in crash_pairs(ALONE))

    assert pairs > singles > 25
    report(f"{singles} crash points in one registration, {pairs:,} pairs of them, none broke a promise")
