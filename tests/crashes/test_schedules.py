"""Registers of the same bytes, whatever happens to their processes meanwhile: replay one with --seed N."""

from collections import Counter
from collections.abc import Callable

import pytest

from tests.crashes.memory_world import tell

COUNTS = [500, pytest.param(20_000, marks=[pytest.mark.proof, pytest.mark.timeout(3600)])]


@pytest.mark.parametrize("count", COUNTS)
def test_no_schedule_breaks_a_promise(
    count: int, request: pytest.FixtureRequest, report: Callable[[str], None]
) -> None:
    seed = request.config.getoption("--seed", None)
    moments, totals = Counter[str](), Counter[str]()
    seeds = range(count) if seed is None else range(seed, seed + 1)
    for each in seeds:
        schedule = tell(each)
        told = schedule.told
        moments.update(told.crashes)
        totals.update(steps=told.steps, naps=len(told.naps), failures=len(told.failures))
        if seed is not None:
            report("\n".join(schedule.world.gates.trace))

    report(
        f"{len(seeds):,} schedules of {totals['steps']:,} steps: {moments.total():,} crashes at {len(moments)} kinds of"
        f" moments, {totals['naps']:,} stalls, {totals['failures']:,} errors, none broke a promise"
    )


def test_a_seed_tells_the_same_story_every_time() -> None:
    for seed in range(50):
        first, second = tell(seed), tell(seed)
        assert first.told == second.told
        assert first.world.gates.trace == second.world.gates.trace
