"""Anchors: messages never to be forgotten, recognised by their wording (spec 002 §4.6)."""

import re

from bus_schema.episodes import AnchorReason
from memory.packing.decisions import TO_REMEMBER


def anchor_reason(text: str) -> AnchorReason | None:
    """Reason for which a user's message makes an anchor, the most explicit one first; None for most messages."""
    for reason, pattern in _PATTERNS:
        if pattern.search(text):
            return reason
    return None


def _any(*phrases: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{phrase})" for phrase in phrases), re.IGNORECASE)


# Names are case-sensitive within patterns that are not.
_NAME = r"(?-i:[A-ZА-ЯЁ])"
_START = r"(?:^|[.!?;:,\n]\s*)(?:пожалуйста,?\s+|please,?\s+)?"
_PATTERNS = (
    (AnchorReason.EXPLICIT, TO_REMEMBER),
    (
        AnchorReason.SYSTEM,
        _any(
            _START + r"(?:всегда|никогда\s+не|больше\s+не|впредь|отныне|с\s+этого\s+момента)\s+[^.!?\n]{0,40}?"
            r"\b(?:отвечай|пиши|говори|называй|обращайся|используй|начинай|добавляй|предлагай|присылай|переводи"
            r"|делай|спрашивай|объясняй|указывай|ставь)(?:те)?\b",
            r"\b(?:отвечай|пиши|говори|обращайся|называй)(?:те)?\s+(?:мне\s+|меня\s+|ко\s+мне\s+)?"
            r"(?:всегда|только|впредь|отныне)\b",
            r"\b(?:from\s+now\s+on|going\s+forward|henceforth)\b[^.!?\n]{0,40}?"
            r"\b(?:answer|reply|respond|write|speak|call|address|use|start|add|avoid|always|never|do|don't)\b",
            _START + r"(?:always|never)\s+(?:answer|reply|respond|write|speak|call|address|use|start|add|format|send"
            r"|suggest|ask|explain|include|translate)\b",
        ),
    ),
    (
        AnchorReason.PROFILE,
        _any(
            r"\bменя\s+зовут\s+" + _NAME,
            r"\bмо[её]\s+имя\s*[-—:]?\s*" + _NAME,
            r"\bя\s+(?:живу|родил(?:ся|ась)|вырос(?:ла)?)\s+(?:в|на)\s+" + _NAME,
            r"\bя\s+работаю\s+(?!над\b)(?:в|на|как|\w+(?:ом|ем|ой|ей|ером|истом))\b",
            r"\bя\s+(?:вегетариан(?:ец|ка)|веган(?:ка)?|левша|диабетик)\b",
            r"\bу\s+меня\s+(?:аллерги[яи]|непереносимость|диабет|астма)\b",
            r"\bмой\s+день\s+рождения\b",
            r"\bя\s+(?:предпочитаю|терпеть\s+не\s+могу|обожаю)\b",
            r"\bmy\s+name\s+is\s+" + _NAME,
            r"\bi\s+live\s+in\s+(?:the\s+)?" + _NAME,
            r"\bi\s+(?:was\s+born|grew\s+up)\s+in\b",
            r"\bi\s+work\s+(?:as\s+an?|at|for)\b",
            r"\bi(?:'m|\s+am)\s+(?:a\s+)?(?:vegetarian|vegan|left-handed|diabetic)\b",
            r"\bi(?:'m|\s+am)\s+allergic\s+to\b",
            r"\bmy\s+birthday\s+is\b",
            r"\bi\s+(?:prefer|can't\s+stand)\b",
        ),
    ),
    (
        AnchorReason.PROJECT,
        _any(
            r"\bдолгосрочн\w+\s+(?:проект|цел|план)\w*",
            r"\b(?:наш|мой)\s+(?:главный|основной|большой)\s+проект\b",
            r"\bпроект\w*\s+(?:на|рассчитан\w*\s+на)\s+(?:ближайш\w+\s+)?(?:\w+\s+)?(?:год|года|лет)\b",
            r"\blong[- ]?term\s+(?:project|goal|plan)\b",
            r"\b(?:our|my)\s+(?:main|biggest|big|major)\s+project\b",
            r"\bproject\s+(?:for|over)\s+the\s+(?:next|coming)\s+(?:\w+\s+)?years?\b",
        ),
    ),
)
