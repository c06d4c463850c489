"""Whoever owns data is asked, nobody else."""

from pathlib import Path

from bus_schema.data import ClearData, DeleteUser
from mindbus.bus.connecting import open_transport
from mindbus.bus.service import build
from mindbus.cli.owners import CLEAR, FORGET
from mindbus.settings import Settings
from workers.fleet import FLEET


def test_every_owner_of_data_is_asked_to_clear_and_to_forget(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, amqp_url=f"memory://{tmp_path}")
    takes = {
        name: set(build(make, name, settings, open_transport(settings, name)).worker.routes.commands)
        for name, make in FLEET.items()
    }

    assert {name for name, commands in takes.items() if ClearData in commands} == set(CLEAR)
    assert {name for name, commands in takes.items() if DeleteUser in commands} == set(FORGET)
