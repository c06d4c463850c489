"""A turn of conversation without a language model: short, in the user's language, in the words that were given."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from agents.keywords import inverse_document_frequency, weighted_overlap
from agents.models.conversation import TALK, Conversation
from agents.models.language_model import ModelMessage
from agents.models.replying.delegating import DELEGATE
from agents.models.replying.naming import asks_who_they_are, name_told, only_tells_name
from agents.models.replying.phrases import PHRASES, Phrases
from agents.models.replying.small_talk import one_of, small_talk
from agents.models.replying.tool_use import SEARCH
from agents.tone import analyse_tone
from language.dates.reading import dates_in
from language.markdown import Kind, parse, plain
from language.sentences import sentences
from language.words import Language, first_words, language_of, terms, words

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
_QUOTED_WORDS = 24
_ANSWERS = 0.5
_RELATES = 0.4
_FELT = 0.35
_MOST_TOLD = 2
_REPORTED_WORDS = 200


def reply_to(asked: Conversation) -> str:
    """Deterministic: the same conversation gets the same reply."""
    spoken = asked.instruction or asked.words
    phrases = PHRASES[_language(spoken, asked)]
    if asked.instruction:
        told = _INSTRUCTED.search(asked.instruction)
        return one_of(phrases.reminder, spoken).format(said=told[1] if told else asked.instruction)
    if asked.results and (reported := _reported(asked.results, phrases)):
        return reported
    chat = _name(spoken, asked, phrases) or small_talk(spoken, phrases)
    if chat:
        return chat
    return _answer(spoken, asked, phrases) if _is_question(spoken) else _acknowledgement(spoken, asked, phrases)


def knows_answer(asked: Conversation) -> bool:
    """Whether what was said or is remembered answers the question, so that nobody need be asked."""
    said = _told(asked)
    if asks_who_they_are(asked.words):
        return name_told(said) is not None
    return bool(_best(asked.words, [*_remembered(asked), *said], _ANSWERS))


def _reported(results: Sequence[ModelMessage], phrases: Phrases) -> str:
    """What sub-agents and tools have answered; what was looked up is remembered instead."""
    lines = []
    for result in results:
        name = result.name or ""
        if name.startswith(DELEGATE):
            said = {"name": name.removeprefix(DELEGATE), "said": result.content}
            lines.append(one_of(phrases.subagent_said, result.content).format(**said))
        elif name != SEARCH:
            lines.append(first_words(result.content, _REPORTED_WORDS))
    return "\n\n".join(lines)


def _name(spoken: str, asked: Conversation, phrases: Phrases) -> str:
    """Who somebody is they have said, to be taken up or to be told again."""
    if asks_who_they_are(spoken):
        name = name_told([*_told(asked), *_remembered(asked)])
        return one_of(phrases.your_name if name else phrases.unknown, spoken).format(said=name)
    name = name_told([spoken]) if only_tells_name(spoken) else None
    return one_of(phrases.name_noted, spoken).format(said=name) if name else ""


def _told(asked: Conversation) -> list[str]:
    """What the user has said before, the latest first, but for questions."""
    said = [sentence for turn in asked.earlier if turn.role == "user" for sentence in sentences(turn.text)]
    return [each for each in dict.fromkeys(said) if not each.endswith("?")][::-1]


def _language(spoken: str, asked: Conversation) -> Language:
    """A word or two may be in any language; what was said before tells."""
    if len(words(spoken)) >= 2 or not asked.earlier:
        return language_of(spoken)
    return language_of(" ".join([*(turn.text for turn in asked.earlier if turn.role == "user"), spoken]))


def _is_question(spoken: str) -> bool:
    last = sentences(spoken)[-1:] or [""]
    return last[0].rstrip(')»" ').endswith("?") or bool(_ASKING.match(last[0]) and len(words(last[0])) > 1)


def _answer(question: str, asked: Conversation, phrases: Phrases) -> str:
    known = _remembered(asked)
    told = _told(asked)
    found = _best(question, known, _ANSWERS)
    if found:
        return one_of(phrases.known, question).format(said=_in_one(found))
    found = _best(question, told, _ANSWERS)
    return (
        one_of(phrases.you_said, question).format(said=_in_one(found)) if found else one_of(phrases.unknown, question)
    )


def _acknowledgement(spoken: str, asked: Conversation, phrases: Phrases) -> str:
    parts = []
    tone = analyse_tone(spoken)
    if abs(tone.value) >= _FELT:
        parts.append(one_of(phrases.good_news if tone.value > 0 else phrases.bad_news, spoken))
    matter = sorted(sentences(spoken), key=lambda each: (not _is_definite(each), -len(set(terms(each)))))
    if matter and terms(matter[0]):
        parts.append(one_of(phrases.understood, spoken).format(said=_quoted(matter[0])))
    related = [each for each in _best(spoken, _remembered(asked), _RELATES) if each not in spoken]
    if related:
        parts.append(one_of(phrases.related, spoken).format(said=_in_one(related[:1])))
    return " ".join(parts) or one_of(phrases.listening, spoken)


def _remembered(asked: Conversation) -> list[str]:
    """What is kept in mind, by sentences: of a document only those are quoted that bear on the matter."""
    looked_up = [result.content for result in asked.results if result.name == SEARCH]
    texts = [*(piece.text for piece in asked.memory if piece.type != TALK), *looked_up]
    prose = (block.text for text in texts for block in parse(text) if block.kind in _SAYS)
    return list(dict.fromkeys(sentence for said in prose for sentence in sentences(plain(said))))


def _is_definite(sentence: str) -> bool:
    # Whether there is a date, not which.
    return bool(_FIGURE.search(sentence) or dates_in(sentence, datetime(2000, 1, 1, tzinfo=UTC)))


def _best(spoken: str, candidates: Sequence[str], least: float) -> list[str]:
    """The candidates that say the most of what was asked, a figure first where one was asked for."""
    asked = terms(spoken)
    weights = inverse_document_frequency([spoken, *candidates])
    wants_figure = bool(_WANTS_FIGURE.search(spoken))
    scored = [
        (weighted_overlap(asked, terms(each), weights), wants_figure and bool(_FIGURE.search(each)), -place, each)
        for place, each in enumerate(candidates)
    ]
    return [each for score, _, _, each in sorted(scored, reverse=True) if asked and score >= least][:_MOST_TOLD]


def _in_one(found: Iterable[str]) -> str:
    return " ".join(_quoted(each) for each in found)


def _quoted(text: str) -> str:
    short = first_words(" ".join(text.split()), _QUOTED_WORDS)
    return short if short[-1:] in ".!?…" else f"{short}."
