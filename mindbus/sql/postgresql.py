"""Connections to PostgreSQL: options, and a deadline for every answer."""

import asyncio
from typing import Any

import psycopg
from psycopg.rows import Row

# Longer than any of our statements takes, shorter than a request waits.
ANSWER_WITHIN_S = 10.0

# Without them TCP notices only after hours that the other machine has vanished.
_KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}

CONNECT_OPTIONS: dict[str, Any] = {"connect_timeout": 5, "tcp_user_timeout": 20_000, **_KEEPALIVE}

# The server ends statements that nobody waits for any more, and releases the locks of a client that is frozen in a
# transaction or has vanished.
_SERVER_SETTINGS = {
    "statement_timeout": f"{ANSWER_WITHIN_S:g}s",
    "idle_in_transaction_session_timeout": "60s",
    # A generic plan is wrong where one value has three rows and another a hundred thousand.
    "plan_cache_mode": "force_custom_plan",
    **{f"tcp_{name}": seconds for name, seconds in _KEEPALIVE.items()},
}


class PostgresTimeout(psycopg.OperationalError):
    """PostgreSQL does not answer; the last statement may or may not have been executed."""


class TimedConnection(psycopg.AsyncConnection[Row]):
    """A connection that gives up a server which does not answer; psycopg itself would wait for ever."""

    timeout_s = ANSWER_WITHIN_S

    async def wait(self, *args: Any, **options: Any) -> Any:
        """Raises PostgresTimeout, after which the connection is closed."""
        try:
            # psycopg then tries for some seconds to cancel the statement on the server.
            async with asyncio.timeout(self.timeout_s):
                return await super().wait(*args, **options)
        except TimeoutError as error:
            self.pgconn.finish()
            raise PostgresTimeout(str(PostgresTimeout.__doc__)) from error


def session_options(schema: str, *, without_limits: bool = False) -> str:
    """Server settings of a connection, as libpq options; `without_limits`, for migrations, has no timeouts."""
    settings = {"search_path": schema} if without_limits else {"search_path": schema, **_SERVER_SETTINGS}
    return " ".join(f"-c{name}={value}" for name, value in settings.items())
