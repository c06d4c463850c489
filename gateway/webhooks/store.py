"""Webhooks of a data folder: where they go, what of them has been delivered, when the next attempt is due."""

import sqlite3
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from bus_schema.replies import Code
from mindbus.errors import Rejected
from mindbus.files.private_sqlite import private_database
from mindbus.run_dir import RunSettings

Kind = Literal["task", "events"]
MOST_OF_ONE = 100
_LONGEST_WAIT_S = 300.0
_GIVEN_UP_AFTER_S = 24 * 3600.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS webhooks (
    id TEXT NOT NULL, identity TEXT NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL, url TEXT NOT NULL,
    secret TEXT NOT NULL, delivered TEXT NOT NULL, failures INTEGER NOT NULL, due_at REAL NOT NULL,
    since REAL NOT NULL, problem TEXT NOT NULL, PRIMARY KEY (identity, kind, subject, id)
);
"""
_COLUMNS = "id, identity, kind, subject, url, secret, delivered, failures, due_at, since, problem"


class TooManyWebhooks(Rejected, code=Code.INVALID):
    """There are a hundred already: delete one first."""


@dataclass(frozen=True)
class Webhook:
    """A webhook of an account: of a task, its `subject`, or of the events of topics.

    `delivered` is the last that has arrived: a state, or a place on the timeline. After `failures` in a row it is
    `due_at` a time, seconds since 1970; `since` is when it was made, or last arrived.
    """

    id: str
    identity: str
    kind: Kind
    subject: str
    url: str
    secret: str
    delivered: str = ""
    failures: int = 0
    due_at: float = 0.0
    since: float = 0.0
    problem: str = ""

    def arrived(self, delivered: str, now: float) -> "Webhook":
        return replace(self, delivered=delivered, failures=0, due_at=0.0, since=now, problem="")

    def failed(self, problem: str, now: float) -> "Webhook | None":
        """The webhook, due again ever later; None once it has failed for a day."""
        waits = [min(2.0 ** min(times, 10), _LONGEST_WAIT_S) for times in range(self.failures + 1)]
        if sum(waits) > _GIVEN_UP_AFTER_S:
            return None
        return replace(self, failures=self.failures + 1, due_at=now + waits[-1], problem=problem[:300])


class WebhookStore:
    """Each method is one transaction; the file is its owner's alone."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def save(self, webhook: Webhook) -> None:
        """Add a webhook, or replace the one of its id. Raises TooManyWebhooks."""
        row = tuple(getattr(webhook, name) for name in _COLUMNS.split(", "))
        with self._database() as database:
            count = "SELECT count(*) FROM webhooks WHERE identity = ? AND id != ?"
            if database.execute(count, (webhook.identity, webhook.id)).fetchone()[0] >= MOST_OF_ONE:
                raise TooManyWebhooks
            database.execute(f"INSERT OR REPLACE INTO webhooks VALUES ({', '.join('?' * len(row))})", row)

    def update(self, webhook: Webhook) -> None:
        """Note what has become of a delivery, unless the webhook was deleted meanwhile."""
        changed = (webhook.delivered, webhook.failures, webhook.due_at, webhook.since, webhook.problem)
        with self._database() as database:
            database.execute(
                "UPDATE webhooks SET delivered = ?, failures = ?, due_at = ?, since = ?, problem = ? "
                "WHERE identity = ? AND kind = ? AND subject = ? AND id = ?",
                (*changed, webhook.identity, webhook.kind, webhook.subject, webhook.id),
            )

    def of(self, kind: Kind, identity: str | None = None) -> list[Webhook]:
        """All of a kind, or those of one account."""
        if not self._file.exists():
            return []
        condition, values = ("", ()) if identity is None else (" AND identity = ?", (identity,))
        query = f"SELECT {_COLUMNS} FROM webhooks WHERE kind = ?{condition} ORDER BY since"
        with self._database() as database:
            return [Webhook(*row) for row in database.execute(query, (kind, *values))]

    def remove(self, webhook: Webhook) -> None:
        """Delete it; it need not exist."""
        with self._database() as database:
            database.execute(
                "DELETE FROM webhooks WHERE identity = ? AND kind = ? AND subject = ? AND id = ?",
                (webhook.identity, webhook.kind, webhook.subject, webhook.id),
            )

    def _database(self) -> AbstractContextManager[sqlite3.Connection]:
        return private_database(self._file, _SCHEMA)


def webhooks_of(settings: RunSettings) -> WebhookStore:
    """The webhooks of a data folder."""
    return WebhookStore(settings.data_dir / "webhooks.db")
