import os
from pathlib import Path

import pytest

from bus_schema.codes import State
from config.settings import FleetSettings
from mindbus.health import HealthFolder
from mindbus_fleet.cli.background import DrainReport
from mindbus_fleet.cli.fleet import announce
from mindbus_fleet.supervision.run_folder import UpState


def test_whoever_stops_a_fleet_is_told_who_still_drains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = FleetSettings(data_dir=tmp_path)
    health, report = HealthFolder(settings), DrainReport(settings, is_silent=False, every_s=0)
    health.report("dialogue", State.UNREADY, at_work=2)
    health.report("storage", State.UNREADY)

    report.look()
    report.look()
    health.forget("dialogue")
    report.look()
    health.forget("storage")
    report.look()

    assert capsys.readouterr().err.splitlines() == [
        "Draining: dialogue (2 messages), storage",
        "Draining: storage",
        "Stopping RabbitMQ …",
    ]


def test_the_dead_drain_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = FleetSettings(data_dir=tmp_path)
    health = HealthFolder(settings)
    health.report("storage", State.READY)
    (file,) = (tmp_path / "run" / "health").iterdir()
    # Beyond the largest process id.
    file.write_text(file.read_text().replace(f'"pid":{os.getpid()}', f'"pid":{2**22 + 1}'))

    DrainReport(settings, is_silent=False, every_s=0).look()

    assert capsys.readouterr().err.splitlines() == ["Stopping RabbitMQ …"]


@pytest.mark.parametrize("as_json", [False, True])
def test_up_shows_no_password_of_a_broker_of_ones_own(*, as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    amqp, management = "amqp://mindbus:hush@rabbit:5672/", "http://mindbus:hush@rabbit:15672"

    announce(UpState(1, "ready", "/data", amqp, management), None, None, as_json=as_json)

    shown = capsys.readouterr().out
    assert "rabbit:15672" in shown
    assert "hush" not in shown
