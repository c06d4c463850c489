"""A role of somebody else's: how what its `make` returns and raises ends a step."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agents.models.errors import TokensSpent
from bus_schema.artifacts import ArtifactRef
from bus_schema.messages import Nothing
from bus_schema.process import ExecuteStep, NamedInput, StepCompleted, StepFailed
from bus_schema.replies import Code
from config.settings import FleetSettings
from mindbus import PermanentFailure, Rejected, ReplyError, TemporaryFailure
from mindbus.bus.client import Client
from mindbus.bus.worker import WorkerContext
from mindbus.errors import Damaged
from mindbus.sdk.artifacts import open_artifacts
from mindbus.sdk.role import RoleOutput, RoleWorker, StepWork
from mindbus.testing import DeliveryResult, deliver, running
from tests.fleets import settings_for
from tests.installed import FLEET

RUN = "run_1"
Make = Callable[[StepWork], Awaitable[RoleOutput]]


class Poet(RoleWorker):
    name = "poet"
    produces = ("verse",)
    attempts = 2

    def __init__(self, context: WorkerContext, make: Make) -> None:
        super().__init__(context)
        self._make, self.made = make, 0

    async def make(self, work: StepWork) -> RoleOutput:
        self.made += 1
        return await self._make(work)


class Stage:
    """Storage on a bus of this process, and a brief in it."""

    def __init__(self, bus: Client, settings: FleetSettings, brief: ArtifactRef) -> None:
        self.bus, self.settings, self.brief = bus, settings, brief

    async def ended(self, make: Make, *, times: int = 1, **changes: object) -> tuple[Poet, DeliveryResult[Nothing]]:
        """The poet and the last of `times` deliveries of one order."""
        poet = Poet(WorkerContext(self.settings, self.bus), make)
        return poet, await self.ended_by(poet, times=times, **changes)

    async def ended_by(self, poet: RoleWorker, *, times: int = 1, **changes: object) -> DeliveryResult[Nothing]:
        order = self.order(**changes)
        await poet.start()
        try:
            ended = [
                await deliver(poet, order, by="svc.orchestrator", trace=RUN, message_id=f"msg_{number}")
                for number in range(times)
            ]
        finally:
            await poet.stop()
        return ended[-1]

    def order(self, **changes: object) -> ExecuteStep:
        fields = {
            "run_id": RUN,
            "step_id": "verse",
            "attempt": 1,
            "produces": "verse",
            "instructions": "Make it rhyme.",
            "inputs": [NamedInput(name="brief", artifact=self.brief)],
            "deadline": datetime.now(UTC) + timedelta(minutes=5),
        }
        return ExecuteStep.model_validate(fields | changes)


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    settings = settings_for(f"memory://{tmp_path}", tmp_path, heartbeat_s=0.1)
    async with running(FLEET["storage"], settings=settings) as bus, open_artifacts(bus, settings) as artifacts:
        put = await artifacts.put(b"Roses are red.\r\n", artifact_type="brief", content_type="text/plain", trace=RUN)
        yield Stage(bus, settings, put.ref)


async def test_the_role_of_the_guide_works_as_it_stands(stage: Stage) -> None:
    guide = (Path(__file__).parents[2] / "docs/how-to/write-a-card.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    names: dict[str, type[RoleWorker]] = {}
    exec(code, names)

    ended = await stage.ended_by(names["Poet"](WorkerContext(stage.settings, stage.bus)))

    (completed,) = ended.events(StepCompleted)
    async with open_artifacts(stage.bus, stage.settings) as artifacts:
        assert await artifacts.get(completed.artifact.artifact_id, trace=RUN) == b"ROSES ARE RED.\n"


async def shouted(work: StepWork) -> RoleOutput:
    return RoleOutput("".join(given.text().upper() for given in work.inputs).encode(), "text/plain")


def raising(error: Exception) -> Make:
    async def make(_work: StepWork) -> RoleOutput:
        raise error

    return make


async def test_what_it_makes_is_the_artifact_of_the_step_and_made_once(stage: Stage) -> None:
    poet, ended = await stage.ended(shouted, times=2)

    (completed,) = ended.events(StepCompleted)
    assert poet.made == 1
    async with open_artifacts(stage.bus, stage.settings) as artifacts:
        manifest = await artifacts.manifest(completed.artifact.artifact_id, trace=RUN)
        assert (manifest.artifact_type, manifest.owner, manifest.step_id) == ("verse", "agent.poet", "verse")
        assert await artifacts.get(manifest.id, trace=RUN) == b"ROSES ARE RED.\n"


@pytest.mark.parametrize("error", [Rejected(message="no rhyme for silver"), PermanentFailure("no paper")])
async def test_what_it_refuses_fails_the_step_with_its_words(stage: Stage, error: Exception) -> None:
    _, ended = await stage.ended(raising(error))

    (failed,) = ended.events(StepFailed)
    assert (failed.reason, failed.retryable, failed.quota_spent) == (str(error), False, False)


async def test_the_end_of_the_tokens_is_no_failure_of_the_step(stage: Stage) -> None:
    _, ended = await stage.ended(raising(TokensSpent("60 of 50")))

    (failed,) = ended.events(StepFailed)
    assert failed.quota_spent


async def test_what_is_missing_for_the_moment_is_waited_for(stage: Stage) -> None:
    _, ended = await stage.ended(raising(TemporaryFailure("the ink is frozen")))

    assert (ended.outcome, ended.events(StepFailed)) == ("retried", [])


async def test_a_bug_is_no_verdict_on_the_step(stage: Stage) -> None:
    _, ended = await stage.ended(raising(ValueError("a bug")))

    assert (ended.outcome, ended.events(StepFailed)) == ("retried", [])


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KeyError("rhyme"), "KeyError: 'rhyme'"),
        (ReplyError(Code.INTERNAL, "the muse is mistaken"), "internal: the muse is mistaken"),
        (TimeoutError(), "TimeoutError"),
        (OSError(28, "No space left on device"), "OSError: [Errno 28] No space left on device"),
        (TemporaryFailure("the ink is frozen"), "the ink is frozen"),
    ],
)
async def test_whatever_it_raises_the_last_time_fails_the_step_or_the_run_would_wait_for_it(
    stage: Stage, error: Exception, reason: str
) -> None:
    poet = Poet(WorkerContext(stage.settings, stage.bus), raising(error))
    poet.attempts = 1
    ended = await stage.ended_by(poet)

    (failed,) = ended.events(StepFailed)
    assert (ended.outcome, failed.reason, failed.retryable) == ("handled", reason, True)


@pytest.mark.parametrize(("error", "times"), [(FileNotFoundError("no paper"), 3), (ConnectionRefusedError("no"), 5)])
async def test_an_outage_is_waited_out_longer_than_a_mistake(stage: Stage, error: Exception, times: int) -> None:
    poets: list[Poet] = []

    def make(context: WorkerContext) -> Poet:
        poets.append(Poet(context, raising(error)))
        poets[0].attempts = 5
        return poets[0]

    async with running(make, settings=stage.settings) as bus, bus.subscribe("process.#", trace=RUN) as events:
        await bus.acting_as("svc.orchestrator").send(stage.order(), to="poet", trace=RUN, step="verse")
        async for event in events:
            if event.type == StepFailed.wire.type:
                break

    assert event.data is not None
    assert (poets[0].made, event.data["reason"]) == (times, f"{type(error).__name__}: {error}")


async def test_a_limit_of_its_own_is_not_that_of_the_step(stage: Stage) -> None:
    async def impatient(_work: StepWork) -> RoleOutput:
        async with asyncio.timeout(0.01):
            await asyncio.Event().wait()
        raise AssertionError("unreachable: it waits for ever")

    _, ended = await stage.ended(impatient)

    assert (ended.outcome, ended.events(StepFailed)) == ("retried", [])


async def test_damaged_data_stop_the_worker(stage: Stage) -> None:
    with pytest.raises(Damaged, match="the desk has burnt"):
        await stage.ended(raising(Damaged("the desk has burnt")))


async def test_what_is_not_text_fails_the_step(stage: Stage) -> None:
    async with open_artifacts(stage.bus, stage.settings) as artifacts:
        image = await artifacts.put(
            b"\x89PNG\r\n\x1a\n\x00", artifact_type="image", content_type="image/png", trace=RUN
        )
    _, ended = await stage.ended(shouted, inputs=[NamedInput(name="picture", artifact=image.ref)])

    (failed,) = ended.events(StepFailed)
    assert failed.reason.startswith("input 'picture'")
    assert not failed.retryable


async def test_it_is_cancelled_at_the_limit_of_the_step(stage: Stage) -> None:
    async def never(_work: StepWork) -> RoleOutput:
        await asyncio.Event().wait()
        raise AssertionError("unreachable: it waits for ever")

    _, ended = await stage.ended(never, timeout_s=0.05)

    (failed,) = ended.events(StepFailed)
    assert (failed.reason, failed.retryable) == ("no result within 0.05 s of work", True)
