"""The schedules find out what is wrong: each of these protocols is, in one place."""

import pytest

from tests.crashes.memory_world import Design, tell
from tests.crashes.mutants import MUTANTS
from tests.crashes.schedules import Broken


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_protocol_is_found_out(mutant: str) -> None:
    with pytest.raises(Broken, match=r"seed \d+: "):
        _run_all(MUTANTS[mutant])


def _run_all(design: Design) -> None:
    for seed in range(500):
        tell(seed, design)
