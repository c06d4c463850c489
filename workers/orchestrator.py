"""Runs Process Cards: what happens to a run comes in, orders to the roles go out."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import Connection

from agents.configuration.prompts import crafts_of_roles
from agents.processes import saga
from agents.processes.card_checks import Roles
from agents.processes.cards import card_of
from agents.processes.run_events import (
    OVER,
    ArtifactFound,
    CancelRequested,
    ClockHeld,
    MembersConfirmed,
    MembersRefused,
    RunEvent,
    TimePassed,
)
from agents.processes.steps import checked_ending
from bus_schema.artifacts import Manifest
from bus_schema.data import ClearData, DeleteUser, Removed
from bus_schema.identities import worker_of
from bus_schema.process import (
    GetProcess,
    ListProcesses,
    ModelMisbehaved,
    RunPage,
    Started,
    StartProcess,
    StepBegun,
    StepCompleted,
    StepFailed,
    StepPendingStorage,
)
from bus_schema.replies import Code
from bus_schema.runs import Run
from bus_schema.storage import ArtifactRegistered, SetTraceMembers
from config.settings import FleetSettings
from mindbus.bus.client import Client
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import Publish, Send, background, every, on_command, on_event
from mindbus.bus.worker import Worker, WorkerContext, utc_now
from mindbus.errors import BusUnavailable, Rejected, ReplyError
from mindbus.logs import logger
from mindbus.run_dir import RESTORED
from mindbus.sdk.storage_link import StorageWatch
from mindbus.sql.database import Database
from mindbus.sql.inbox import SqlInbox
from mindbus.sql.migrations import upgrade
from storage_service import runs
from storage_service.quotas import forget_tokens
from storage_service.runs import MIGRATIONS
from workers.lost_orders import LostOrders
from workers.model_calls import TokenCount
from workers.run_artifacts import completed_late, foreign_inputs, look_up
from workers.run_control import (
    OrchestratorRules,
    RunControl,
    RunMoves,
    Sent,
    messages_of,
    one_after_another,
    takes_part,
)

_ASK_WITHIN_S = 5.0
_LOOK_AGAIN_S = 0.5
_BATCH = 50


class OrchestratorWorker(Worker):
    """Runs processes as sagas over its own database.

    Operators may see and cancel every run, others those that they have started or have a role in.
    """

    name = "orchestrator"
    attempts = 20

    def __init__(
        self,
        database: Database,
        bus: Client,
        roles: Roles,
        clock: Callable[[], datetime] = utc_now,
        rules: OrchestratorRules | None = None,
    ) -> None:
        rules = rules or OrchestratorRules()
        self.database = database
        self.inbox = self.remembered = SqlInbox(database, only_rows=True)
        self.sends_to = sorted(roles)
        self._moves = RunMoves(database, clock, rules)
        self._bus, self._roles, self._clock, self._settle = bus, roles, clock, rules.settle
        self._look_up = partial(look_up, bus)
        self._deadlines_from = clock() + rules.settle
        self._started, self._looks_again_at = asyncio.Queue[Run](), 0.0
        self._storage = StorageWatch(bus, rules.heartbeat_s)
        self.include(RunControl(database, self._moves, self._look_up, self._add, roles))
        self.include(TokenCount(database, clock), LostOrders(database, self._moves, rules.orders_lost))

    async def start(self) -> None:
        await upgrade(self.database, MIGRATIONS)
        self._deadlines_from = self._clock() + self._settle

    async def stop(self) -> None:
        await self.database.dispose()

    @on_command
    async def start_run(self, command: StartProcess, context: MessageContext) -> Started:
        return await self._add(command, context)

    @on_command
    async def show_run(self, query: GetProcess, context: MessageContext) -> Run:
        run = await self.database.read(lambda connection: runs.read_run(connection, query.run_id))
        if run is None or not takes_part(run, context):
            raise Rejected(Code.NOT_FOUND, f"there is no run {query.run_id}")
        return run

    @on_command
    async def list_runs(self, query: ListProcesses, context: MessageContext) -> RunPage:
        """All runs for operators, for others those that they have started."""
        started_by = None if context.is_operator else context.owner
        return await self.database.read(lambda connection: runs.list_runs(connection, query, started_by))

    @on_command
    async def clear(self, _command: ClearData, context: MessageContext) -> tuple[Removed | Send | Publish, ...]:
        return await self._forget(None, context)

    @on_command
    async def delete_user(self, command: DeleteUser, context: MessageContext) -> tuple[Removed | Send | Publish, ...]:
        return await self._forget(f"user.{command.user_id}", context)

    @on_event
    async def complete_step(self, event: StepCompleted, context: MessageContext) -> Sent:
        """The step has completed once storage says so; while storage is away, it waits for its artifact."""
        found = await self._look_up(event.run_id, event.artifact.artifact_id)
        return await self._advance(event.run_id, checked_ending(event, found), context)

    @on_event
    async def fail_step(self, event: StepFailed, context: MessageContext) -> Sent:
        return await self._advance(event.run_id, event, context)

    @on_event
    async def begin_work(self, event: StepBegun, context: MessageContext) -> Sent:
        return await self._advance(event.run_id, event, context)

    @on_event
    async def note_misbehaviour(self, event: ModelMisbehaved, context: MessageContext) -> Sent:
        return await self._advance(event.run_id, event, context)

    @on_event
    async def wait_for_storage(self, event: StepPendingStorage, context: MessageContext) -> Sent:
        return await self._advance(event.run_id, event, context)

    @on_event
    async def resume_step(self, event: ArtifactRegistered, context: MessageContext) -> Sent:
        run_id, artifact = event.trace_id, event.artifact
        if not run_id.startswith("run_"):
            return ()
        # Nearly always its step has told of it already; if it is about to, `find_artifacts` finds it.
        if not await self.database.read(lambda connection: runs.is_awaited(connection, run_id, artifact)):
            return ()
        return await self._advance(run_id, ArtifactFound(artifact), context)

    @background()
    async def start_runs(self) -> Sent:
        waiting = await self._runs_to_start()
        answers = await asyncio.gather(*map(self._confirm_members, waiting))
        return await self._moves.move_all((run.run_id, answer) for run, answer in zip(waiting, answers, strict=True))

    @every(seconds=1)
    async def check_deadlines(self) -> Sent:
        if self._clock() < self._deadlines_from or self._storage.is_away:
            return ()
        now = self._clock()
        due = await self.database.read(lambda connection: runs.due_runs(connection, now, _BATCH))
        if not due:
            return ()
        late = [await self._moves.move(*end) for end in await completed_late(self.database, self._look_up, due, now)]
        claimed = await self.database.run(lambda connection: runs.claim_runs(connection, due))
        passed = await self._moves.move_all((run_id, TimePassed()) for run_id in claimed)
        return *(message for each in late if each for message in messages_of(each)), *passed

    @background()
    async def watch_storage(self) -> Sent:
        """No limit runs while storage is away: all are put off by that time when it is back."""
        away_s = await self._storage.next_return()
        held = ClockHeld(timedelta(seconds=away_s))
        timed = await self.database.read(runs.timed_runs)
        logger().info("limits put off", storage_away_s=round(away_s, 1), runs=len(timed))
        messages = await self._moves.move_all((run_id, held) for run_id in timed)
        self.database.after_commit(self._storage.settle)
        return messages

    @every(seconds=10)
    async def find_artifacts(self) -> Sent:
        """The event may have come before the step was known to wait for it, or not at all."""
        awaited = await self.database.read(lambda connection: runs.awaited_artifacts(connection, _BATCH))
        answers = await asyncio.gather(*(self._look_up(run_id, each.artifact_id) for run_id, each in awaited))
        found = zip(awaited, answers, strict=True)
        return await self._moves.move_all(
            (run_id, ArtifactFound(answer.ref)) for (run_id, _), answer in found if isinstance(answer, Manifest)
        )

    async def _add(self, command: StartProcess, context: MessageContext) -> Started:
        """Add a run that is to start. Raises Rejected."""
        digest = saga.fingerprint(command, context.owner)

        def add(connection: Connection) -> Run | None:
            known = runs.run_to_change(connection, command.run_id)
            if known is None:
                card = card_of(command, self._roles)
                run = saga.open_run(command, card, context.owner, self._clock(), is_budget_free=context.is_operator)
                if runs.add_run(connection, run, card, digest):
                    return run
                raise runs.RunChangedMeanwhile(command.run_id)
            if known.request_sha256 != digest:
                raise Rejected(Code.CONFLICT, f"{command.run_id} was started otherwise already; mint another run id")
            return None

        with one_after_another():
            new = await self.database.run(add)
        if new is not None:
            self.database.after_commit(partial(self._started.put_nowait, new))
        return Started(run_id=command.run_id)

    async def _forget(self, started_by: str | None, context: MessageContext) -> tuple[Removed | Send | Publish, ...]:
        """Delete runs; those still running are cancelled first, so that no role works for nothing."""
        context.begin_anew()
        # Of many rows: on a connection of its own.
        connection = await self.database.session.connection()
        removed = await connection.run_sync(runs.runs_to_forget, started_by)
        running = (run.run_id for run in removed if run.status not in OVER)
        cancelled = CancelRequested("its data were removed", context.owner)
        with one_after_another():
            messages = await self._moves.move_all((run_id, cancelled) for run_id in running)
        await connection.run_sync(forget_tokens, started_by)
        await connection.run_sync(runs.forget_runs, [run.run_id for run in removed])
        await self.remembered.forget(*(() if started_by is None else (started_by,)))
        return (Removed.of({"runs": len(removed)}), *messages)

    async def _advance(self, run_id: str, event: RunEvent, context: MessageContext) -> Sent:
        # A card has no circles and a limited number of attempts, but it may be long.
        context.begin_anew()
        with one_after_another():
            transition = await self._moves.move(run_id, event, worker_of(context.requester) or "")
        return messages_of(transition) if transition else ()

    async def _runs_to_start(self) -> Sequence[Run]:
        """Runs just started, at once; every half a second all those that storage has not confirmed."""
        new: dict[str, Run] = {}
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._looks_again_at):
                run = await self._started.get()
                new[run.run_id] = run
        while not self._started.empty() and len(new) < _BATCH:
            run = self._started.get_nowait()
            new[run.run_id] = run
        now = asyncio.get_running_loop().time()
        if now < self._looks_again_at:
            return [*new.values()]
        self._looks_again_at = now + _LOOK_AGAIN_S
        waiting = await self.database.read(lambda connection: runs.starting_runs(connection, _BATCH))
        return [*(new | {run.run_id: run for run in waiting}).values()]

    async def _confirm_members(self, run: Run) -> MembersConfirmed | MembersRefused | None:
        command = SetTraceMembers(trace_id=run.run_id, members=saga.members_of(run), retention=run.retention)
        try:
            await self._bus.request(command, trace=run.run_id, timeout_s=_ASK_WITHIN_S)
        except (BusUnavailable, ReplyError) as error:
            if isinstance(error, ReplyError) and not error.retryable and error.code is not Code.EXPIRED:
                return MembersRefused(f"storage refuses the run's members: {error}")
            logger().warning("run waits to start", run_id=run.run_id, reason=str(error))
            return None
        # An operator, whose runs have no budget, reads everything.
        foreign = [] if run.is_budget_free else await foreign_inputs(self.database, self._look_up, run)
        if foreign:
            return MembersRefused(f"{', '.join(foreign)}: not there, or not yours to read")
        return None if foreign is None else MembersConfirmed()


def open_orchestrator(context: WorkerContext) -> OrchestratorWorker:
    """The orchestrator of the shipped roles, over its own database."""
    settings = context.settings_as(FleetSettings)
    database = Database(settings.database_of("orchestrator"), schema="orchestrator")
    bus = context.bus.acting_as(saga.ORCHESTRATOR)
    rules = OrchestratorRules(
        heartbeat_s=settings.heartbeat_s,
        tokens_per_day=settings.user_tokens_per_day,
        quota_tokens_per_day=settings.quota_tokens_per_day,
        orders_lost=settings.data_dir / RESTORED,
    )
    return OrchestratorWorker(database, bus, crafts_of_roles(), context.clock, rules)
