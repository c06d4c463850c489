"""Access tokens: the gateway's own, those of accounts, sessions, links that sign in once, throttling of guesses."""

import hashlib
import hmac
import ipaddress
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cachetools import LRUCache

from config.settings import FleetSettings
from mindbus.accounts import AccessRole, Account, Accounts, Session, digest
from mindbus.files.disk import write_private_once

LOGIN = "/login"
SESSION_FOR = timedelta(days=30)
TICKET_FOR = timedelta(minutes=10)
# More than can be used within their time by people; a forgotten one has expired.
_MAX_TICKETS = 100_000
_MAX_ADDRESSES = 10_000


@dataclass(frozen=True)
class Token:
    """The gateway's token; `is_new` if it was created just now."""

    text: str = field(repr=False)
    is_new: bool = False


def token_of(settings: FleetSettings) -> Token | None:
    """The token to ask for, created if it is needed and absent; None if access is open, on a loopback address."""
    if settings.gateway_token is not None:
        return Token(settings.gateway_token)
    if settings.gateway_access == "open" and is_loopback(settings.gateway_host):
        return None
    return Token(*write_private_once(token_file(settings), secrets.token_urlsafe(32)))


def token_file(settings: FleetSettings) -> Path:
    return settings.data_dir / "gateway_token"


def login_path(token: Token) -> str:
    """Path that signs a browser in once, within ten minutes, made by whoever knows the token."""
    return f"{LOGIN}?ticket={new_ticket(token.text, datetime.now(UTC))}"


def new_ticket(token: str, now: datetime) -> str:
    """A ticket, signed with the token, that is worth one session, for ten minutes."""
    signed = f"{int((now + TICKET_FOR).timestamp())}.{secrets.token_urlsafe(12)}"
    return f"{signed}.{_signature(token, 'ticket', signed)}"


def is_loopback(host: str) -> bool:
    """True if only this machine reaches the address; False for a name other than localhost."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# Whoever has the gateway's own token owns the fleet.
OWNER: Final = Account("local", AccessRole.OPERATOR)


class AccessKeys:
    """Tells whose a token or a session is; without a token access is open, and everybody the owner."""

    def __init__(
        self, token: str | None, clock: Callable[[], datetime], accounts: Accounts, metrics_token: str | None = None
    ) -> None:
        """`metrics_token` opens the metrics alone."""
        self._metrics_token = metrics_token
        self._token, self._clock, self._accounts = token, clock, accounts
        self._used: LRUCache[str, None] = LRUCache(_MAX_TICKETS)

    @property
    def is_open(self) -> bool:
        return self._token is None

    def of_token(self, candidate: str) -> Account | None:
        """Account of a token; digests are compared, so that timing tells nothing about it."""
        if self._token is None:
            return None
        is_own = hmac.compare_digest(digest(candidate), digest(self._token))
        return OWNER if is_own else self._accounts.of_token(candidate)

    def is_of_metrics(self, candidate: str) -> bool:
        """Whether this is the token of metrics."""
        expected = self._metrics_token
        return bool(expected) and hmac.compare_digest(digest(candidate), digest(expected or ""))

    def open_session(self, account: Account) -> str:
        """The secret of a new session, for a cookie; revoking the account ends it, and for the owner another token."""
        issuer = self._issuer if account == OWNER else ""
        now = self._clock()
        return self._accounts.open_session(Session(account.identity, issuer), now, now + SESSION_FOR)

    def of_session(self, secret: str | None) -> Account | None:
        """Account of a session that has not ended."""
        if self._token is None or not secret:
            return None
        session = self._accounts.session(secret, self._clock())
        if session is None:
            return None
        if session.issuer:
            return OWNER if hmac.compare_digest(session.issuer, self._issuer) else None
        return self._accounts.of_identity(session.identity)

    def of_identity(self, identity: str) -> Account | None:
        """The account that an identity has now."""
        return self._accounts.of_identity(identity)

    def close_session(self, secret: str | None) -> None:
        """End a session, if there is one."""
        if secret:
            self._accounts.close_session(secret)

    def take_ticket(self, ticket: str) -> bool:
        """True for a ticket that was made with the token, has not expired, and is taken for the first time."""
        signed, _, signature = ticket.rpartition(".")
        expires = signed.partition(".")[0]
        if self._token is None or signed in self._used:
            return False
        is_ours = hmac.compare_digest(signature.encode(), _signature(self._token, "ticket", signed).encode())
        if not is_ours or self._clock().timestamp() >= int(expires):
            return False
        self._used[signed] = None
        return True

    @property
    def _issuer(self) -> str:
        return _signature(self._token or "", "session", "")


class Throttle:
    """Counts events, such as wrong tokens, by address or account: at most `limit` within a period, 0 for any number."""

    def __init__(
        self, clock: Callable[[], datetime], limit: int = 10, within: timedelta = timedelta(minutes=1)
    ) -> None:
        self._clock, self._limit, self._within = clock, limit, within
        self._guesses: LRUCache[str, deque[datetime]] = LRUCache(_MAX_ADDRESSES)

    def count(self, address: str) -> None:
        if not self._limit:
            return
        guesses = self._guesses.get(address) or deque(maxlen=self._limit)
        guesses.append(self._clock())
        self._guesses[address] = guesses

    def wait_s(self, address: str) -> int:
        """Seconds until the address may try again; 0 if it may now."""
        guesses = self._guesses.get(address) or deque()
        if not self._limit or len(guesses) < self._limit:
            return 0
        remaining = guesses[0] + self._within - self._clock()
        return max(0, int(remaining.total_seconds()) + 1) if remaining > timedelta(0) else 0


def _signature(token: str, kind: str, signed: str) -> str:
    return hmac.new(token.encode(), f"mindbus {kind} {signed}".encode(), hashlib.sha256).hexdigest()
