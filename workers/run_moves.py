"""Moves of runs: an event applied to the row of a run, with the messages that come of it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from agents.processes import saga
from agents.processes.orders import role_of
from agents.processes.run_events import OVER, RunEvent, Transition
from bus_schema.runs import Run
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import Publish, Send
from mindbus.errors import TemporaryFailure
from mindbus.logs import logger
from mindbus.sql.database import Database
from storage_service import runs

Sent = Sequence[Send | Publish]
_SOON = timedelta(seconds=1)


@dataclass(frozen=True)
class RunMoves:
    """Applies events to runs in the database."""

    database: Database
    clock: Callable[[], datetime]

    async def move_all(self, events: Iterator[tuple[str, RunEvent | None]]) -> Sent:
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
        transition = saga.advance(stored.card, stored.run, event, self.clock())
        if transition.run != stored.run:
            runs.save_run(connection, stored, transition.run)
        if transition.run.status in OVER and stored.run.status not in OVER:
            logger().info("run over", run_id=run_id, status=transition.run.status.value, reason=transition.run.reason)
        return transition


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
