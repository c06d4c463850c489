"""Commands of a worker are spread over its partitions by user, each user's in their order, whoever sends them."""

import secrets
from pathlib import Path

import pytest

from config.settings import FleetSettings
from mindbus.bus.connection import connect, open_transport
from mindbus.bus.topology import target_of, targets_of
from mindbus.runtime.provision import NoSuchPartition, NotPartitionable
from mindbus.runtime.service import build
from mindbus.settings import Settings, parse_partitions
from mindbus.testing.wait import until
from tests.fleets import Fleet, fleet_of, settings_for
from tests.greetings import Greeter
from tests.partitions_kit import BY_PARTITION, COUNT, USERS, Chat, Chatter, Reset

SAID = 10


@pytest.fixture(params=["memory", pytest.param("rabbit", marks=pytest.mark.rabbit)])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> FleetSettings:
    in_memory = f"memory://{secrets.token_hex(4)}"
    url = in_memory if request.param == "memory" else request.getfixturevalue("vhost_url")
    return settings_for(url, tmp_path, partitions=f"chatter={COUNT}")


def of_process(settings: FleetSettings, partition: int) -> FleetSettings:
    return settings.model_copy(update={"partition": partition})


async def is_heard(fleets: list[Fleet]) -> None:
    await until(lambda: sum(fleet[Chatter].count() for fleet in fleets) == len(USERS) * SAID)


async def test_processes_share_users_and_each_user_is_heard_in_order(settings: FleetSettings) -> None:
    async with (
        fleet_of(Chatter, settings=of_process(settings, 0)) as first,
        fleet_of(Chatter, settings=of_process(settings, 1)) as second,
        fleet_of(Chatter, settings=of_process(settings, 2)) as third,
    ):
        for number in range(SAID):
            for user in USERS:
                await first.bus.send(Chat(user_id=user, number=number))
        await is_heard([first, second, third])

        for fleet, users in zip((first, second, third), BY_PARTITION.values(), strict=True):
            assert fleet[Chatter].heard == {user: list(range(SAID)) for user in users}


async def test_who_knows_of_no_partitions_is_heard_where_everybody_is(settings: FleetSettings) -> None:
    unaware = settings.model_copy(update={"partitions": ""})
    async with (
        fleet_of(Chatter, settings=of_process(settings, 0)) as first,
        fleet_of(Chatter, settings=of_process(settings, 1)) as second,
        fleet_of(Chatter, settings=of_process(settings, 2)) as third,
        connect(settings=unaware) as bus,
    ):
        for number in range(SAID):
            for user in USERS:
                await bus.send(Chat(user_id=user, number=number))
        await bus.request(Chat(user_id=BY_PARTITION["chatter.2"][0], number=SAID, note="answered"))
        await until(lambda: sum(fleet[Chatter].count() for fleet in (first, second, third)) == len(USERS) * SAID + 1)

        last = third[Chatter].heard.pop(BY_PARTITION["chatter.2"][0])
        assert last == list(range(SAID + 1))
        assert {*first[Chatter].heard} == {*BY_PARTITION["chatter"]}
        assert second[Chatter].heard == {user: list(range(SAID)) for user in BY_PARTITION["chatter.1"]}


async def test_one_process_takes_all_partitions_unless_it_is_told_which(settings: FleetSettings) -> None:
    async with fleet_of(Chatter, settings=settings) as fleet:
        for number in range(SAID):
            for user in USERS:
                await fleet.bus.send(Chat(user_id=user, number=number))
        await is_heard([fleet])

        assert fleet[Chatter].heard == {user: list(range(SAID)) for user in USERS}


async def test_what_is_for_everybody_is_sent_to_each_partition_and_stays_there(settings: FleetSettings) -> None:
    async with (
        fleet_of(Chatter, settings=of_process(settings, 0)) as first,
        fleet_of(Chatter, settings=of_process(settings, 1)) as second,
    ):
        assert first.bus.targets_of("chatter") == ("chatter", "chatter.1", "chatter.2")
        for target in first.bus.targets_of("chatter")[:2]:
            await first.bus.request(Reset(), to=target)

        assert (first[Chatter].resets, second[Chatter].resets) == (1, 1)


def test_one_partition_keeps_the_name_of_the_service() -> None:
    assert targets_of("dialogue", 1) == ("dialogue",)
    assert target_of("dialogue", "anna", 1) == "dialogue"
    # Programs of all versions must agree: it is CRC-32.
    assert [target_of("dialogue", user, 4) for user in ("anna", "boris", "анна")] == [
        "dialogue.3",
        "dialogue.3",
        "dialogue.2",
    ]


@pytest.mark.parametrize("text", ["dialogue", "dialogue=0", "dialogue=x", "=2", "dialogue=65"])
def test_what_is_no_number_of_partitions_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="dialogue=4"):
        Settings(partitions=text)


def test_partitions_are_read_by_service() -> None:
    assert parse_partitions(" dialogue=4, chatter = 2 ") == {"dialogue": 4, "chatter": 2}
    assert parse_partitions("") == {}


def test_a_worker_that_cannot_be_spread_says_so_at_once(tmp_path: Path) -> None:
    settings = settings_for("memory://refused", tmp_path, partitions="greeter=2,chatter=2", partition=2)

    with pytest.raises(NotPartitionable, match="greeter"):
        build(Greeter, "greeter", settings, open_transport(settings, "greeter"))
    with pytest.raises(NoSuchPartition, match="chatter=2"):
        build(Chatter, "chatter", settings, open_transport(settings, "chatter"))
