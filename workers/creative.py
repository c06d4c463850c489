"""Workers of the creative roles: execute the steps of a run."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, nullcontext, suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from agents.configuration.model_roles import model_of, price_of
from agents.configuration.prompts import InvalidRole, Role, UnknownRole, shipped_role
from agents.context.preferences import open_preferences
from agents.creative.assignment import Assignment, Input
from agents.models.language_model import LanguageModel
from agents.models.offline.model import OfflineModel
from agents.models.prompt import Material, PresentModel, memory_materials
from agents.models.recorded import CallRecorder, RecordedModel
from agents.models.remote_agent import RemoteAgentModel
from agents.present import Present
from bus_schema.artifacts import AIContext
from bus_schema.identities import Identity
from bus_schema.ids import derived, mint
from bus_schema.process import (
    ExecuteStep,
    ModelMisbehaved,
    StepCompleted,
    StepPendingStorage,
    StepProgress,
)
from bus_schema.runs import Misbehaviour
from config.settings import FleetSettings
from mindbus.bus.context import current_message, sent_at
from mindbus.bus.handlers import every
from mindbus.bus.worker import WorkerContext
from mindbus.logs import logger
from mindbus.registry import BrokenWorker
from mindbus.sdk.errors import OutOfTime
from mindbus.sdk.recall import KemRecall
from mindbus.sdk.role import RoleOutput, RoleWorker, StepWork
from mindbus.sdk.steps import StepArtifacts
from mindbus.sdk.users import UserDirectory
from mindbus.sql.errors import DatabaseAway
from workers.chat_priority import ChatPriority
from workers.model_calls import ModelCallRecorder

if TYPE_CHECKING:
    from agents.creative.loop import CreativeLoop
    from agents.creative.loop_work import LoopState

_RECALLED_WORDS = 400
_OFFLINE_AT_ONCE = 2
# Seconds before the deadline at which a text is kept as far as it has come, and its share of a short limit.
_LAST_SECONDS, _LAST_SHARE = 5.0, 0.1


class CreativeWorker(RoleWorker):
    """One member of the team; what it is comes from its role's file alone."""

    def __init__(self, context: WorkerContext, role: Role, model: LanguageModel | None = None) -> None:
        settings = context.settings_as(FleetSettings)
        self.name = role.name
        super().__init__(context)
        self.role = role
        self._kit = context
        self._model = model or _model_of(role, settings, ModelCallRecorder(context, role.name))
        self.include(ChatPriority(context.bus, self._model))
        self._recall = KemRecall(self.bus, settings.recall_timeout_s)
        self._users = UserDirectory(context.bus, open_preferences(settings.habits).zone_of)
        self._opened = AsyncExitStack()
        self._loop: CreativeLoop | None = None
        self._opening = asyncio.Lock()
        self._done: list[Assignment] = []
        # An endpoint bounds its calls itself; the offline model computes in this process.
        is_offline = isinstance(self._model, OfflineModel)
        self._thinking = asyncio.Semaphore(_OFFLINE_AT_ONCE) if is_offline else nullcontext()

    async def start(self) -> None:
        """Register what an earlier instance left in the buffer; the memory is opened with the first order."""
        async with AsyncExitStack() as opening:
            opening.push_async_callback(self._model.aclose)
            await super().start()
            opening.push_async_callback(super().stop)
            self._opened = opening.pop_all()
        logger().info("role ready", role=self.name, model=self._model.name)

    async def stop(self) -> None:
        with suppress(DatabaseAway):
            await self.forget_done()
        await self._opened.aclose()

    async def make(self, work: StepWork) -> RoleOutput:
        """Think until there is a text."""
        order = work.order
        self.role.require_craft(order.produces)
        assignment = Assignment(order, tuple(map(Input.of, work.inputs)))
        assignment = replace(assignment, memory=await self._recalled(assignment))
        model = await self._model_in_present(order.started_by)
        async with self._thinking:
            ends_at = work.limit.when()
            until = None if ends_at is None else ends_at - min(_LAST_SECONDS, _LAST_SHARE * work.limit_s)
            try:
                state = await (await self._opened_loop()).run(
                    assignment,
                    partial(self._report, work.order),
                    model,
                    partial(self._report_misbehaviour, work.order),
                    until,
                )
            except TimeoutError as error:
                if until is not None and asyncio.get_running_loop().time() >= until:
                    raise OutOfTime from error
                raise
        logger().info(
            "step thought out", role=self.name, run=work.order.run_id, step=work.order.step_id, **_cost_of(state)
        )
        return RoleOutput(f"{state['text'].strip()}\n".encode(), context=self._context(assignment, state))

    async def complete(self, hands: StepArtifacts, limit_s: float) -> StepCompleted | StepPendingStorage:
        ending = await super().complete(hands, limit_s)
        self._done.append(Assignment(hands.order, ()))
        return ending

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
            forgotten = await memory.forget_before(self.clock() - KEPT)
            self._opened.push_async_callback(opening.pop_all().aclose)
        logger().info("role has its memory", role=self.name, forgotten_threads=forgotten)
        return CreativeLoop(self.role, self._model, memory)

    async def _model_in_present(self, started_by: Identity | None) -> LanguageModel:
        """The model, told the moment of the order and who has started the run, where that is a person.

        An order that comes again after a crash asks the same: the time that passed meanwhile changes no prompt.
        """
        kind, _, user_id = (started_by or "").partition(".")
        if kind != "user":
            return self._model
        return PresentModel(self._model, Present.of(await self._users.of(user_id), sent_at(self.clock)))

    async def _recalled(self, assignment: Assignment) -> tuple[Material, ...]:
        """Material from memory, as far as the run's starter may read it; none where the card asks for none."""
        started_by = assignment.order.started_by
        if started_by is None or not (self.role.remembers and assignment.order.memory):
            return ()
        return memory_materials(await self._recall.about(assignment.question, started_by), _RECALLED_WORDS)

    async def _report(self, order: ExecuteStep, note: str) -> None:
        progress = StepProgress(run_id=order.run_id, step_id=order.step_id, attempt=order.attempt, note=note)
        await self.tell(order, progress, f"progress/{note}")

    async def _report_misbehaviour(self, order: ExecuteStep, misbehaviour: Misbehaviour) -> None:
        event = ModelMisbehaved(
            run_id=order.run_id, step_id=order.step_id, attempt=order.attempt, misbehaviour=misbehaviour
        )
        logger().warning("model misbehaved", role=self.name, run=order.run_id, kind=misbehaviour.kind.value)
        await self.tell(order, event)

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


def _cost_of(state: "LoopState") -> dict[str, int]:
    tokens = {"prompt_tokens": state["prompt_tokens"], "completion_tokens": state["completion_tokens"]}
    return {"rounds": state["rounds"], "model_calls": state["calls"], **tokens, "took_ms": state["took_ms"]}


def _model_of(role: Role, settings: FleetSettings, recorder: CallRecorder) -> LanguageModel:
    """The model of a role, or the agent elsewhere that plays it."""
    if role.a2a is None:
        return model_of(settings, role.name, recorder, streams=True)
    return RecordedModel(RemoteAgentModel(role.a2a, _id_of_message), recorder)


def _id_of_message(text: str) -> str:
    """Id of a message to an agent elsewhere: of one order, delivered again, it is the same."""
    at_hand = current_message()
    return derived(at_hand.message_id, text) if at_hand else mint("msg")
