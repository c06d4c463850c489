"""A turn of conversation without a language model: short, in the user's language, in the words that were given."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from agents.dates.reading import dates_in
from agents.markdown import Kind, parse, plain
from agents.models.conversation import Conversation
from agents.models.replying.phrases import PHRASES, Phrases
from agents.salience import coverage, rarity
from agents.text import Language, first_words, language_of, sentences, terms, words
from agents.tone.hearing import tone_of

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
_ASKING = re.compile(
    r"^\W*(?:(?:а|и|так|and|so|but)\s+)?(?:who|what|when|where|why|how|which|whose|do|does|did|is|are|can|could|should|"
    r"кто|что|когда|где|куда|почему|зачем|как|какой|какая|какие|каком|сколько|чей|чья|напомни)\b",
    re.IGNORECASE,
)
_WANTS_FIGURE = re.compile(
    r"\b(?:when|how (?:much|many|long)|what time|когда|сколько|во сколько|какого числа)\b", re.IGNORECASE
)
_FIGURE = re.compile(r"\d")
_SAYS = (Kind.PROSE, Kind.ITEM, Kind.QUOTE)
_INSTRUCTED = re.compile(
    r"\A(?:\[hidden instruction\]\s*)?(?:Tell the user|Сообщи пользователю)\s*:\s*(.*?)\s*(?:\n|\Z)", re.DOTALL
)
_SHORT_WORDS = 6
_QUOTED_WORDS = 24
_ANSWERS = 0.5
_RELATES = 0.4
_FELT = 0.35
_MOST_TOLD = 2


def reply_to(asked: Conversation) -> str:
    """Deterministic: the same conversation gets the same reply."""
    spoken = asked.instruction or asked.words
    phrases = PHRASES[_language(spoken, asked)]
    if asked.instruction:
        told = _INSTRUCTED.search(asked.instruction)
        return _one(phrases.reminder, spoken).format(said=told[1] if told else asked.instruction)
    chat = _small_talk(spoken, phrases)
    if chat:
        return chat
    return _answer(spoken, asked, phrases) if _is_question(spoken) else _acknowledgement(spoken, asked, phrases)


def _language(spoken: str, asked: Conversation) -> Language:
    """A word or two may be in any language; what was said before tells."""
    if len(words(spoken)) >= 2 or not asked.earlier:
        return language_of(spoken)
    return language_of(" ".join([*(turn.text for turn in asked.earlier if turn.role == "user"), spoken]))


def _is_question(spoken: str) -> bool:
    last = sentences(spoken)[-1:] or [""]
    return last[0].rstrip(')»" ').endswith("?") or bool(_ASKING.match(last[0]) and len(words(last[0])) > 1)


def _small_talk(spoken: str, phrases: Phrases) -> str:
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
            return _one(wordings, spoken)
    return ""


def _answer(question: str, asked: Conversation, phrases: Phrases) -> str:
    known = _remembered(asked)
    said = [sentence for turn in asked.earlier if turn.role == "user" for sentence in sentences(turn.text)]
    told = [each for each in dict.fromkeys(said) if not each.endswith("?")]
    found = _best(question, known, _ANSWERS)
    if found:
        return _one(phrases.known, question).format(said=_in_one(found))
    found = _best(question, told[::-1], _ANSWERS)
    return _one(phrases.you_said, question).format(said=_in_one(found)) if found else _one(phrases.unknown, question)


def _acknowledgement(spoken: str, asked: Conversation, phrases: Phrases) -> str:
    parts = []
    tone = tone_of(spoken)
    if abs(tone.value) >= _FELT:
        parts.append(_one(phrases.good_news if tone.value > 0 else phrases.bad_news, spoken))
    matter = sorted(sentences(spoken), key=lambda each: (not _is_definite(each), -len(set(terms(each)))))
    if matter and terms(matter[0]):
        parts.append(_one(phrases.understood, spoken).format(said=_quoted(matter[0])))
    related = [each for each in _best(spoken, _remembered(asked), _RELATES) if each not in spoken]
    if related:
        parts.append(_one(phrases.related, spoken).format(said=_in_one(related[:1])))
    return " ".join(parts) or _one(phrases.listening, spoken)


def _remembered(asked: Conversation) -> list[str]:
    """What is kept in mind, by sentences: of a document only those are quoted that bear on the matter."""
    prose = (block.text for piece in asked.memory for block in parse(piece.text) if block.kind in _SAYS)
    return list(dict.fromkeys(sentence for text in prose for sentence in sentences(plain(text))))


def _is_definite(sentence: str) -> bool:
    # Whether there is a date, not which.
    return bool(_FIGURE.search(sentence) or dates_in(sentence, datetime(2000, 1, 1, tzinfo=UTC)))


def _best(spoken: str, candidates: Sequence[str], least: float) -> list[str]:
    """The candidates that say the most of what was asked, a figure first where one was asked for."""
    asked = terms(spoken)
    weights = rarity([spoken, *candidates])
    wants_figure = bool(_WANTS_FIGURE.search(spoken))
    scored = [
        (coverage(asked, terms(each), weights), wants_figure and bool(_FIGURE.search(each)), -place, each)
        for place, each in enumerate(candidates)
    ]
    return [each for score, _, _, each in sorted(scored, reverse=True) if asked and score >= least][:_MOST_TOLD]


def _in_one(found: Iterable[str]) -> str:
    return " ".join(_quoted(each) for each in found)


def _quoted(text: str) -> str:
    short = first_words(" ".join(text.split()), _QUOTED_WORDS)
    return short if short[-1:] in ".!?…" else f"{short}."


def _one(wordings: Sequence[str], of: str) -> str:
    """One of several wordings, always the same for the same words."""
    return wordings[hashlib.sha256(of.encode()).digest()[0] % len(wordings)]
