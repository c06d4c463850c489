"""Signed addresses of files in a folder, which storage signs and the gateway serves."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

from mindbus.files.disk import write_private_once

PATH = "/files"
_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class FileAddress:
    """A place in the store, for one method until it expires (seconds since 1970); of an upload, these bytes alone."""

    method: Literal["GET", "PUT"]
    place: str
    expires: int
    sha256: str = ""
    size_bytes: int = 0

    def url(self, base_url: str, key: str) -> str:
        """The address under the gateway's URL."""
        bytes_ = {"sha256": self.sha256, "size_bytes": self.size_bytes} if self.method == "PUT" else {}
        query = urlencode({"expires": self.expires, **bytes_, "signature": self._signature(key)})
        return f"{base_url.rstrip('/')}{PATH}/{self.place}?{query}"

    def is_valid(self, signature: str, key: str, now: datetime) -> bool:
        """Whether this is what was signed, and is in time."""
        is_signed = hmac.compare_digest(signature.encode(), self._signature(key).encode())
        return is_signed and now.timestamp() < self.expires

    def _signature(self, key: str) -> str:
        signed = "\n".join((self.method, self.place, str(self.expires), self.sha256, str(self.size_bytes)))
        return hmac.new(key.encode(), signed.encode(), hashlib.sha256).hexdigest()


def signing_key(root: Path) -> str:
    """The key of a store: whoever may read the store may sign. It is made at its first use."""
    return write_private_once(root / ".signing_key", secrets.token_hex(_KEY_BYTES))[0]
