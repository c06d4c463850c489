"""Orders that a broker has lost: after a restore, or where its data are gone."""

from pathlib import Path

from agents.processes.run_events import OrdersLost
from mindbus.bus.handlers import every
from mindbus.logs import logger
from mindbus.sql.database import Database
from storage_service import runs
from workers.run_control import RunMoves, Sent


class LostOrders:
    """Sends the orders of all steps at work again, as the same attempts, for as long as a mark says that they are lost.

    The roles find what they have made already, and make the rest.
    """

    def __init__(self, database: Database, moves: RunMoves, mark: Path | None) -> None:
        """`mark` is a file that is there until they are sent."""
        self._database, self._moves = database, moves
        self._mark = mark if mark and mark.exists() else None

    @every(seconds=1)
    async def resend_orders(self) -> Sent:
        """Send them once; where that is not committed, once more."""
        if self._mark is None:
            return ()
        timed = await self._database.read(runs.timed_runs)
        logger().info("orders sent again", runs=len(timed))
        messages = await self._moves.move_all((run_id, OrdersLost()) for run_id in timed)
        self._database.after_commit(self._forget_mark)
        return messages

    def _forget_mark(self) -> None:
        if self._mark is not None:
            self._mark.unlink(missing_ok=True)
            self._mark = None
