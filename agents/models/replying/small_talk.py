"""Greetings, thanks and the like, answered in kind."""

import hashlib
import re
from collections.abc import Sequence

from agents.models.replying.phrases import Phrases
from language.words import words

_GREETING = re.compile(
    r"^\W*(?:hi|hello|hey|good (?:morning|afternoon|evening)|привет\w*|здравствуй\w*|добр\w+ (?:утро|день|вечер))\b",
    re.IGNORECASE,
)
_THANKS = re.compile(r"\b(?:thanks|thank you|спасибо|благодар\w+)\b", re.IGNORECASE)
_FAREWELL = re.compile(r"^\W*(?:bye|goodbye|see you|пока|до (?:свидания|встречи|завтра|связи))\b", re.IGNORECASE)
_WELL = re.compile(
    r"\b(?:how are you|how's it going|how do you do|как (?:\w+ )?дела|как (?:ты|вы|поживаешь|поживаете))\W*$",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"\b(?:who are you|what can you do|кто (?:ты|вы)|что (?:ты|вы) (?:умеешь|умеете|можешь|можете))\b", re.IGNORECASE
)
_NOD = re.compile(
    r"^\W*(?:ок|окей|ладно|да|нет|ага|угу|понял|поняла|понятно|ясно|хорошо|ok|okay|yes|no|sure|fine|right|i see)\W*$",
    re.IGNORECASE,
)
_SHORT_WORDS = 6


def small_talk(spoken: str, phrases: Phrases) -> str:
    """The answer to a few words of courtesy; nothing to anything else."""
    if len(words(spoken)) > _SHORT_WORDS:
        return ""
    for pattern, wordings in (
        (_NOD, phrases.listening),
        (_ABOUT, phrases.about),
        (_WELL, phrases.well),
        (_FAREWELL, phrases.farewell),
        (_THANKS, phrases.thanks),
        (_GREETING, phrases.greeting),
    ):
        if pattern.search(spoken) and (wordings is not phrases.greeting or not spoken.rstrip().endswith("?")):
            return one_of(wordings, spoken)
    return ""


def one_of(wordings: Sequence[str], of: str) -> str:
    """One of several wordings, always the same for the same words."""
    return wordings[hashlib.sha256(of.encode()).digest()[0] % len(wordings)]
