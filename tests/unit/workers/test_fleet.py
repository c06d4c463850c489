import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from agents.configuration.prompts import role_names
from mindbus.bus.connecting import connect
from mindbus.bus.worker import WorkerContext
from mindbus.settings import Settings
from tests.third_party import ECHO, install
from workers.fleet import FLEET, BrokenWorker, Fleet, UnknownWorker, in_order, whole_fleet
from workers.third_party import GROUP, third_party_workers


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

    fleet = whole_fleet()

    assert fleet.third_party == {"echo_joins"}
    assert list(fleet.makers) == [*FLEET, "echo_joins"]
    assert fleet.broken == {}


def test_a_worker_that_needs_nothing_may_do_without_a_constructor(tmp_path: Path, path: pytest.MonkeyPatch) -> None:
    source = "import mindbus\nclass Bare(mindbus.Worker):\n    name = 'bare'"
    path.syspath_prepend(install(tmp_path, "bare_package", source, bare="bare_package:Bare"))
    settings = Settings(data_dir=tmp_path, amqp_url="memory://bare")

    worker = whole_fleet().maker("bare")(WorkerContext(settings, connect(settings=settings)))

    assert worker.name == "bare"


def test_a_package_that_cannot_be_imported_is_reported_and_the_others_run(
    tmp_path: Path, path: pytest.MonkeyPatch
) -> None:
    path.syspath_prepend(
        install(tmp_path, "burst_package", "raise ZeroDivisionError('oh')", burst="burst_package:Burst")
    )

    fleet = whole_fleet()

    assert list(fleet.makers) == list(FLEET)
    assert "burst = burst_package:Burst of burst_package" in fleet.broken["burst"]
    assert "ZeroDivisionError: oh" in fleet.broken["burst"]
    with pytest.raises(BrokenWorker, match="cannot be imported"):
        fleet.maker("burst")


def test_a_name_of_our_own_cannot_be_taken() -> None:
    found = third_party_workers(taken=FLEET, points=[point("storage", "json:dumps")])

    assert found.makers == {}
    assert "give yours another" in found.broken["storage"]


def test_a_name_that_two_packages_claim_is_nobodys() -> None:
    found = third_party_workers(points=[point("twin", "json:dumps"), point("twin", "json:loads")])

    assert found.makers == {}
    assert "json:dumps, json:loads" in found.broken["twin"]


def test_the_same_entry_point_listed_twice_is_one() -> None:
    found = third_party_workers(points=[point("one", "json:dumps"), point("one", "json:dumps")])

    assert list(found.makers) == ["one"]


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
    assert trouble in third_party_workers(points=[point(name, value)]).broken[name]


def test_an_unknown_worker_is_told_its_nearest_name() -> None:
    with pytest.raises(UnknownWorker, match="did you mean storage"):
        Fleet(dict(FLEET), frozenset(), {}).maker("storge")


def test_whoever_needs_others_starts_after_them() -> None:
    stages = in_order([*FLEET, "echo"])

    order = {name: number for number, stage in enumerate(stages) for name in stage}
    assert sorted(order) == sorted([*FLEET, "echo"])
    chain = ("storage", "task_manager", "context", "dialogue", "tracker", "sim")
    assert [order[name] for name in chain] == sorted({order[name] for name in chain})
    assert len({order[name] for name in ("task_manager", "context_manager", "mood_watcher", "echo")}) == 1
