"""Workers of the creative roles: execute the steps of a run."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, nullcontext, suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from agents.configuration.model_roles import model_of, price_of
from agents.configuration.prompts import InvalidRole, Role, UnknownRole, UnsupportedArtifactType, shipped_role
from agents.context.preferences import open_preferences
from agents.creative.assignment import LARGEST_INPUT_BYTES, Assignment, Input, UnusableInput, read_material
from agents.creative.misbehaviour import ModelMisbehaviour
from agents.models.errors import ModelFailure, ModelUnavailable
from agents.models.language_model import LanguageModel
from agents.models.offline.model import OfflineModel
from agents.models.prompt import Material, PresentModel, memory_materials
from agents.models.recorded import RecordedModel, Report
from agents.models.remote_agent import RemoteAgentModel
from agents.present import Present
from bus_schema.artifacts import AIContext, Manifest
from bus_schema.identities import Identity
from bus_schema.ids import derived, mint
from bus_schema.process import (
    ExecuteStep,
    ModelMisbehaved,
    NamedInput,
    StepBegun,
    StepCompleted,
    StepEvent,
    StepFailed,
    StepPendingStorage,
    StepProgress,
)
from bus_schema.runs import Misbehaviour
from config.settings import FleetSettings
from mindbus.bus.context import MessageContext, current_message
from mindbus.bus.handlers import every, on_command
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.errors import BusUnavailable, TemporaryFailure
from mindbus.logs import logger
from mindbus.registry import BrokenWorker
from mindbus.sdk.artifacts import open_artifacts
from mindbus.sdk.errors import ArtifactError, BufferFull
from mindbus.sdk.recall import KemRecall
from mindbus.sdk.requests import in_id_scope
from mindbus.sdk.steps import StepArtifacts
from mindbus.sdk.users import UserDirectory
from mindbus.sql.errors import DatabaseAway
from mindbus.tasks import running
from workers.chat_priority import ChatPriority
from workers.model_calls import record_calls

if TYPE_CHECKING:
    from agents.creative.loop import CreativeLoop
    from agents.creative.loop_work import LoopState

_RECALLED_WORDS = 400
_OFFLINE_AT_ONCE = 2
# Seconds before the deadline at which a text is kept as far as it has come, and its share of a short limit.
_LAST_SECONDS, _LAST_SHARE = 5.0, 0.1
# Whoever is done sooner need not tell that they have begun.
_TOLD_AFTER_S = 1.0
_FINAL = (ModelFailure, UnusableInput, UnsupportedArtifactType, ArtifactError)


class CreativeWorker(Worker):
    """One member of the team; what it is comes from its role's file alone."""

    concurrency = 8
    attempts = 4
    # A step may call a slow model many times.
    time_limit_s = 3600

    def __init__(self, context: WorkerContext, role: Role, model: LanguageModel | None = None) -> None:
        settings = context.settings_as(FleetSettings)
        self.name = role.name
        self.role = role
        self._kit = context
        self._model = model or _model_of(role, settings, record_calls(context, role.name))
        self.include(ChatPriority(context.bus, self._model))
        self._bus = context.bus.acting_as(self.identity, service=role.name)
        self._artifacts = open_artifacts(self._bus, settings, context.clock)
        self._recall = KemRecall(self._bus, settings.recall_timeout_s)
        self._users = UserDirectory(context.bus, open_preferences(settings.habits).zone_of)
        self._opened = AsyncExitStack()
        self._loop: CreativeLoop | None = None
        self._opening = asyncio.Lock()
        self._done: list[Assignment] = []
        # An endpoint bounds its calls itself; the offline model computes in this process.
        is_offline = isinstance(self._model, OfflineModel)
        self._thinking = asyncio.Semaphore(_OFFLINE_AT_ONCE) if is_offline else nullcontext()

    @property
    def identity(self) -> str:
        return f"agent.{self.name}"

    async def start(self) -> None:
        """Register what an earlier instance left in the buffer; the memory is opened with the first order."""
        async with AsyncExitStack() as opening:
            opening.push_async_callback(self._model.aclose)
            await opening.enter_async_context(self._artifacts)
            self._opened = opening.pop_all()
        logger().info("role ready", role=self.name, model=self._model.name)

    async def stop(self) -> None:
        with suppress(DatabaseAway):
            await self.forget_done()
        await self._opened.aclose()

    @on_command
    async def execute(
        self, order: ExecuteStep, context: MessageContext
    ) -> StepCompleted | StepPendingStorage | StepFailed:
        """Think until there is an artifact, or a reason why not; the orchestrator decides about another attempt."""
        left_s = (context.on_own_clock(order.deadline) - self._kit.clock()).total_seconds()
        limit_s = min(left_s, order.timeout_s or left_s)
        try:
            async with asyncio.timeout(limit_s) as limit, running(self._tell_of_work(order), "tell of work"):
                return await self._execute(order, StepArtifacts(self._artifacts, order, limit), limit_s)
        except TimeoutError:
            return _failed(order, _late(order), retryable=True)
        except BufferFull as error:
            return _failed(order, str(error), retryable=True)
        except (ModelUnavailable, OSError, DatabaseAway) as error:
            return self._later(order, context, error)
        except ModelMisbehaviour as error:
            return _failed(order, str(error), retryable=True)
        except _FINAL as error:
            return _failed(order, str(error), retryable=False)

    async def _tell_of_work(self, order: ExecuteStep) -> None:
        await asyncio.sleep(_TOLD_AFTER_S)
        begun = StepBegun(run_id=order.run_id, step_id=order.step_id, attempt=order.attempt)
        await self._publish(order, begun, None)

    async def _execute(
        self, order: ExecuteStep, hands: StepArtifacts, limit_s: float
    ) -> StepCompleted | StepPendingStorage:
        self.role.require_craft(order.produces)
        # Asked before anything is state: a model answers differently each time, but an attempt has one artifact.
        found = await hands.find()
        if found.made is not None:
            return hands.ending(found.made)
        await self._artifacts.wait_for_room()
        manifests = [found.require(each.artifact.artifact_id) for each in order.inputs]
        inputs = await asyncio.gather(*map(partial(_input, hands), order.inputs, manifests))
        assignment = Assignment(order, inputs)
        assignment = replace(assignment, memory=await self._recalled(assignment))
        model = await self._model_in_present(order.started_by)
        async with self._thinking:
            ends_at = hands.limit.when() if hands.limit else None
            until = None if ends_at is None else ends_at - min(_LAST_SECONDS, _LAST_SHARE * limit_s)
            state = await (await self._opened_loop()).run(
                assignment, partial(self._report, order), model, partial(self._report_misbehaviour, order), until
            )
        text = f"{state['text'].strip()}\n"
        made = await hands.put(text.encode(), "text/markdown", self._context(assignment, state))
        logger().info("step made", role=self.name, run=order.run_id, step=order.step_id, **_cost_of(state))
        self._done.append(replace(assignment, inputs=(), memory=()))
        return hands.ending(made)

    @every(seconds=2)
    async def forget_done(self) -> None:
        """Delete the checkpoints of steps whose artifacts are safe, in one commit."""
        if self._loop is not None:
            done, self._done = self._done, []
            await asyncio.gather(*map(self._loop.forget, done))

    async def _opened_loop(self) -> "CreativeLoop":
        """The loop over its memory. Raises DatabaseAway."""
        async with self._opening:
            if self._loop is None:
                self._loop = await self._open_loop()
            return self._loop

    async def _open_loop(self) -> "CreativeLoop":
        # Imported here: LangGraph weighs 25 MB and takes half a second, off the event loop.
        await asyncio.to_thread(import_module, "workers.checkpoints")
        from agents.creative.loop import CreativeLoop
        from workers.checkpoints import KEPT, open_checkpoints

        database_url = self._kit.settings_as(FleetSettings).database_of(self.name)
        async with AsyncExitStack() as opening:
            memory = await opening.enter_async_context(open_checkpoints(database_url, self.name))
            forgotten = await memory.forget_before(self._kit.clock() - KEPT)
            self._opened.push_async_callback(opening.pop_all().aclose)
        logger().info("role has its memory", role=self.name, forgotten_threads=forgotten)
        return CreativeLoop(self.role, self._model, memory)

    async def _model_in_present(self, started_by: Identity | None) -> LanguageModel:
        """The model, told the date and who has started the run, where that is a person."""
        kind, _, user_id = (started_by or "").partition(".")
        if kind != "user":
            return self._model
        return PresentModel(self._model, Present.of(await self._users.of(user_id), self._kit.clock()))

    async def _recalled(self, assignment: Assignment) -> tuple[Material, ...]:
        """Material from memory, as far as the run's starter may read it; none where the card asks for none."""
        started_by = assignment.order.started_by
        if started_by is None or not (self.role.remembers and assignment.order.memory):
            return ()
        return memory_materials(await self._recall.about(assignment.question, started_by), _RECALLED_WORDS)

    def _later(self, order: ExecuteStep, context: MessageContext, error: Exception) -> StepFailed:
        """Keep the attempt, whose thoughts so far are paid for; the last time, leave it to the orchestrator."""
        if context.attempt < self.attempts:
            raise TemporaryFailure(str(error), getattr(error, "delay", None)) from error
        return _failed(order, str(error), retryable=True)

    async def _report(self, order: ExecuteStep, note: str) -> None:
        progress = StepProgress(run_id=order.run_id, step_id=order.step_id, attempt=order.attempt, note=note)
        await self._publish(order, progress, f"progress/{note}")

    async def _report_misbehaviour(self, order: ExecuteStep, misbehaviour: Misbehaviour) -> None:
        event = ModelMisbehaved(
            run_id=order.run_id, step_id=order.step_id, attempt=order.attempt, misbehaviour=misbehaviour
        )
        logger().warning("model misbehaved", role=self.name, run=order.run_id, kind=misbehaviour.kind.value)
        await self._publish(order, event, None)

    async def _publish(self, order: ExecuteStep, event: StepEvent, scope: str | None) -> None:
        try:
            await in_id_scope(scope, lambda: self._bus.publish(event, trace=order.run_id, step=order.step_id))
        except BusUnavailable as error:
            logger().warning("event not told", role=self.name, event_type=event.wire.type, reason=str(error))

    def _context(self, assignment: Assignment, state: "LoopState") -> AIContext:
        return AIContext(
            prompt_version=self.role.prompt_version,
            model_name=self._model.name,
            model_params=self.role.model.model_dump(exclude_none=True) | {"max_rounds": self.role.max_rounds},
            input_artifacts=tuple(dict.fromkeys(each.manifest.id for each in assignment.inputs)),
            input_kems=tuple(state.get("recalled", ())),
            execution_time_ms=state["took_ms"],
            model_calls=state["calls"],
            prompt_tokens=state["prompt_tokens"],
            completion_tokens=state["completion_tokens"],
            price=price_of(self._model.name, state["prompt_tokens"], state["completion_tokens"]),
            values={"satisfied": state["is_content"]} if "is_content" in state else {},
        )


