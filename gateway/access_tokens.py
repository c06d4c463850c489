"""Access tokens: the gateway's own token, session cookies signed with it, throttling of wrong guesses."""

import hashlib
import hmac
import ipaddress
import os
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cachetools import LRUCache

from config.settings import FleetSettings
from mindbus.files.disk import write_private

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
    file = token_file(settings)
    return Token(file.read_text().strip()) if file.exists() else _create(file)


def token_file(settings: FleetSettings) -> Path:
    return settings.data_dir / "gateway_token"


def login_path(token: Token) -> str:
    """Path that signs a browser in once, within ten minutes, made by whoever knows the token."""
    return f"{LOGIN}?ticket={AccessKeys(token.text, lambda: datetime.now(UTC)).ticket()}"


def is_loopback(host: str) -> bool:
    """True if only this machine reaches the address; False for a name other than localhost."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class AccessKeys:
    """Checks tokens and session cookies in constant time; without a token access is open."""

    def __init__(self, token: str | None, clock: Callable[[], datetime]) -> None:
        self._token, self._clock = token, clock
        self._used: LRUCache[str, None] = LRUCache(_MAX_TICKETS)

    @property
    def is_open(self) -> bool:
        return self._token is None

    def is_token(self, candidate: str) -> bool:
        """True for the token; digests are compared, so that timing tells nothing about it."""
        return self._token is not None and hmac.compare_digest(_digest(candidate), _digest(self._token))

    def session(self) -> str:
        """A signed session for a cookie; changing the token invalidates it."""
        expires = int((self._clock() + SESSION_FOR).timestamp())
        return f"{expires}.{self._signature('session', str(expires))}"

    def is_session(self, session: str | None) -> bool:
        """True for a session that was signed here and has not expired."""
        expires, _, signature = (session or "").partition(".")
        return self._is_signed("session", expires, expires, signature)

    def ticket(self) -> str:
        """A signed ticket that is worth one session, for ten minutes."""
        signed = f"{int((self._clock() + TICKET_FOR).timestamp())}.{secrets.token_urlsafe(12)}"
        return f"{signed}.{self._signature('ticket', signed)}"

    def take_ticket(self, ticket: str) -> bool:
        """True for a ticket that was made with the token, has not expired, and is taken for the first time."""
        signed, _, signature = ticket.rpartition(".")
        if signed in self._used or not self._is_signed("ticket", signed.partition(".")[0], signed, signature):
            return False
        self._used[signed] = None
        return True

    def _is_signed(self, kind: str, expires: str, signed: str, signature: str) -> bool:
        if self._token is None or not (expires.isascii() and expires.isdecimal() and len(expires) <= 12):
            return False
        is_ours = hmac.compare_digest(signature.encode(), self._signature(kind, signed).encode())
        return is_ours and self._clock().timestamp() < int(expires)

    def _signature(self, kind: str, signed: str) -> str:
        return hmac.new((self._token or "").encode(), f"mindbus {kind} {signed}".encode(), hashlib.sha256).hexdigest()


class LoginThrottle:
    """Counts wrong tokens by client address: at most `limit` within a period."""

    def __init__(
        self, clock: Callable[[], datetime], limit: int = 10, within: timedelta = timedelta(minutes=1)
    ) -> None:
        self._clock, self._limit, self._within = clock, limit, within
        self._guesses: LRUCache[str, deque[datetime]] = LRUCache(_MAX_ADDRESSES)

    def count(self, address: str) -> None:
        guesses = self._guesses.get(address) or deque(maxlen=self._limit)
        guesses.append(self._clock())
        self._guesses[address] = guesses

    def wait_s(self, address: str) -> int:
        """Seconds until the address may try again; 0 if it may now."""
        guesses = self._guesses.get(address) or deque()
        if len(guesses) < self._limit:
            return 0
        remaining = guesses[0] + self._within - self._clock()
        return max(0, int(remaining.total_seconds()) + 1) if remaining > timedelta(0) else 0


def _create(file: Path) -> Token:
    created = secrets.token_urlsafe(32)
    part = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    write_private(part, created)
    try:
        # Of several processes that start at once, one creates the token of all.
        os.link(part, file)
    except FileExistsError:
        return Token(file.read_text().strip())
    finally:
        part.unlink()
    return Token(created, is_new=True)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
