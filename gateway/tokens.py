"""The token of the gateway: as set, or made once, then kept."""

import ipaddress
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

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
