"""Whoever owns data is asked, nobody else."""

import sys
from pathlib import Path

import pytest

from bus_schema.data import ClearData, DeleteUser, Removed
from config.settings import FleetSettings
from mindbus import Worker, on_command
from mindbus.bus.connection import open_transport
from mindbus.cli.users import CLEAR, FORGET, ask_owners, others_that_take
from mindbus.runtime.service import build
from tests.fleets import fleet_of, settings_for
from tests.installed import FLEET
from tests.third_party import ECHO, install


def test_every_owner_of_data_is_asked_to_clear_and_to_forget(tmp_path: Path) -> None:
    settings = FleetSettings(data_dir=tmp_path, amqp_url=f"memory://{tmp_path}")
    takes = {
        name: set(build(make, name, settings, open_transport(settings, name)).worker.routes.commands)
        for name, make in FLEET.items()
    }

    assert {name for name, commands in takes.items() if ClearData in commands} == set(CLEAR)
    assert {name for name, commands in takes.items() if DeleteUser in commands} == set(FORGET)


KEEPER = """
    from collections.abc import Sequence

    from pydantic import BaseModel

    from mindbus import DialogueFragment, Event, ProcessingAgent


    class Kept(BaseModel):
        said: int = 0


    class Keeper(ProcessingAgent[Kept]):
        name = "keeper"
        state = Kept

        async def process(self, fragment: DialogueFragment, state: Kept) -> tuple[Kept, Sequence[Event]]:
            return state, []
"""


def test_an_agent_of_another_package_is_asked_to_forget_a_stranger_to_users_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(install(tmp_path, "keeper_package", KEEPER, keeper="keeper_package:Keeper"))
    source = ECHO.replace('"echo"', '"echo_owns"')
    monkeypatch.syspath_prepend(install(tmp_path, "owns_package", source, echo_owns="owns_package:EchoWorker"))
    settings = FleetSettings(data_dir=tmp_path, amqp_url=f"memory://{tmp_path}/others")
    try:
        assert others_that_take(DeleteUser, settings) == ["keeper"]
        assert others_that_take(ClearData, settings) == []
    finally:
        for module in ("keeper_package", "owns_package"):
            sys.modules.pop(module, None)


KEPT = ["what was said"]


class KeepingStorage(Worker):
    """Has what memory puts there."""

    name = "storage"

    @on_command
    async def delete_user(self, command: DeleteUser) -> Removed:
        removed, KEPT[:] = len(KEPT), []
        return Removed.of({"artifacts": removed})


class LateMemory(Worker):
    """Has begun to put an archive into storage before it is asked to forget."""

    name = "lsm"

    @on_command
    async def delete_user(self, command: DeleteUser) -> Removed:
        KEPT.append("an archive")
        return Removed(counts={})


async def test_storage_is_asked_again_after_memory(tmp_path: Path) -> None:
    async with fleet_of(
        lambda _context: KeepingStorage(),
        lambda _context: LateMemory(),
        settings=settings_for(f"memory://{tmp_path}", tmp_path),
    ) as fleet:
        outcome = await ask_owners(fleet.bus, DeleteUser(user_id="anna"), ("storage", "lsm"), within_s=30)

    assert (KEPT, outcome.failed, outcome.removed) == ([], {}, {"storage": {"artifacts": 2}, "lsm": {}})
