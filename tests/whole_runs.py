"""A fleet as a user has it, each part of it in a process that a test may kill; runs on it, with all that they leave.

`mindbus up` keeps the broker and the supervised workers alive. Storage is the test's own to stop and start, the other
roles share a process that nobody harms, so that a fleet takes no longer to start than it must.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.configuration.prompts import role_names
from agents.processes.cards import shipped_card
from bus_schema.artifacts import ArtifactRef, Manifest
from bus_schema.cards import BRIEF
from bus_schema.envelope import Envelope
from bus_schema.ids import mint
from bus_schema.process import GetProcess, StartProcess
from bus_schema.runs import Run, RunStatus, StepStatus
from bus_schema.storage import GetLineage, SearchArtifacts
from config.settings import FleetSettings
from mindbus import BusUnavailable, Client, ReplyError, connect
from mindbus.health import HealthFolder
from mindbus.sdk.artifacts import open_artifacts
from mindbus.testing.wait import ConditionNotMet, until
from mindbus_fleet.node.private import PrivateNode
from mindbus_fleet.supervision.children import tail
from mindbus_fleet.supervision.run_folder import RunFolder
from tests.brokers import registered
from tests.llm_server import Call, read_calls
from tests.taps import DurableTap

SUPERVISED = ("orchestrator", "pushkin")
UNHARMED = ("researcher", "ideator", "critic", "editor")
STARTED_WITHIN_S = 120
COMPLETED_WITHIN_S = 90


class WholeFleet:
    """A data folder with a fleet on it."""

    def __init__(self, folder: Path, model_url: str, calls: Path) -> None:
        self.settings = FleetSettings(data_dir=folder, llm_base_url=model_url, llm_model="scripted-1", heartbeat_s=1)
        self.node = PrivateNode(folder / "broker")
        self._calls = calls
        self._folder = RunFolder(self.settings)
        self._storage: subprocess.Popen[bytes] | None = None

    @property
    def amqp_url(self) -> str:
        state = self._folder.state()
        assert state
        assert state.amqp_url
        return state.amqp_url

    def calls(self) -> list[Call]:
        return read_calls(self._calls)

    def strike(self, worker: str, number: signal.Signals) -> None:
        """To a supervised worker; one that dies of it is started again by `mindbus up`."""
        state = self._folder.state()
        assert state
        pid = next(process.pid for process in state.workers if process.name == worker)
        assert pid
        os.kill(pid, number)

    def waits_for_storage(self, worker: str, run_id: str) -> bool:
        """Whether a worker has said so."""
        log = (self._folder.logs / f"{worker}.log").read_text(encoding="utf-8")
        return any("waiting for storage" in line and run_id in line for line in log.splitlines())

    def kill_broker(self) -> None:
        (pid_file,) = self.node.folder.glob("mnesia/*.pid")
        os.kill(int(pid_file.read_text()), signal.SIGKILL)

    def start_storage(self) -> None:
        self._storage = self._storage or self.spawn("storage")

    def end_storage(self, number: signal.Signals) -> None:
        """By SIGTERM in good order, by SIGKILL as by a power cut; nobody starts it again."""
        if self._storage is not None:
            end(self._storage, number)
            self._storage = None

    def spawn(self, *workers: str) -> "subprocess.Popen[bytes]":
        """Workers in a process that ends with this one, however that ends."""
        log = self._folder.logs / f"{workers[0]}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as sink:
            return subprocess.Popen(
                [sys.executable, "-m", "mindbus.cli.main", "worker", "--supervised", *workers],
                env=self.settings.environment(),
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=sink,
            )

    async def ready(self, *workers: str) -> None:
        """They consume from their queues."""
        health = HealthFolder(self.settings)

        def missing() -> set[str]:
            well = {each.name for each in health.all_here() if health.trouble(each) is None}
            return set(workers) - well

        try:
            await until(lambda: not missing(), STARTED_WITHIN_S)
        except ConditionNotMet as late:
            late.add_note(f"not ready: {missing()}\n{self.last_words()}")
            raise

    def last_words(self) -> str:
        """The end of every log."""
        return "\n".join(f"--- {log.name}\n{tail(log, 25)}" for log in sorted(self._folder.logs.glob("*.log")))

    @asynccontextmanager
    async def run(self, brief: Path) -> AsyncIterator["WholeRun"]:
        """An article that is being written while the block goes on, with its own ears on the bus."""
        # A test that failed may have left it so.
        self.start_storage()
        run_id = mint("run")
        tap = DurableTap(self.amqp_url, f"test.{run_id}")
        await tap.open(("mb.evt", "evt.process.#"), *((f"mb.cmd.{role}", "#") for role in role_names()))
        await registered(self.node, tap.name)
        async with connect(settings=self.settings) as bus:
            async with open_artifacts(bus, self.settings) as artifacts:
                put = await artifacts.put(
                    brief, trace=run_id, artifact_type=BRIEF, artifact_id=mint("art"), content_type="text/markdown"
                )
            run = WholeRun(self, bus, tap, run_id, put.ref)
            await bus.request(StartProcess(run_id=run_id, card_name="article", inputs=(put.ref,)), trace=run_id)
            yield run


def end(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    """Wait until it has ended; its input closes only then, since that is another reason to stop."""
    process.send_signal(number)
    process.wait()
    assert process.stdin
    process.stdin.close()


@contextmanager
def whole_fleet_on(folder: Path, model_url: str, calls: Path) -> Iterator[WholeFleet]:
    """Everything, from the moment when it is ready."""
    fleet = WholeFleet(folder, model_url, calls)
    environment = fleet.settings.environment()
    command = [sys.executable, "-m", "mindbus.cli.main"]
    with ExitStack() as ending:
        ending.callback(subprocess.run, [*command, "down"], env=environment, check=True, stdout=subprocess.DEVNULL)
        ending.callback(end, fleet.spawn(*UNHARMED), signal.SIGTERM)
        fleet.start_storage()
        ending.callback(fleet.end_storage, signal.SIGTERM)
        up = [*command, "up", "-d", "--isolate", "--workers", ",".join(SUPERVISED)]
        subprocess.run(up, env=environment, check=True, stdout=subprocess.DEVNULL, timeout=STARTED_WITHIN_S)
        asyncio.run(fleet.ready(*SUPERVISED, *UNHARMED, "storage"))
        yield fleet


@dataclass
class WholeRun:
    """One run, as its user, its model endpoint, its bus see it."""

    fleet: WholeFleet
    bus: Client
    tap: DurableTap
    run_id: str
    brief: ArtifactRef
    _earlier_calls: int = field(init=False)

    def __post_init__(self) -> None:
        self._earlier_calls = len(self.fleet.calls())

    def calls(self, event: str) -> list[Call]:
        """The model calls of this run that were asked, were going to be answered, or were answered."""
        return [call for call in self.fleet.calls()[self._earlier_calls :] if call.event == event]

    async def call(self, task: str, step: str, event: str) -> Call:
        """A model call, as soon as it is asked, or answered."""

        def found() -> Call | None:
            return next((call for call in self.calls(event) if (call.task, call.step) == (task, step)), None)

        call: Call | None = await self._until(found, f"{task}/{step} is {event}")
        assert call
        return call

    async def look(self) -> Run | None:
        """What `mindbus process status` would show; None while the orchestrator does not answer."""
        try:
            return await self.bus.request(GetProcess(run_id=self.run_id), trace=self.run_id, timeout_s=2)
        except (ReplyError, BusUnavailable):
            return None

    async def step_is(self, step_id: str, status: StepStatus) -> None:
        async def is_so() -> bool:
            run = await self.look()
            return run is not None and any(s.step_id == step_id and s.status is status for s in run.steps)

        await self._until(is_so, f"{step_id} is {status.value}")

    async def completed(self) -> Run:
        async def over() -> Run | None:
            run = await self.look()
            return run if run is not None and run.status not in (RunStatus.STARTING, RunStatus.RUNNING) else None

        run: Run | None = await self._until(over, "the run is over")
        assert run
        assert run.status is RunStatus.COMPLETED, f"{run.reason}\n{self.fleet.last_words()}"
        return run

    async def manifests(self) -> dict[str | None, list[Manifest]]:
        """All that storage has of the run, by step; the brief's step is None."""
        page = await self.bus.request(SearchArtifacts(trace_id=self.run_id, limit=200), trace=self.run_id)
        return {step: [each for each in page.items if each.step_id == step] for step in {m.step_id for m in page.items}}

    async def lineage(self, artifact: ArtifactRef) -> set[tuple[str, str]]:
        """Who was made from whom, all the way up."""
        found = await self.bus.request(GetLineage(artifact_id=artifact.artifact_id), trace=self.run_id)
        return {(edge.source, edge.target) for edge in found.edges}

    async def heard(self) -> list[Envelope]:
        """Every order and every process event of the run, each as often as it was sent."""
        return [envelope for envelope in await self.tap.close() if envelope.mbtraceid == self.run_id]

    def buffered(self) -> list[Path]:
        """What waits for storage on this machine."""
        return list(self.fleet.settings.data_dir.glob("buffer/*/*/art_*"))

    def asked_more_than_once(self) -> dict[Call, int]:
        counts = Counter(self.calls("asked"))
        return {call: count for call, count in counts.items() if count > 1}

    async def _until(self, condition: Callable[[], Any], what: str) -> Any:
        try:
            return await until(condition, COMPLETED_WITHIN_S, what)
        except ConditionNotMet as never:
            never.add_note(f"{await self.look()}\n{self.fleet.last_words()}")
            raise


def inputs_of(run: Run, brief: ArtifactRef) -> dict[str, list[str]]:
    """For each step, the artifacts that the article card says it is made from."""
    made = {BRIEF: brief.artifact_id}
    made |= {step.step_id: step.artifact.artifact_id for step in run.steps if step.artifact}
    return {step.id: [made[name] for name in step.inputs] for step in shipped_card("article", role_names()).steps}
