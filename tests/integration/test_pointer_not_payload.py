"""No body on the broker is large, however large is what the messages are about."""

import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agents.configuration.prompts import role_names
from bus_schema.cards import BRIEF
from bus_schema.ids import mint
from bus_schema.process import GetProcess, StartProcess
from bus_schema.runs import RunStatus
from config.settings import FleetSettings
from mindbus import TemporaryFailure, Worker, WorkerContext, on_command
from mindbus.bus.deadletters import DeadLetters
from mindbus.sdk.artifacts import open_artifacts
from mindbus.testing.wait import until
from tests.fleets import fleet_of, settings_for
from tests.greetings import Greet, Greeted, Greeting
from tests.installed import FLEET
from tests.management import Management
from tests.taps import Body, every_body

LARGEST_BODY = 64 * 1024
MIB = 1024 * 1024
NOTE_BYTES = 5_000_000


@pytest.fixture
def settings(vhost_url: str, tmp_path: Path) -> FleetSettings:
    return settings_for(vhost_url, tmp_path)


@pytest.fixture
async def bodies(vhost_url: str, vhost: str, management: Management) -> AsyncIterator[list[Body]]:
    """All that the test published, looked at once it is over."""
    async with every_body(vhost_url, vhost, management) as seen:
        yield seen
    assert max(body.size_bytes for body in seen) <= LARGEST_BODY


async def _seen(bodies: list[Body], *exchanges: str) -> None:
    """The tap hears these exchanges: what it says of them is worth something."""
    await until(lambda: set(exchanges) <= {body.exchange for body in bodies})


class StumblingGreeter(Worker):
    """Greets at the second try, never the impolite."""

    name = "greeter"
    attempts = 2

    def __init__(self, _kit: WorkerContext) -> None:
        self.tries = 0

    @on_command
    async def greet(self, command: Greet) -> tuple[Greeting, Greeted]:
        self.tries += 1
        if self.tries == 1 or command.name == "nobody":
            raise TemporaryFailure("not awake yet")
        return Greeting(text="", times_seen=len(command.note)), Greeted(name=command.name, text=command.note)


@pytest.mark.parametrize("size_mib", [20, pytest.param(200, marks=pytest.mark.proof)])
async def test_a_large_artifact_goes_by_pointer(
    bodies: list[Body], settings: FleetSettings, tmp_path: Path, size_mib: int
) -> None:
    big, back = tmp_path / "big.bin", tmp_path / "back.bin"
    with big.open("wb") as file:
        for _ in range(size_mib):
            file.write(os.urandom(MIB))
    async with fleet_of(FLEET["storage"], settings=settings) as fleet:
        researcher = fleet.bus.acting_as("agent.researcher")
        async with open_artifacts(researcher, settings) as artifacts:
            put = await artifacts.put(big, artifact_type="dataset", trace="t1", content_type="application/octet-stream")
            await artifacts.save(put.ref.artifact_id, back)

    assert put.outcome == "registered"
    assert _digest(back) == _digest(big) == put.ref.sha256
    await _seen(bodies, "mb.cmd.storage", "mb.evt.storage", "mb.reply")


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


async def test_a_large_command_an_event_a_retry_and_a_dead_letter_go_by_claim(
    bodies: list[Body], settings: FleetSettings, vhost_url: str
) -> None:
    note = "я" * (NOTE_BYTES // 2)
    async with fleet_of(StumblingGreeter, settings=settings) as fleet:
        async with fleet.bus.subscribe(Greeted) as events:
            greeting = await fleet.bus.request(Greet(name="Anna", note=note))
            heard = await anext(aiter(events))
        await fleet.bus.send(Greet(name="nobody", note=note))
        await until(lambda: DeadLetters(vhost_url).look("greeter"), what="a dead letter")

    assert (greeting.times_seen, heard.text) == (len(note), note)
    await _seen(bodies, "mb.cmd.greeter", "mb.evt.greeter", "mb.reply", "mb.delay.50ms", "mb.deadletter")


def _long_brief() -> bytes:
    paragraphs = Path("config/briefs/en.md").read_text(encoding="utf-8").split("\n\n")
    log_book = (f"Entry {n} of the log book: on day {n} the pool took {n * 7} kWh from the rink." for n in range(900))
    return "\n\n".join([*paragraphs, "## Appendix", *log_book]).encode()


async def test_a_whole_article_on_a_long_brief_goes_by_pointer(bodies: list[Body], settings: FleetSettings) -> None:
    run_id = mint("run")
    brief = _long_brief()
    async with fleet_of(*FLEET.values(), settings=settings) as fleet:
        async with open_artifacts(fleet.bus, settings) as artifacts:
            put = await artifacts.put(brief, artifact_type=BRIEF, trace=run_id, content_type="text/markdown")
        await fleet.bus.request(StartProcess(run_id=run_id, card_name="article", inputs=(put.ref,)))

        async def is_over() -> bool:
            run = await fleet.bus.request(GetProcess(run_id=run_id))
            assert run.status not in (RunStatus.FAILED, RunStatus.CANCELLED), run.reason
            return run.status is RunStatus.COMPLETED

        await until(is_over, deadline_s=60)

    assert len(brief) > LARGEST_BODY
    ordered = (f"mb.cmd.{name}" for name in ("storage", "orchestrator", *role_names()))
    await _seen(bodies, *ordered, "mb.evt.pushkin")
