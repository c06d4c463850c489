"""Workers that play a role in runs: the base class, and the step that one is given."""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from email.message import Message as MimeMessage

from bus_schema.artifacts import AIContext, Manifest
from bus_schema.process import (
    ExecuteStep,
    GetProcess,
    NamedInput,
    StepBegun,
    StepCompleted,
    StepEvent,
    StepFailed,
    StepPendingStorage,
)
from bus_schema.replies import Code
from bus_schema.runs import StepStatus
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import on_command
from mindbus.bus.outcomes import is_bug, may_try_again
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.errors import (
    BusUnavailable,
    Damaged,
    Ending,
    MindBusError,
    OutOfTokens,
    PermanentFailure,
    Rejected,
    ReplyError,
)
from mindbus.logs import logger
from mindbus.redaction import without_secrets
from mindbus.sdk.artifacts import open_artifacts
from mindbus.sdk.errors import BufferFull, OutOfTime
from mindbus.sdk.requests import in_id_scope
from mindbus.sdk.steps import StepArtifacts
from mindbus.tasks import running

# Whoever is done sooner need not tell that they have begun.
_TOLD_AFTER_S = 1.0
# Far longer than an order is on its way to a role that is free.
_MAY_BE_OVER_AFTER = timedelta(seconds=5)
_ASK_WITHIN_S = 5.0
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")


class UnusableInput(Rejected, ValueError):
    """A role cannot work with this input, however often it tries."""

    def __init__(self, name: str, manifest: Manifest, detail: str = "") -> None:
        about = f"input {name!r} ({manifest.id}, {manifest.content_type})"
        super().__init__(message=f"{about}: {type(self).__doc__}{detail and f' ({detail})'}")


class InputEmpty(UnusableInput):
    """There is nothing in it; give it some text."""


class InputNotText(UnusableInput):
    """It is not text; give text in UTF-8, or name its charset in the content type."""


@dataclass(frozen=True)
class StepInput:
    """An artifact that the card gave to a step under a name."""

    name: str
    manifest: Manifest
    content: bytes

    def text(self) -> str:
        """The content as text, with line feeds. Raises UnusableInput."""
        try:
            text = self.content.decode(_charset_of(self.manifest.content_type))
        except (UnicodeDecodeError, LookupError) as error:
            raise InputNotText(self.name, self.manifest, str(error)) from error
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if _CONTROL.search(text):
            raise InputNotText(self.name, self.manifest, "it has control characters")
        if not text.strip("\ufeff \t\n\f"):
            raise InputEmpty(self.name, self.manifest)
        return text


@dataclass(frozen=True)
class StepWork:
    """One attempt of a step: the order and its inputs; the work is cancelled after `limit_s` of `limit`."""

    order: ExecuteStep
    inputs: Sequence[StepInput]
    attempt_id: str
    limit: asyncio.Timeout
    limit_s: float


@dataclass(frozen=True)
class RoleOutput:
    """Content of the artifact that a step makes."""

    content: bytes
    content_type: str = "text/markdown"
    context: AIContext = field(default_factory=AIContext)


