import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import mindbus_fleet
from agents.configuration.prompts import role_names
from config.settings import FleetSettings
from mindbus.bus.connection import connect, open_transport
from mindbus.bus.worker import WorkerContext
from mindbus.registry import (
    GROUP,
    BrokenModule,
    BrokenWorker,
    UnknownWorker,
    WorkerRegistry,
    installed_workers,
    workers_at,
)
from mindbus.runtime.service import build
from mindbus.worker_host import start_stages
from tests.installed import FLEET
from tests.third_party import ECHO, install


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    before = set(sys.modules)
    yield monkeypatch
    for name in set(sys.modules) - before:
        del sys.modules[name]


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name=name, value=value, group=GROUP)


def test_every_role_has_a_worker() -> None:
    assert set(role_names()) <= set(FLEET)


def test_a_worker_of_another_package_joins_the_fleet(tmp_path: Path, path: pytest.MonkeyPatch) -> None:
    source = ECHO.replace('"echo"', '"echo_joins"')
    path.syspath_prepend(install(tmp_path, "echo_package", source, echo_joins="echo_package:EchoWorker"))

    fleet = installed_workers().checked()

    assert set(fleet.third_party) == {"echo_joins"}
    assert list(fleet.entries) == [*FLEET, "echo_joins"]
    assert fleet.broken == {}


def test_a_worker_that_needs_nothing_may_do_without_a_constructor(tmp_path: Path, path: pytest.MonkeyPatch) -> None:
    source = "import mindbus\nclass Bare(mindbus.Worker):\n    name = 'bare'"
    path.syspath_prepend(install(tmp_path, "bare_package", source, bare="bare_package:Bare"))
    settings = FleetSettings(data_dir=tmp_path, amqp_url="memory://bare")

    worker = installed_workers().require("bare")(WorkerContext(settings, connect(settings=settings)))

    assert worker.name == "bare"


def test_a_package_that_cannot_be_imported_is_reported_and_the_others_run(
    tmp_path: Path, path: pytest.MonkeyPatch
) -> None:
    path.syspath_prepend(
        install(tmp_path, "burst_package", "raise ZeroDivisionError('oh')", burst="burst_package:Burst")
    )

    fleet = installed_workers().checked()

    assert list(fleet.entries) == list(FLEET)
    assert "burst = burst_package:Burst of burst_package" in fleet.broken["burst"]
    assert "ZeroDivisionError: oh" in fleet.broken["burst"]
    with pytest.raises(BrokenWorker, match="cannot be imported"):
        fleet.require("burst")


def test_a_worker_that_needs_a_package_hidden_by_the_fleet_runs_in_a_process_of_its_own(
    tmp_path: Path, path: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "mindbus_fleet" / "packages"
    (packages / "rival").mkdir(parents=True)
    (packages / "rival" / "__init__.py").write_text("")
    path.syspath_prepend(packages)
    path.setattr(mindbus_fleet, "__file__", str(tmp_path / "mindbus_fleet" / "__init__.py"))
    source = "from rival import Agent"
    path.syspath_prepend(install(tmp_path, "hidden_package", source, hidden="hidden_package:Hidden"))

    here, apart = installed_workers().checked(), installed_workers().checked(apart=True)

    assert "cannot import name 'Agent' from 'rival'" in here.broken["hidden"]
    assert "run it with `mindbus worker`, in a process of its own" in here.broken["hidden"]
    assert "hidden" in apart.third_party
    assert apart.broken == {}


def test_a_name_of_our_own_cannot_be_taken() -> None:
    registry = WorkerRegistry.of([FLEET["storage"].point, point("storage", "json:dumps")])

    assert list(registry.own) == ["storage"]
    assert registry.third_party == {}
    assert "give yours another" in registry.broken["storage"]


def test_a_name_that_two_packages_claim_is_nobodys() -> None:
    registry = WorkerRegistry.of([point("twin", "json:dumps"), point("twin", "json:loads")])

    assert registry.entries == {}
    assert "json:dumps, json:loads" in registry.broken["twin"]


def test_the_same_entry_point_listed_twice_is_one() -> None:
    assert list(WorkerRegistry.of([point("one", "json:dumps"), point("one", "json:dumps")]).entries) == ["one"]


@pytest.mark.parametrize(
    ("name", "value", "trouble"),
    [
        ("Upper", "json:dumps", "lowercase"),
        ("gone", "json:nothing_here", "AttributeError"),
        ("missing", "no_such_module_anywhere:Worker", "ModuleNotFoundError"),
        ("data", "json:__name__", "callable"),
    ],
)
def test_an_unusable_entry_point_says_why(name: str, value: str, trouble: str) -> None:
    assert trouble in WorkerRegistry.of([point(name, value)]).checked().broken[name]


@pytest.mark.parametrize("target", ["{folder}/spoilt_worker.py", "spoilt_worker:Spoilt", "spoilt_worker.py:Spoilt"])
def test_what_is_wrong_in_a_file_of_ones_own_is_shown_without_the_frames_of_who_imports_it(
    tmp_path: Path, path: pytest.MonkeyPatch, target: str
) -> None:
    (tmp_path / "spoilt_worker.py").write_text("import mindbus\nclass Spoilt(mindbus.Worker):\n    name = 'Big One'\n")
    path.chdir(tmp_path)
    path.syspath_prepend(tmp_path)

    with pytest.raises(BrokenModule) as broken:
        workers_at(target.format(folder=tmp_path))

    said = str(broken.value).splitlines()
    assert said[0] == "spoilt_worker cannot be imported"
    assert 'spoilt_worker.py", line 2, in <module>' in said[2]
    assert said[-1] == "TypeError: a worker's name is lowercase letters, digits, - and _, not 'Big One'"


def test_an_unknown_worker_is_told_its_nearest_name() -> None:
    with pytest.raises(UnknownWorker, match="did you mean storage"):
        installed_workers().require("storge")


def test_whoever_needs_others_starts_after_them(tmp_path: Path) -> None:
    settings = FleetSettings(data_dir=tmp_path, amqp_url=f"memory://{tmp_path}")
    services = [build(make, name, settings, open_transport(settings, name)) for name, make in FLEET.items()]

    stages = start_stages(services)

    order = {service.worker.name: number for number, stage in enumerate(stages) for service in stage}
    assert sorted(order) == sorted(FLEET)
    chain = ("storage", "task_manager", "context", "dialogue", "tracker", "sim")
    assert [order[name] for name in chain] == sorted({order[name] for name in chain})
    assert len({order[name] for name in ("task_manager", "context_manager", "mood_watcher", "researcher")}) == 1
