"""What opens the gateway: its token, or a session that the token has opened."""

import hashlib
import hmac
from collections.abc import Callable
from datetime import datetime, timedelta

SESSION_FOR = timedelta(days=30)


class Keys:
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
