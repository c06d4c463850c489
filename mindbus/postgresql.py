"""How patient we are with PostgreSQL, which may stall, vanish or be killed at any time."""

import asyncio
from typing import Any

from psycopg import AsyncConnection, OperationalError
from psycopg.rows import Row

# Longer than any statement of ours takes, shorter than a request waits.
ANSWER_WITHIN_S = 10.0

# Of what TCP alone would notice after hours: the other side's machine has vanished.
_KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}

CONNECTING: dict[str, Any] = {"connect_timeout": 5, "tcp_user_timeout": 20_000, **_KEEPALIVE}

# What the server does for those who cannot: it ends the statements that nobody waits for any more, lets go of the locks
# of a client that is frozen in the middle of a transaction, of one that has vanished.
_SERVER = {
    "statement_timeout": f"{ANSWER_WITHIN_S:g}s",
    "idle_in_transaction_session_timeout": "60s",
    # A prepared plan for any value serves nobody where one value has three rows, another a hundred thousand.
    "plan_cache_mode": "force_custom_plan",
    **{f"tcp_{name}": seconds for name, seconds in _KEEPALIVE.items()},
}


class DoesNotAnswer(OperationalError):
    """PostgreSQL does not answer; what was asked of it last may or may not have happened."""


class PatientConnection(AsyncConnection[Row]):
    """Gives up a server that does not answer: psycopg itself would wait for ever."""

    patience_s = ANSWER_WITHIN_S

    async def wait(self, *args: Any, **options: Any) -> Any:
        """Raises DoesNotAnswer, after which the connection is closed."""
        try:
            # What is cut short here psycopg tries to cancel on the server, for some seconds more.
            async with asyncio.timeout(self.patience_s):
                return await super().wait(*args, **options)
        except TimeoutError as silence:
            self.pgconn.finish()
            raise DoesNotAnswer(str(DoesNotAnswer.__doc__)) from silence


def session_options(schema: str, *, is_patient: bool = False) -> str:
    """What a connection asks of the server; a patient one, as for migrations, lets a statement take its time."""
    settings = {"search_path": schema} if is_patient else {"search_path": schema, **_SERVER}
    return " ".join(f"-c{name}={value}" for name, value in settings.items())