class RoleWorker(Worker, ABC):
    """A worker that makes artifacts of the types it `produces` of the steps of cards, in its method `make`.

    An attempt has one artifact, however often it is delivered: one that has been made is not made again. `make` is
    cancelled at the step's limit, which stands still while storage is away.
    """

    attempts = 4
    # Far beyond what any model reads at once, far below what would hurt this process.
    largest_input_bytes = 1024 * 1024
    # A step may call a slow model many times.
    time_limit_s = 3600

    def __init__(self, context: WorkerContext) -> None:
        self.bus = context.bus.acting_as(self.identity, service=self.name)
        self.settings, self.clock = context.settings, context.clock
        self.artifacts = open_artifacts(self.bus, context.settings, context.clock)

    @abstractmethod
    async def make(self, work: StepWork) -> RoleOutput:
        """The output of a step.

        After a TemporaryFailure it is called again; Rejected and PermanentFailure fail the step with what they say.
        After any other exception it is called again, too; the last time it fails this attempt of the step.
        """

    @property
    def identity(self) -> str:
        """Identity of an agent, not of a service."""
        return f"agent.{self.name}"

    async def start(self) -> None:
        """Register what an earlier instance left in the buffer."""
        await self.artifacts.start()

    async def stop(self) -> None:
        await self.artifacts.stop()

    @on_command
    async def execute(
        self, order: ExecuteStep, context: MessageContext
    ) -> StepCompleted | StepPendingStorage | StepFailed | None:
        """Work until there is an artifact, or a reason why not; the orchestrator decides about another attempt."""
        if await self._is_over(order, context):
            logger().info("order of an attempt that is over", role=self.name, run=order.run_id, step=order.step_id)
            return None
        left_s = (context.on_own_clock(order.deadline) - self.clock()).total_seconds()
        limit_s = min(left_s, order.timeout_s or left_s)
        hands = StepArtifacts(self.artifacts, order)
        limit = asyncio.timeout(limit_s)
        try:
            async with limit, running(self._tell_of_work(order), "tell of work"):
                return await self.complete(replace(hands, limit=limit), limit_s)
        except Exception as error:  # noqa: BLE001  # whatever happens, the run is to go on, or to end
            return self._ending(error, hands, context, is_late=limit.expired())

    async def complete(self, hands: StepArtifacts, limit_s: float) -> StepCompleted | StepPendingStorage:
        """Make the attempt's artifact, unless it has been made."""
        # Asked before anything else: a model answers differently each time, but an attempt has one artifact.
        found = await hands.find()
        if found.made is not None:
            return hands.ending(found.made)
        await self.artifacts.wait_for_room()
        manifests = [found.require(each.artifact.artifact_id) for each in hands.order.inputs]
        given = zip(hands.order.inputs, manifests, strict=True)
        inputs = await asyncio.gather(*(self._read(hands, *each) for each in given))
        assert hands.limit is not None
        made = await self.make(StepWork(hands.order, inputs, hands.artifact_id, hands.limit, limit_s))
        return hands.ending(await hands.put(made.content, made.content_type, made.context))

    async def tell(self, order: ExecuteStep, event: StepEvent, scope: str | None = None) -> None:
        """Publish an event about the work on a step, of one id in a `scope`; while the bus is away, nobody is told."""
        try:
            await in_id_scope(scope, lambda: self.bus.publish(event, trace=order.run_id, step=order.step_id))
        except BusUnavailable as error:
            logger().warning("event not told", role=self.name, event_type=event.wire.type, reason=str(error))

    async def _is_over(self, order: ExecuteStep, context: MessageContext) -> bool:
        """Whether the step goes on without this attempt; only an order that has waited, or comes again, is so old."""
        if self.clock() - context.on_own_clock(context.envelope.time) < _MAY_BE_OVER_AFTER:
            return False
        try:
            run = await self.bus.request(GetProcess(run_id=order.run_id), trace=order.run_id, timeout_s=_ASK_WITHIN_S)
        except ReplyError as error:
            return error.code is Code.NOT_FOUND
        except BusUnavailable:
            return False
        step = next((step for step in run.steps if step.step_id == order.step_id), None)
        return step is None or step.attempt != order.attempt or step.status is not StepStatus.RUNNING

    async def _read(self, hands: StepArtifacts, given: NamedInput, manifest: Manifest) -> StepInput:
        return StepInput(given.name, manifest, await hands.read(manifest, self.largest_input_bytes))

    async def _tell_of_work(self, order: ExecuteStep) -> None:
        await asyncio.sleep(_TOLD_AFTER_S)
        await self.tell(order, StepBegun(run_id=order.run_id, step_id=order.step_id, attempt=order.attempt))

    def _ending(
        self, error: Exception, hands: StepArtifacts, context: MessageContext, *, is_late: bool
    ) -> StepPendingStorage | StepFailed:
        """How an attempt ends that has raised; what may pass by itself is raised again, to be tried once more.

        The last time it is left to the orchestrator, with the work so far, which is paid for.
        """
        order = hands.order
        if isinstance(error, OutOfTime) or (is_late and isinstance(error, TimeoutError)):
            return hands.kept() or _failed(order, _late(order), retryable=True)
        match error:
            case BufferFull():
                return _failed(order, str(error), retryable=True)
            case Damaged():
                raise error
            case MindBusError() if error.ending is not Ending.RETRY:
                retryable = error.retryable and not isinstance(error, PermanentFailure)
                return _failed(order, str(error), retryable=retryable, quota_spent=isinstance(error, OutOfTokens))
        if may_try_again(error, context.attempt, self.attempts, self.clock(), None):
            raise error
        if is_bug(error):
            logger().error("step failed", role=self.name, run=order.run_id, step=order.step_id, exc_info=error)
        return hands.kept() or _failed(order, _reason(error), retryable=True)


def _failed(order: ExecuteStep, reason: str, *, retryable: bool, quota_spent: bool = False) -> StepFailed:
    return StepFailed(
        run_id=order.run_id,
        step_id=order.step_id,
        attempt=order.attempt,
        retryable=retryable,
        reason=reason,
        quota_spent=quota_spent,
    )


def _reason(error: Exception) -> str:
    said = without_secrets(str(error))
    return said if isinstance(error, MindBusError) else f"{type(error).__name__}: {said}".removesuffix(": ")


def _late(order: ExecuteStep) -> str:
    return f"no result within {order.timeout_s:g} s of work" if order.timeout_s else "its deadline has passed"


def _charset_of(content_type: str) -> str:
    header = MimeMessage()
    header["Content-Type"] = content_type
    charset = str(header.get_content_charset("utf-8"))
    return "utf-8-sig" if charset in ("utf-8", "utf8", "us-ascii") else charset
