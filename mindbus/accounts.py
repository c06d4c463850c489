"""Accounts of people and agents: role, hash of the token, sessions, model tokens spent. One SQLite file, mode 0600."""

import hashlib
import secrets
import sqlite3
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from bus_schema.codes import Code
from mindbus.errors import Rejected
from mindbus.files.private_sqlite import private_database
from mindbus.run_dir import RunSettings

_SCHEMA = """
CREATE TABLE IF NOT EXISTS accounts (
    name TEXT NOT NULL, kind TEXT NOT NULL, role TEXT NOT NULL, can_write INTEGER NOT NULL,
    token TEXT NOT NULL UNIQUE, created_at TEXT NOT NULL, PRIMARY KEY (kind, name));
CREATE TABLE IF NOT EXISTS sessions (
    secret TEXT PRIMARY KEY, identity TEXT NOT NULL, issuer TEXT NOT NULL, ends_at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS spending (
    identity TEXT NOT NULL, day TEXT NOT NULL, tokens INTEGER NOT NULL, PRIMARY KEY (identity, day));
"""


class AccessRole(StrEnum):
    """Role of an account: `operator` may do all, `user` what is its own, `agent` what agents may."""

    USER = "user"
    OPERATOR = "operator"
    AGENT = "agent"


class AccountExists(Rejected, code=Code.CONFLICT):
    """There is an account of this name already: `mindbus users renew` gives it another token, `revoke` ends it."""


@dataclass(frozen=True, slots=True)
class Account:
    """Person or agent who may sign in; without `can_write` it may read alone. Its token is from `created_at`."""

    name: str
    role: AccessRole
    can_write: bool = True
    created_at: datetime | None = None

    @property
    def identity(self) -> str:
        """Identity on the bus."""
        return f"{_kind_of(self.role)}.{self.name}"

    @property
    def login(self) -> str:
        """Name of its user in RabbitMQ."""
        return f"{self.role}.{self.name}"

    @property
    def is_operator(self) -> bool:
        return self.role is AccessRole.OPERATOR

    @property
    def user_id(self) -> str | None:
        """Id of the person; None for an agent."""
        return None if self.role is AccessRole.AGENT else self.name


@dataclass(frozen=True, slots=True)
class Session:
    """A sign-in: of an account by its identity; `issuer` is the mark of the key that has opened it."""

    identity: str
    issuer: str


class Accounts:
    """Accounts of a data folder, for the gateway and for whoever owns the folder; each method is one transaction."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def add(self, name: str, role: AccessRole, *, can_write: bool = True) -> str:
        """Make an account and return its token, of which the hash alone is kept. Raises AccountExists."""
        token = secrets.token_urlsafe(32)
        row = (name, _kind_of(role), role, can_write, digest(token), datetime.now(UTC).isoformat())
        with self._database() as database:
            try:
                database.execute("INSERT INTO accounts VALUES (?, ?, ?, ?, ?, ?)", row)
            except sqlite3.IntegrityError:
                raise AccountExists(message=f"{AccountExists.__doc__} ({name})") from None
        return token

    def renew(self, identity: str) -> str:
        """Give an account another token and return it; the former one and its sessions end, what is spent stays."""
        token, (kind, _, name) = secrets.token_urlsafe(32), identity.partition(".")
        row = (digest(token), datetime.now(UTC).isoformat(), kind, name)
        with self._database() as database:
            database.execute("DELETE FROM sessions WHERE identity = ?", (identity,))
            database.execute("UPDATE accounts SET token = ?, created_at = ? WHERE kind = ? AND name = ?", row)
        return token

    def all(self) -> list[Account]:
        """Every account, by name."""
        return self._find("1 ORDER BY name, kind")

    def of_token(self, token: str) -> Account | None:
        """The account of a token; its hash is looked up, so that timing tells nothing about it."""
        return next(iter(self._find("token = ?", digest(token))), None)

    def of_identity(self, identity: str) -> Account | None:
        """The account of an identity on the bus."""
        kind, _, name = identity.partition(".")
        return next(iter(self._find("kind = ? AND name = ?", kind, name)), None)

    def revoke(self, identity: str) -> bool:
        """Remove an account with its sessions and what it has spent; whether there was one."""
        kind, _, name = identity.partition(".")
        with self._database() as database:
            database.execute("DELETE FROM sessions WHERE identity = ?", (identity,))
            database.execute("DELETE FROM spending WHERE identity = ?", (identity,))
            return database.execute("DELETE FROM accounts WHERE kind = ? AND name = ?", (kind, name)).rowcount > 0

    def open_session(self, session: Session, now: datetime, ends_at: datetime) -> str:
        """Keep a session until it ends and return its secret, of which the hash alone is kept."""
        secret = secrets.token_urlsafe(32)
        row = (digest(secret), session.identity, session.issuer, ends_at.timestamp())
        with self._database() as database:
            database.execute("DELETE FROM sessions WHERE ends_at <= ?", (now.timestamp(),))
            database.execute("INSERT INTO sessions VALUES (?, ?, ?, ?)", row)
        return secret

    def session(self, secret: str, now: datetime) -> Session | None:
        """The session of a secret, unless it has ended."""
        with self._database() as database:
            found = database.execute(
                "SELECT identity, issuer FROM sessions WHERE secret = ? AND ends_at > ?",
                (digest(secret), now.timestamp()),
            ).fetchone()
        return None if found is None else Session(found[0], found[1])

    def close_session(self, secret: str) -> None:
        """End a session; it need not exist."""
        with self._database() as database:
            database.execute("DELETE FROM sessions WHERE secret = ?", (digest(secret),))

    def spend(self, identity: str, day: str, tokens: int) -> None:
        """Add model tokens to what an identity has spent on a day, `YYYY-MM-DD`."""
        with self._database() as database:
            database.execute("DELETE FROM spending WHERE day < ?", (day,))
            database.execute(
                "INSERT INTO spending VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET tokens = tokens + excluded.tokens",
                (identity, day, tokens),
            )

    def spent(self, identity: str, day: str) -> int:
        """Model tokens that an identity has spent on a day."""
        with self._database() as database:
            query = "SELECT tokens FROM spending WHERE identity = ? AND day = ?"
            return (database.execute(query, (identity, day)).fetchone() or (0,))[0]

    def _find(self, condition: str, *values: str) -> list[Account]:
        query = f"SELECT name, role, can_write, created_at FROM accounts WHERE {condition}"
        with self._database() as database:
            rows = database.execute(query, values).fetchall()
        return [
            Account(name, AccessRole(role), bool(writes), datetime.fromisoformat(at)) for name, role, writes, at in rows
        ]

    def _database(self) -> AbstractContextManager[sqlite3.Connection]:
        return private_database(self._file, _SCHEMA)


def accounts_of(settings: RunSettings) -> Accounts:
    """The accounts of a data folder."""
    return Accounts(settings.data_dir / "accounts.db")


def digest(secret: str) -> str:
    """SHA-256 of a secret of 32 random bytes, which needs no salt: nobody guesses one."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def _kind_of(role: AccessRole) -> str:
    return "agent" if role is AccessRole.AGENT else "user"
