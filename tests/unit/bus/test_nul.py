"""A NUL character, which PostgreSQL cannot store, is refused before any handler has it."""

from pathlib import Path

import pytest

from bus_schema.codes import Code
from config.settings import FleetSettings
from mindbus import ReplyError
from tests.fleets import fleet_of
from tests.greetings import Greet, Greeter


async def test_a_command_with_a_nul_is_refused_with_the_reason(tmp_path: Path) -> None:
    settings = FleetSettings(amqp_url=f"memory://{tmp_path}", data_dir=tmp_path)
    async with fleet_of(Greeter, settings=settings) as fleet:
        with pytest.raises(ReplyError, match="NUL") as refused:
            await fleet.bus.request(Greet(name="an\0na"), timeout_s=30)
        await fleet.bus.request(Greet(name="an\\u0000na"), timeout_s=30)

    assert refused.value.code is Code.INVALID
    assert fleet[Greeter].greeted == ["an\\u0000na"]
