"""Moves of runs in the database, and control by people: cancel, pause, retry, approve, put an output in place."""

import asyncio
import operator
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial, reduce
from pathlib import Path

from sqlalchemy import Connection

from agents.processes import saga
from agents.processes.card_checks import Roles
from agents.processes.cards import card_heads
from agents.processes.cost import cost_lines
from agents.processes.graph import as_mermaid
from agents.processes.orders import role_of
from agents.processes.run_events import (
    OVER,
    ApprovalGiven,
    CancelRequested,
    ControlRequest,
    OutputGiven,
    PauseRequested,
    ResumeRequested,
    RetryRequested,
    RunEvent,
    Transition,
)
from bus_schema.cards import Cards, ListCards
from bus_schema.identities import user_of
from bus_schema.process import CancelProcess, ListProcesses, Started, StartProcess
from bus_schema.replies import Code
from bus_schema.run_control import (
    ApproveStep,
    Costs,
    GetCosts,
    GetRunGraph,
    PauseProcess,
    RejectStep,
    ReplaceOutput,
    RerunProcess,
    ResumeProcess,
    RetryProcess,
    RunGraph,
)
from bus_schema.runs import Run, RunStatus, Spent
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import Publish, Send, on_command
from mindbus.errors import Rejected, TemporaryFailure
from mindbus.logs import logger
from mindbus.sql.database import Database
from storage_service import runs
from storage_service.quotas import EVERYBODY, tokens_used
from workers.run_artifacts import LookUp

Sent = Sequence[Send | Publish]
_SOON = timedelta(seconds=1)


@dataclass(frozen=True)
class OrchestratorRules:
    """Rules by which it goes: the time before anything is called late, heartbeats, tokens of each person and of all."""

    # What ended while nobody listened lies in the queue: it is heard first.
    settle: timedelta = timedelta(seconds=5)
    heartbeat_s: float = 5
    tokens_per_day: int = 0
    quota_tokens_per_day: int = 0
    # It is there until all orders have been sent again to a broker that has never had them.
    orders_lost: Path | None = None


@dataclass(frozen=True)
class RunMoves:
    """Applies events to runs in the database."""

    database: Database
    clock: Callable[[], datetime]
    rules: OrchestratorRules

    async def move_all(self, events: Iterable[tuple[str, RunEvent | None]]) -> Sent:
        moves = [await self.move(run_id, event) for run_id, event in events if event is not None]
        return [message for transition in moves if transition is not None for message in messages_of(transition)]

    async def move(self, run_id: str, event: RunEvent, by: str = "") -> Transition | None:
        return await self.database.run(lambda connection: self._advanced(connection, run_id, event, by))

    def _advanced(self, connection: Connection, run_id: str, event: RunEvent, by: str) -> Transition | None:
        stored = runs.run_to_change(connection, run_id)
        if stored is None:
            logger().info("unknown run", run_id=run_id, event_type=type(event).__name__)
            return None
        if not saga.may_come_from(by, event, stored.run):
            logger().warning("ending of a step by another than its role", run_id=run_id, by=by)
            return None
        left = self._tokens_left(connection, stored.run)
        transition = saga.advance(stored.card, stored.run, event, self.clock(), left)
        if transition.run != stored.run:
            runs.save_run(connection, stored, transition.run)
        if transition.run.status in OVER and stored.run.status not in OVER:
            logger().info("run over", run_id=run_id, status=transition.run.status.value, reason=transition.run.reason)
        return transition

    def _tokens_left(self, connection: Connection, run: Run) -> saga.TokensLeft:
        day = self.clock().date().isoformat()

        def left(bound: int, identity: str) -> int | None:
            return bound - tokens_used(connection, identity, day) if bound else None

        of_starter = 0 if run.is_budget_free else self.rules.tokens_per_day
        return saga.TokensLeft(left(of_starter, run.started_by), left(self.rules.quota_tokens_per_day, EVERYBODY))


def takes_part(run: Run, context: MessageContext) -> bool:
    """Whether somebody may see a run: operators, its starter, its roles."""
    return context.is_operator or context.owner in saga.members_of(run)


def messages_of(transition: Transition) -> Sent:
    run_id = transition.run.run_id
    roles = ((order, role_of(transition.run, order)) for order in transition.orders)
    orders = [Send(order, role, trace=run_id, step=order.step_id, attempt=order.attempt) for order, role in roles]
    return *orders, *(Publish(each, trace=run_id, step=getattr(each, "step_id", None)) for each in transition.events)


@contextmanager
def one_after_another() -> Iterator[None]:
    try:
        yield
    except runs.RunChangedMeanwhile as error:
        raise TemporaryFailure(f"{error} changed at the same time", _SOON) from error


_PAGE, _MOST_RUNS = 100, 5_000
Answered = tuple[Run | Send | Publish, ...]


