"""Whoever looks at a screen: their language, their clock, the size of their window."""

from dataclasses import dataclass
from datetime import tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fastapi import Request
from nicegui import ui

from gateway.ui.i18n import Localizer, language_of

_LEARN_WITHIN_S = 5.0
_UTC = ZoneInfo("UTC")


@dataclass(frozen=True)
class ClientInfo:
    """What is known of them; nothing of it is kept here."""

    i18n: Localizer
    is_phone: bool = False
    is_mac: bool = False
    width: int = 1280
    height: int = 800

    @property
    def find_keys(self) -> str:
        """How the palette is called on their keyboard."""
        return "⌘K" if self.is_mac else "Ctrl K"


def localizer_of(request: Request) -> Localizer:
    """What can be told from the request alone: the language, and the time zone of an earlier visit."""
    language = language_of(request.cookies.get("mb_lang"), request.headers.get("accept-language", ""))
    return Localizer(language, _zone(request.cookies.get("mb_zone", "")))


async def client_info(i18n: Localizer) -> ClientInfo:
    """What only the browser knows, once it is there."""
    await ui.context.client.connected(timeout=_LEARN_WITHIN_S)
    facts: dict[str, Any] = await ui.run_javascript("return mbFacts()", timeout=_LEARN_WITHIN_S)
    return ClientInfo(
        i18n=Localizer(i18n.language, _zone(str(facts["zone"]))),
        is_phone=bool(facts["phone"]),
        is_mac=bool(facts["mac"]),
        width=int(facts["width"]),
        height=int(facts["height"]),
    )


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name.replace("%2F", "/")) if name else _UTC
    except (ZoneInfoNotFoundError, ValueError):
        return _UTC
