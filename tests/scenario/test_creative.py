"""A role at work: orders in, artifacts and events out, with a real storage worker."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agents.configuration.prompts import shipped_role
from agents.models.errors import ModelFailure, ModelRefused, ModelUnavailable, NeedsLanguageModel
from agents.models.language_model import Chunk, LanguageModel, ModelMessage
from agents.present import parse_present
from bus_schema.artifacts import ArtifactRef
from bus_schema.cards import Card, CardStep
from bus_schema.envelope import Envelope
from bus_schema.ids import mint
from bus_schema.messages import message_class
from bus_schema.process import (
    ExecuteStep,
    GetProcess,
    NamedInput,
    StartProcess,
    StepCompleted,
    StepFailed,
    StepPendingStorage,
    StepProgress,
)
from bus_schema.runs import RunStatus
from bus_schema.storage import GetArtifact
from bus_schema.users import PutUser, User
from config.shipped import config_file
from mindbus import Client, ReplyError, Worker, WorkerContext
from mindbus.bus.worker import utc_now
from mindbus.files.packs import read_pack
from mindbus.registry import installed_workers
from mindbus.sdk.artifacts import open_artifacts
from mindbus.testing.deliver import running
from mindbus.testing.wait import until
from tests.assignments import BRIEF
from tests.fleets import fleet_of, settings_for
from tests.installed import FLEET
from tests.writers import CountingModel
from workers.creative import CreativeWorker


@dataclass
class Stage:
    """Storage with one role, and somebody who gives orders."""

    folder: Path
    run_id: str = field(default_factory=lambda: mint("run"))
    heard: list[Any] = field(default_factory=list)
    envelopes: list[Envelope] = field(default_factory=list)
    bus: Client | None = None

    def __post_init__(self) -> None:
        self.settings = settings_for(f"memory://{self.folder}", self.folder, heartbeat_s=0.1)

    @asynccontextmanager
    async def storage(self) -> AsyncIterator[Client]:
        async with running(FLEET["storage"], settings=self.settings, identity="svc.orchestrator") as bus:
            yield bus

    @asynccontextmanager
    async def role(
        self, model: LanguageModel, name: str = "pushkin", clock: Callable[[], datetime] = utc_now
    ) -> AsyncIterator[None]:
        def make(context: WorkerContext) -> Worker:
            return CreativeWorker(replace(context, clock=clock), shipped_role(name), model)

        make.name = name  # type: ignore[attr-defined]  # as a Worker class has one
        async with running(make, settings=self.settings, identity="svc.orchestrator") as bus:
            self.bus = bus
            async with asyncio.TaskGroup() as group:
                listening = asyncio.Event()
                task = group.create_task(self._listen(bus, listening))
                await listening.wait()
                yield
                task.cancel()

    async def _listen(self, bus: Client, listening: asyncio.Event) -> None:
        async with bus.subscribe("process.#", trace=self.run_id) as events:
            listening.set()
            async for envelope in events:
                self.heard.append(message_class(envelope.type).model_validate(envelope.data))
                self.envelopes.append(envelope)

    async def brief(self, content: bytes = BRIEF.encode(), **about: Any) -> ArtifactRef:
        user = self._speaker("user.local")
        async with open_artifacts(user, self.settings) as artifacts:
            put = await artifacts.put(
                content, **{"artifact_type": "brief", "trace": self.run_id, "content_type": "text/markdown", **about}
            )
        assert not put.is_pending
        return put.ref

    async def order(self, *inputs: ArtifactRef, **changes: Any) -> str:
        fields: dict[str, Any] = {
            "run_id": self.run_id,
            "step_id": "draft",
            "attempt": 1,
            "produces": "draft",
            "instructions": "Write the first draft.",
            "inputs": [NamedInput(name="brief", artifact=each) for each in inputs],
            "deadline": datetime.now(UTC) + timedelta(minutes=5),
        }
        command = ExecuteStep.model_validate(fields | changes)
        return await self._speaker("svc.orchestrator").send(command, to="pushkin", trace=self.run_id, step="draft")

    async def ending(self, kind: type[Any], deadline_s: float = 20) -> Any:
        def found() -> Any:
            return next((event for event in self.heard if isinstance(event, kind)), None)

        return await until(found, deadline_s, what=f"{kind.__name__}, heard: {self.heard}")

    def _speaker(self, identity: str) -> Client:
        assert self.bus is not None
        return self.bus.acting_as(identity)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


async def test_a_step_becomes_an_artifact_that_tells_how_it_was_made(stage: Stage) -> None:
    model = CountingModel(rounds=1)
    async with stage.storage() as bus, stage.role(model):
        brief = await stage.brief()
        await stage.order(brief)

        completed = await stage.ending(StepCompleted)

        manifest = await bus.request(GetArtifact(artifact_id=completed.artifact.artifact_id), trace=stage.run_id)
        assert manifest.ref == completed.artifact
        assert (manifest.owner, manifest.step_id, manifest.artifact_type) == ("agent.pushkin", "draft", "draft")
        assert manifest.context == completed.context
        assert completed.context.input_artifacts == (brief.artifact_id,)
        assert completed.context.prompt_version == shipped_role("pushkin").prompt_version
        assert completed.context.model_name == "counting-1"
        assert completed.context.model_params == {"temperature": 0.7, "max_tokens": 4000, "max_rounds": 2}
        assert completed.context.execution_time_ms >= 0
        assert completed.context.model_calls is not None
        assert completed.context.model_calls > 0
        assert completed.context.prompt_tokens is not None
        assert completed.context.price is None, "the table of prices does not have this model"
        place = await bus.request(GetArtifact(artifact_id=manifest.id, presigned=True), trace=stage.run_id)
        assert place.packed is not None
        assert read_pack(stage.folder / "artifacts", place.packed, manifest.sha256, 1) == b"Text 3: revise\n"
    notes = [event.note for event in stage.heard if isinstance(event, StepProgress)]
    assert notes == [
        "first version written, 13 characters",
        "remarks on it: 1",
        "revision 1 written, 14 characters",
        "content with it",
    ]
    assert {envelope.source.split("/")[2] for envelope in stage.envelopes} == {"pushkin"}


async def test_a_role_is_told_the_moment_of_its_order_and_who_has_started_the_run(stage: Stage) -> None:
    model, late = CountingModel(rounds=0), timedelta(minutes=3)
    async with stage.storage() as bus, stage.role(model, clock=lambda: utc_now() + late):
        await bus.acting_as("user.local").request(
            PutUser(user=User(user_id="wei", name="Wei Zhang", zone="Asia/Shanghai", language="en"))
        )
        brief, ordered_at = await stage.brief(), utc_now()
        await stage.order(brief, started_by="user.wei")
        await stage.ending(StepCompleted)

    present = parse_present(model.prompts[0][1].content)
    assert present is not None
    assert (present.name, present.zone) == ("Wei Zhang", "Asia/Shanghai")
    assert abs(present.now - ordered_at) < late / 2


async def test_an_order_that_comes_again_after_a_restart_costs_no_model_call(stage: Stage) -> None:
    async with stage.storage():
        async with stage.role(CountingModel()):
            brief = await stage.brief()
            await stage.order(brief)
            first = await stage.ending(StepCompleted)
            stage.heard.clear()
        model = CountingModel()
        async with stage.role(model):
            await stage.order(brief)

            again = await stage.ending(StepCompleted)

    assert again == first
    assert model.asked == []


async def test_without_storage_the_step_is_pending_and_registered_once_it_is_back(stage: Stage) -> None:
    async with AsyncExitStack() as storage:
        await storage.enter_async_context(stage.storage())
        gone = asyncio.Event()

        async def stop_storage() -> None:
            await storage.aclose()
            gone.set()

        class Slow(CountingModel):
            async def complete(self, *args: Any, **kwargs: Any) -> Any:
                if not self.asked:
                    await stop_storage()
                return await super().complete(*args, **kwargs)

        async with stage.role(Slow(rounds=0)):
            # A limit that ends while what has been made waits in the buffer must not have it made a second time.
            await stage.order(await stage.brief(), timeout_s=5)
            pending = await stage.ending(StepPendingStorage, deadline_s=60)
            assert not any(isinstance(event, StepFailed) for event in stage.heard)
            assert gone.is_set()

            async with stage.storage() as bus:
                manifest = await until(lambda: _registered(bus, pending.artifact, stage.run_id), 30)
                await until(lambda: not list((stage.folder / "buffer").glob("agent.pushkin/*/*.json")))

    assert manifest.ref == pending.artifact


async def _registered(bus: Client, artifact: ArtifactRef, trace: str) -> Any:
    reply = await bus.ask(GetArtifact(artifact_id=artifact.artifact_id), trace=trace)
    command = GetArtifact.wire.result
    return command.model_validate(reply.result) if reply.status == "ok" else None


@pytest.mark.parametrize("failure", [ModelRefused("no such model"), NeedsLanguageModel("not this one")])
async def test_what_asking_again_cannot_mend_fails_the_step_for_good(stage: Stage, failure: ModelFailure) -> None:
    async with stage.storage(), stage.role(CountingModel(before=_raising(failure))):
        await stage.order(await stage.brief())

        failed = await stage.ending(StepFailed)

    assert not failed.retryable
    assert str(failure) in failed.reason


async def test_an_unavailable_model_is_asked_again_then_left_to_another_attempt(stage: Stage) -> None:
    calls: list[int] = []

    def be_away(number: int) -> None:
        calls.append(number)
        raise ModelUnavailable("busy")

    async with stage.storage(), stage.role(CountingModel(before=be_away)):
        await stage.order(await stage.brief())

        failed = await stage.ending(StepFailed)

    assert failed.retryable
    assert len(calls) == CreativeWorker.attempts


async def test_a_model_that_comes_back_goes_on_where_it_stopped(stage: Stage) -> None:
    trouble = iter([ModelUnavailable("busy")])

    def stumble(number: int) -> None:
        if number == 3 and (failure := next(trouble, None)):
            raise failure

    model = CountingModel(rounds=1, before=stumble)
    async with stage.storage(), stage.role(model):
        await stage.order(await stage.brief())
        await stage.ending(StepCompleted)

    assert model.asked == ["write", "self-critique", "revise", "self-critique"]


@pytest.mark.parametrize(
    ("content", "reason"), [(b" \n", "There is nothing in it"), (b"\x89PNG\x00\x01", "It is not text")]
)
async def test_an_unusable_input_fails_the_step_for_good(stage: Stage, content: bytes, reason: str) -> None:
    model = CountingModel()
    async with stage.storage(), stage.role(model):
        await stage.order(await stage.brief(content))

        failed = await stage.ending(StepFailed)

    assert not failed.retryable
    assert reason in failed.reason
    assert model.asked == []


async def test_an_input_of_another_trace_is_not_there_for_the_role(stage: Stage) -> None:
    async with stage.storage(), stage.role(CountingModel()):
        await stage.order(await stage.brief(trace="run_other"))

        failed = await stage.ending(StepFailed)

    assert not failed.retryable
    assert "not yours to read" in failed.reason


async def test_a_deadline_that_has_passed_fails_the_attempt_alone(stage: Stage) -> None:
    model = CountingModel()
    async with stage.storage(), stage.role(model):
        await stage.order(await stage.brief(), deadline=datetime.now(UTC) - timedelta(seconds=1))

        failed = await stage.ending(StepFailed)

    assert failed.retryable
    assert "deadline" in failed.reason
    assert model.asked == []


async def test_a_role_refuses_what_is_not_its_craft(stage: Stage) -> None:
    async with stage.storage(), stage.role(CountingModel()):
        await stage.order(await stage.brief(), produces="critique")

        failed = await stage.ending(StepFailed)

    assert not failed.retryable
    assert "pushkin makes draft, final, not critique" in failed.reason


def _raising(failure: Exception) -> Callable[[int], None]:
    def fail(number: int) -> None:
        raise failure

    return fail


async def test_a_role_of_a_file_of_ones_own_runs_in_a_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config/roles").mkdir(parents=True)
    poet = config_file("roles", "pushkin").content.replace(b"name: pushkin", b"name: poet", 1)
    (tmp_path / "config/roles/poet.yaml").write_bytes(poet)
    monkeypatch.setenv("MINDBUS_CONFIG_DIR", str(tmp_path / "config"))
    settings = settings_for(f"memory://{tmp_path}", tmp_path)
    served = installed_workers().require("poet")
    card = Card(
        name="verse",
        steps=(CardStep(id="verse", role="poet", instructions="Write verse.", produces="draft"),),
        result="verse",
    )
    refused = card.model_copy(update={"steps": (card.steps[0].model_copy(update={"produces": "idea"}),)})
    async with fleet_of(FLEET["storage"], FLEET["orchestrator"], served, settings=settings) as fleet:
        async with open_artifacts(fleet.bus, settings) as artifacts:
            brief = await artifacts.put(
                BRIEF.encode(), artifact_type="brief", trace="run_verse", content_type="text/markdown"
            )
        start = StartProcess(run_id="run_verse", card=card, inputs=(brief.ref,))
        with pytest.raises(ReplyError, match="poet makes draft, final, not idea"):
            await fleet.bus.request(start.model_copy(update={"card": refused, "run_id": "run_no"}), trace="run_no")
        await fleet.bus.request(start, trace="run_verse")

        async def ended() -> Any:
            run = await fleet.bus.request(GetProcess(run_id="run_verse"))
            return run if run.finished_at else None

        run = await until(ended, 30)
        assert run.status is RunStatus.COMPLETED, run.reason
        manifest = await fleet.bus.request(GetArtifact(artifact_id=run.result.artifact_id), trace="run_verse")

    assert manifest.owner == "agent.poet"


class SilentModel(CountingModel):
    """Says nothing for as long as one waits."""

    async def stream(self, messages: Sequence[ModelMessage], **_about: Any) -> AsyncIterator[Chunk]:
        self.asked.append("write")
        await asyncio.Event().wait()
        yield Chunk()


async def test_a_step_whose_model_says_nothing_ends_once_and_says_why(stage: Stage) -> None:
    model = SilentModel()
    async with stage.storage(), stage.role(model):
        await stage.order(await stage.brief(), timeout_s=3)

        failed = await stage.ending(StepFailed)

    assert (failed.reason, failed.retryable) == ("no result within 3 s of work", True)
    assert len(model.asked) == 1