@dataclass(frozen=True)
class RunControl:
    """Commands to runs that are there. Whoever sees a run may cancel it; the rest is its starter's, and operators'."""

    database: Database
    moves: RunMoves
    look_up: LookUp
    add: Callable[[StartProcess, MessageContext], Awaitable[Started]]
    roles: Roles

    @on_command
    async def list_cards(self, query: ListCards) -> Cards:
        return await asyncio.to_thread(card_heads, self.roles)

    @on_command
    async def draw_run(self, query: GetRunGraph, context: MessageContext) -> RunGraph:
        run = await self._require_visible(query.run_id, context)
        card = await self.database.read(lambda connection: runs.read_card(connection, query.run_id))
        if card is None:
            raise _unknown(query.run_id)
        return RunGraph(card=card, mermaid=as_mermaid(card, run))

    @on_command
    async def add_up(self, query: GetCosts, context: MessageContext) -> Costs:
        if query.run_id is not None:
            found, is_all = [await self._require_visible(query.run_id, context)], True
        else:
            found, is_all = await self._runs_since(query.since, None if context.is_operator else context.owner)
        lines = cost_lines(found, query.by)
        total = reduce(operator.add, (line.spent for line in lines), Spent())
        return Costs(lines=lines, total=total, is_all=is_all)

    async def _runs_since(self, since: datetime | None, started_by: str | None) -> tuple[list[Run], bool]:
        found: list[Run] = []
        listed = ListProcesses(limit=_PAGE)
        while len(found) < _MOST_RUNS:
            page = await self.database.read(partial(runs.list_runs, listed=listed, started_by=started_by))
            new = [run for run in page.items if since is None or run.started_at >= since]
            found += new
            if page.next_cursor is None or len(new) < len(page.items):
                return found, True
            listed = listed.model_copy(update={"cursor": page.next_cursor})
        return found, False

    @on_command
    async def cancel_run(self, command: CancelProcess, context: MessageContext) -> Answered:
        await self._require_visible(command.run_id, context)
        answer = await self._move(command.run_id, CancelRequested(command.reason, context.owner), context)
        if isinstance(answer[0], Run) and answer[0].status is not RunStatus.CANCELLED:
            raise Rejected(Code.CONFLICT, f"{command.run_id} is {answer[0].status.value} already")
        return answer

    @on_command
    async def pause_run(self, command: PauseProcess, context: MessageContext) -> Answered:
        return await self._control(command.run_id, PauseRequested(command.reason, context.owner), context)

    @on_command
    async def resume_run(self, command: ResumeProcess, context: MessageContext) -> Answered:
        return await self._control(command.run_id, ResumeRequested(context.owner, context.is_operator), context)

    @on_command
    async def retry_run(self, command: RetryProcess, context: MessageContext) -> Answered:
        return await self._control(command.run_id, RetryRequested(command.from_step, context.owner), context)

    @on_command
    async def rerun(self, command: RerunProcess, context: MessageContext) -> Started:
        run = await self._require_visible(command.of_run, context)
        card = await self.database.read(lambda connection: runs.read_card(connection, command.of_run))
        params = run.params | command.params
        start = StartProcess(run_id=command.run_id, card=card, inputs=run.inputs, params=params)
        return await self.add(start, context)

    @on_command
    async def replace_output(self, command: ReplaceOutput, context: MessageContext) -> Answered:
        await self._require_controlled(command.run_id, context)
        found = await self.look_up(command.run_id, command.artifact.artifact_id)
        if isinstance(found, Code) and found is not Code.NOT_FOUND:
            raise TemporaryFailure(f"storage does not say whether it has {command.artifact.artifact_id}")
        if isinstance(found, Code) or found.ref != command.artifact or found.trace_id != command.run_id:
            raise Rejected(Code.INVALID, f"{command.artifact.artifact_id} is no artifact of {command.run_id}")
        given = OutputGiven(command.step_id, found.ref, context.owner, found.context)
        return await self._move(command.run_id, given, context)

    @on_command
    async def approve(self, command: ApproveStep, context: MessageContext) -> Answered:
        return await self._answer(command, context, approved=True)

    @on_command
    async def reject(self, command: RejectStep, context: MessageContext) -> Answered:
        return await self._answer(command, context, approved=False)

    async def _answer(self, command: ApproveStep | RejectStep, context: MessageContext, *, approved: bool) -> Answered:
        if user_of(context.owner) is None:
            raise Rejected(Code.UNAUTHORIZED, "people approve, not agents")
        given = ApprovalGiven(command.step_id, approved, command.note, context.owner)
        return await self._control(command.run_id, given, context)

    async def _control(self, run_id: str, request: ControlRequest, context: MessageContext) -> Answered:
        await self._require_controlled(run_id, context)
        return await self._move(run_id, request, context)

    async def _move(self, run_id: str, request: ControlRequest | CancelRequested, context: MessageContext) -> Answered:
        context.begin_anew()
        with one_after_another():
            transition = await self.moves.move(run_id, request)
        if transition is None:
            raise _unknown(run_id)
        return (transition.run, *messages_of(transition))

    async def _require_controlled(self, run_id: str, context: MessageContext) -> None:
        run = await self._require_visible(run_id, context)
        if not (context.is_operator or context.owner == run.started_by):
            raise Rejected(
                Code.UNAUTHORIZED, f"{run_id} is steered by {run.started_by}, who has started it, and operators"
            )

    async def _require_visible(self, run_id: str, context: MessageContext) -> Run:
        run = await self.database.read(lambda connection: runs.read_run(connection, run_id))
        if run is None or not takes_part(run, context):
            raise _unknown(run_id, is_denied=run is not None)
        return run


def _unknown(run_id: str, *, is_denied: bool = False) -> Rejected:
    return Rejected(Code.NOT_FOUND, f"there is no run {run_id}", is_denied=is_denied)
