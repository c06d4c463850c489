"""Two processes of every worker, each with a folder of its own: whichever is killed, its fellow goes on."""

import time
from pathlib import Path

import pytest

from agents.configuration.prompts import role_names
from agents.processes.cards import shipped_card
from mindbus.testing.wait import until
from tests.chaos.replicas import GOES_ON_WITHIN_S, fleet_and_life

pytestmark = [pytest.mark.slow, pytest.mark.chaos, pytest.mark.rabbit, pytest.mark.backends, pytest.mark.proof]


@pytest.mark.timeout(3600)
async def test_every_replica_is_killed(tmp_path: Path) -> None:
    async with fleet_and_life(tmp_path) as (fleet, life):
        print(f"goes on in {await life.goes_on():.1f} s with nothing killed")
        for name, replicas in fleet.replicas.items():
            # The one at work first; then the other, which has taken over.
            for replica in sorted(replicas, key=lambda each: not each.is_at_work):
                began = time.monotonic()
                replica.end()
                fellows = [each for each in replicas if each is not replica]
                if not fellows:
                    replica.start()
                    await replica.well()
                for fellow in fellows:
                    await until(lambda: fellow.is_at_work, GOES_ON_WITHIN_S, f"another {name} is at work")  # noqa: B023
                taken_over = time.monotonic() - began
                print(f"{name}: another at work after {taken_over:.1f} s, all goes on in {await life.goes_on():.1f} s")
                if fellows:
                    replica.start()
                    await replica.well()

        await life.wave.pause()
        await until(lambda: not life.odd(), GOES_ON_WITHIN_S, "every operation has its effects")
        steps = {step.id for step in shipped_card("article", role_names()).steps}
        for run_id in life.runs:
            made = await life.made(run_id)
            assert set(made.values()) == {1}, (run_id, made)
            assert steps <= set(made)
        print(f"{len(life.wave.operations)} operations, {len(life.runs)} articles")
