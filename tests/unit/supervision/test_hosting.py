import asyncio
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import structlog

import mindbus
from bus_schema.fleet import Heartbeat
from config.settings import FleetSettings
from mindbus.bus.connection import connect
from mindbus.health import HealthFolder, WorkerUnhealthy
from mindbus.run_dir import broker_file
from mindbus.sql.errors import DatabaseDamaged
from mindbus.testing.wait import until
from mindbus.worker_host import WorkerMisnamed, host, wait_for_broker


class Answer(mindbus.Nothing):
    text: str


class Ask(mindbus.Command[Answer], domain="hosted", action="ask"):
    text: str


class Wait(mindbus.Command[mindbus.Nothing], domain="hosted", action="wait"):
    pass


HELD = asyncio.Event()
BEGUN: list[Wait] = []


class HostedWorker(mindbus.Worker):
    name = "hosted"

    def __init__(self, context: mindbus.WorkerContext) -> None:
        self.context = context
        self.is_stopped = False

    @mindbus.on_command
    async def answer(self, command: Ask) -> Answer:
        return Answer(text=command.text.upper())

    @mindbus.on_command
    async def wait(self, command: Wait) -> mindbus.Nothing:
        BEGUN.append(command)
        await HELD.wait()
        return mindbus.Nothing()

    @mindbus.on_event
    async def listen(self, event: Heartbeat) -> None:
        pass

    async def stop(self) -> None:
        self.is_stopped = True


@pytest.fixture
def settings(tmp_path: Path) -> FleetSettings:
    return FleetSettings(data_dir=tmp_path, amqp_url=f"memory://{tmp_path}", heartbeat_s=0.05)


async def test_workers_answer_and_report_until_they_are_told_to_stop(settings: FleetSettings) -> None:
    stop, built = asyncio.Event(), []

    def make(context: mindbus.WorkerContext) -> mindbus.Worker:
        built.append(HostedWorker(context))
        return built[-1]

    hosting = asyncio.create_task(host({"hosted": make}, settings, stop))
    health = HealthFolder(settings)
    (ready,) = await until(lambda: [found for found in health.all_here() if found.is_well])
    assert (ready.name, ready.pid) == ("hosted", os.getpid())
    async with connect(settings=settings) as bus:
        assert (await bus.request(Ask(text="да"))).text == "ДА"

    stop.set()
    await hosting

    assert built[0].is_stopped
    assert health.all_here() == []


async def test_a_draining_worker_says_how_many_messages_it_handles(settings: FleetSettings) -> None:
    stop, health = asyncio.Event(), HealthFolder(settings)
    HELD.clear()
    BEGUN.clear()
    hosting = asyncio.create_task(host({"hosted": HostedWorker}, settings, stop))
    await until(lambda: [found for found in health.all_here() if found.is_well])
    async with connect(settings=settings) as bus:
        await bus.send(Wait())
        await bus.send(Wait())
        await until(lambda: len(BEGUN) == 2)

        stop.set()
        await until(lambda: [found.at_work for found in health.all_here()] == [2])

        HELD.set()
        await hosting
    assert health.all_here() == []


async def test_a_health_file_that_cannot_be_written_ends_no_heartbeat(settings: FleetSettings) -> None:
    stop, health = asyncio.Event(), HealthFolder(settings)
    with structlog.testing.capture_logs() as said:
        hosting = asyncio.create_task(host({"hosted": HostedWorker}, settings, stop))
        await until(lambda: [found for found in health.all_here() if found.is_well])

        folder = settings.run_dir / "health"
        folder.rename(folder.with_name("elsewhere"))
        folder.write_text("no folder")
        await until(lambda: [line for line in said if line.get("task") == "hosted health"])
        folder.unlink()

        await until(lambda: [found for found in health.all_here() if found.is_well])
        stop.set()
        await hosting


class DamagedWorker(HostedWorker):
    @mindbus.on_command
    async def answer(self, command: Ask) -> Answer:
        raise DatabaseDamaged("hosted.db", "malformed")


async def test_a_worker_whose_database_is_damaged_says_so_and_leaves_its_messages(settings: FleetSettings) -> None:
    health = HealthFolder(settings)
    async with connect(settings=settings) as bus:
        stop = asyncio.Event()
        hosting = asyncio.create_task(host({"hosted": DamagedWorker}, settings, stop))
        await until(lambda: [found for found in health.all_here() if found.is_well])
        asking = asyncio.create_task(bus.request(Ask(text="да")))

        def damage() -> str:
            """The words of `mindbus health`, once no heartbeat is late."""
            with pytest.raises(WorkerUnhealthy) as unhealthy:
                health.require("hosted")
            return str(unhealthy.value) if "silent" not in str(unhealthy.value) else ""

        await until(lambda: [found for found in health.all_here() if "is damaged" in found.note])
        said = await until(damage)
        assert re.search(r"hosted\.db is damaged .*put a backup in its place", said)
        stop.set()
        await hosting

        stop = asyncio.Event()
        hosting = asyncio.create_task(host({"hosted": HostedWorker}, settings, stop))
        assert (await asking).text == "ДА"
        stop.set()
        await hosting


async def test_metrics_are_served_to_this_machine_alone(settings: FleetSettings) -> None:
    stop, health = asyncio.Event(), HealthFolder(settings)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    hosting = asyncio.create_task(
        host({"hosted": HostedWorker}, settings.model_copy(update={"metrics_port": port}), stop)
    )
    await until(lambda: [found for found in health.all_here() if found.is_well])

    socket.create_connection(("127.0.0.1", port), timeout=2).close()
    with pytest.raises(OSError, match=r"refused|assign|unreachable|timed out"):
        # Another address of the loopback interface, as that of a network would be.
        socket.create_connection(("127.0.0.2", port), timeout=2)

    stop.set()
    await hosting


async def test_a_worker_goes_by_one_name_and_one_that_cannot_run_leaves_the_reason(settings: FleetSettings) -> None:
    for _ in range(2):
        with pytest.raises(WorkerMisnamed, match="'hosted' is there as 'other'"):
            await host({"other": HostedWorker}, settings, asyncio.Event())

    (left,) = HealthFolder(settings).all_here()
    assert (left.name, left.is_well) == ("other", False)
    assert "'hosted' is there as 'other'" in left.note


STANDS_STILL = """
import asyncio, sys, threading
from mindbus.worker_host import watchdog

def stand_still():
    threading.Event().wait(float(sys.argv[1]))

async def main():
    async with watchdog(0.5):
        await asyncio.sleep(0)
        if sys.argv[1] == "60":
            stand_still()
    stand_still()

asyncio.run(main())
"""


async def test_a_worker_whose_broker_does_not_start_says_that_it_knows_none(settings: FleetSettings) -> None:
    alone = settings.model_copy(update={"amqp_url": ""})
    with pytest.raises(mindbus.NoBroker, match="mindbus up"):
        await wait_for_broker(alone, within_s=0.1)
    address = broker_file(alone)
    address.parent.mkdir(parents=True, exist_ok=True)
    address.write_text("memory://late")
    await wait_for_broker(alone, within_s=0)


@pytest.mark.parametrize(("still_s", "code"), [("60", 1), ("1", 0)])
def test_a_process_whose_loop_stands_still_ends_with_its_stacks_unless_nobody_watches(still_s: str, code: int) -> None:
    command = [sys.executable, "-c", STANDS_STILL, still_s]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=55, check=False)

    assert ended.returncode == code
    assert ("in stand_still" in ended.stderr) == bool(code)
