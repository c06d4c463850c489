"""The token of the gateway: as set, or made once, then kept."""

import hashlib
import hmac
import ipaddress
import os
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from cachetools import LRUCache

from mindbus.files.private import write_private
from mindbus.settings import Settings


@dataclass(frozen=True)
class Token:
    """`is_new` where nobody can have seen it yet."""

    text: str = field(repr=False)
    is_new: bool = False


def token_of(settings: Settings) -> Token | None:
    """What the gateway asks for; made now if it needs one that there is not yet. None: it asks for nothing."""
    if settings.gateway_token is not None:
        return Token(settings.gateway_token)
    if is_loopback(settings.gateway_host):
        return None
    file = token_file(settings)
    return Token(file.read_text().strip()) if file.exists() else _make(file)


def token_file(settings: Settings) -> Path:
    """Where a token that was made is kept."""
    return settings.data_dir / "gateway_token"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it; of a name that is not known to be so, nobody can tell."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _make(file: Path) -> Token:
    made = secrets.token_urlsafe(32)
    part = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    write_private(part, made)
    try:
        # Of several that start at once, one makes the token of all.
        os.link(part, file)
    except FileExistsError:
        return Token(file.read_text().strip())
    finally:
        part.unlink()
    return Token(made, is_new=True)


SESSION_FOR = timedelta(days=30)


class AccessKeys:
    """Compares in constant time; without a token everything is open."""

    def __init__(self, token: str | None, clock: Callable[[], datetime]) -> None:
        self._token, self._clock = token, clock

    @property
    def is_open(self) -> bool:
        """Whether no token is asked for."""
        return self._token is None

    def is_token(self, given: str) -> bool:
        """Whether it is the token; how much of it is right takes no time to tell."""
        return self._token is not None and hmac.compare_digest(_digest(given), _digest(self._token))

    def session(self) -> str:
        """What a browser keeps in the place of the token; another token ends it."""
        expires = int((self._clock() + SESSION_FOR).timestamp())
        return f"{expires}.{self._seal(str(expires))}"

    def is_session(self, given: str | None) -> bool:
        """Whether it was given out here, not too long ago."""
        expires, _, seal = (given or "").partition(".")
        if self._token is None or not (expires.isascii() and expires.isdecimal() and len(expires) <= 12):
            return False
        is_ours = hmac.compare_digest(seal.encode(), self._seal(expires).encode())
        return is_ours and self._clock().timestamp() < int(expires)

    def _seal(self, expires: str) -> str:
        return hmac.new((self._token or "").encode(), f"mindbus session {expires}".encode(), hashlib.sha256).hexdigest()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


_ADDRESSES = 10_000


class LoginThrottle:
    """Lets an address guess so often within so long, then not for a while."""

    def __init__(self, clock: Callable[[], datetime], most: int = 10, within: timedelta = timedelta(minutes=1)) -> None:
        self._clock, self._most, self._within = clock, most, within
        self._guesses: LRUCache[str, deque[datetime]] = LRUCache(_ADDRESSES)

    def count(self, address: str) -> None:
        """It has guessed wrong."""
        guesses = self._guesses.get(address) or deque(maxlen=self._most)
        guesses.append(self._clock())
        self._guesses[address] = guesses

    def wait_s(self, address: str) -> int:
        """For how long it may not guess again; 0: it may."""
        guesses = self._guesses.get(address) or deque()
        if len(guesses) < self._most:
            return 0
        left = guesses[0] + self._within - self._clock()
        return max(0, int(left.total_seconds()) + 1) if left > timedelta(0) else 0