def _worker_of(role: str) -> Callable[[WorkerContext], CreativeWorker]:
    return lambda context: CreativeWorker(context, shipped_role(role))


researcher, ideator, critic, editor, pushkin = map(_worker_of, ("researcher", "ideator", "critic", "editor", "pushkin"))


def __getattr__(name: str) -> Callable[[WorkerContext], CreativeWorker]:
    """The factory of a role that the operator has added, as its entry point names it. Raises BrokenWorker."""
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        shipped_role(name)
    except UnknownRole as error:
        raise AttributeError(name) from error
    except InvalidRole as error:
        raise BrokenWorker(str(error)) from error
    return _worker_of(name)


async def _input(hands: StepArtifacts, given: NamedInput, manifest: Manifest) -> Input:
    content = await hands.read(manifest, LARGEST_INPUT_BYTES)
    return Input(given.name, manifest, read_material(given.name, manifest, content))


def _cost_of(state: "LoopState") -> dict[str, int]:
    tokens = {"prompt_tokens": state["prompt_tokens"], "completion_tokens": state["completion_tokens"]}
    return {"rounds": state["rounds"], "model_calls": state["calls"], **tokens, "took_ms": state["took_ms"]}


def _failed(order: ExecuteStep, reason: str, *, retryable: bool) -> StepFailed:
    return StepFailed(
        run_id=order.run_id, step_id=order.step_id, attempt=order.attempt, retryable=retryable, reason=reason
    )


def _late(order: ExecuteStep) -> str:
    return f"no result within {order.timeout_s:g} s of work" if order.timeout_s else "its deadline has passed"


def _model_of(role: Role, settings: FleetSettings, report: Report) -> LanguageModel:
    """The model of a role, or the agent elsewhere that plays it."""
    if role.a2a is None:
        return model_of(settings, role.name, report, streams=True)
    return RecordedModel(RemoteAgentModel(role.a2a, _id_of_message), report)


def _id_of_message(text: str) -> str:
    """Id of a message to an agent elsewhere: of one order, delivered again, it is the same."""
    at_hand = current_message()
    return derived(at_hand.message_id, text) if at_hand else mint("msg")
