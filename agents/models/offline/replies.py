"""A reply in conversation: short, in the user's language, in the words that were given."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from agents.keywords import closest_statements, statements_of
from agents.models.conversation import TALK, Conversation
from agents.models.explicit_calls import NAMES as TASK_TOOL_NAMES
from agents.models.explicit_calls import SEARCH, is_about_nothing, without_ids
from agents.models.explicit_delegation import DELEGATE
from agents.models.language_model import ModelMessage
from agents.models.offline.phrases import phrase
from agents.models.present_answers import answer_from_present
from agents.models.prompt import EARLIER, UNCERTAIN
from agents.reminder_requests import reminder_flaw
from agents.tone import analyse_tone
from language.dates.expressions import dates_in
from language.markdown import BlockKind, parse, plain
from language.sentences import is_question, sentences
from language.words import Language, first_words, language_of, terms, words

_FIGURE = re.compile(r"\d")
_QUOTABLE = (BlockKind.PROSE, BlockKind.ITEM, BlockKind.QUOTE)
_INSTRUCTED = re.compile(
    r"\A(?:\[hidden instruction\]\s*)?(?:Tell the user|Сообщи пользователю)\s*:\s*(.*?)\s*(?:\n|\Z)", re.DOTALL
)
# The first that fits a few words of courtesy.
_SMALL_TALK = {
    "listening": r"^\W*(?:ок|окей|ладно|да|нет|ага|угу|понял|поняла|понятно|ясно|хорошо|"
    r"ok|okay|yes|no|sure|fine|right|i see)\W*$",
    "about": r"\b(?:who are you|what can you do|кто (?:ты|вы)|что (?:ты|вы) (?:умеешь|умеете|можешь|можете))\b",
    "well": r"\b(?:how are you|how's it going|how do you do|как (?:\w+ )?дела|как (?:ты|вы|поживаешь|поживаете))\W*$",
    "farewell": r"^\W*(?:bye|goodbye|see you|пока|до (?:свидания|встречи|завтра|связи))\b",
    "thanks": r"\b(?:thanks|thank you|спасибо|благодар\w+)\b",
    "greeting": r"^\W*(?:hi|hello|hey|good (?:morning|afternoon|evening)|привет\w*|здравствуй\w*|"
    r"добр\w+ (?:утро|день|вечер))\b(?!.*\?\s*$)",
}
_SMALL_TALK_WORDS = 6
_NAME = r"([^\W\d_][\w’'-]*(?:\s+[^\W\d_a-zа-яё][\w’'-]*){0,2})"
_NAME_TOLD = re.compile(
    r"(?i:\bменя\s+(?:теперь\s+)?зовут|\bмо[её]\s+имя\b(?:\s+это)?|\bпользователя\s+зовут|\bимя\s+пользователя\b|"
    r"\bmy\s+name(?:\s+is|['’]s)|\bi\s*(?:am|['’]m)\s+called|\bthe\s+user['’]s\s+name\s+is|"
    rf"\bthe\s+user\s+is\s+(?:called|named))\s*[:—–-]?\s*{_NAME}"
)
_NAME_ASKED = re.compile(
    r"\bкак\s+(?:меня|пользователя)\s+зовут|\bкак\s+зовут\s+(?:меня|пользователя)|\bкто\s+я\b(?!\s+\w)|"
    r"\b(?:мо[её]\s+имя|имя\s+пользователя)\W*$|"
    r"\bwhat(?:\s+is|['’]s)\s+(?:my|the\s+user['’]s)\s+name|\bwhat\s+(?:my|the\s+user['’]s)\s+name\s+is|"
    r"\bwho\s+(?:am\s+i|i\s+am)\b|\bwhat\s+(?:am\s+i|is\s+the\s+user)\s+(?:called|named)|"
    r"\b(?:my|the\s+user['’]s)\s+name\W*$",
    re.IGNORECASE,
)
_NO_NAMES = frozenset({"как", "не", "так", "кто", "что", "what", "not", "who", "and", "и", "а", "is"})
_QUOTED_WORDS = 24
_ANSWERS, _RELATES = 0.5, 0.4
_FELT = 0.35
_REPORTED_WORDS = 200


def reply_to(conversation: Conversation) -> str:
    """The next turn; the same conversation gets the same reply."""
    said = conversation.instruction or conversation.words
    language = _language(said, conversation)
    if conversation.instruction:
        instructed = _INSTRUCTED.search(conversation.instruction)
        return phrase(language, "reminder", said, said=instructed[1] if instructed else conversation.instruction)
    if reported := _reported(conversation.results, language):
        return reported
    if flaw := _flaw_of_reminder(said, conversation):
        return phrase(language, flaw, said)
    if current := answer_from_present(said, conversation.present, language):
        name = _about_name(said, conversation, language) if asks_name(said) else ""
        return f"{name} {current}".strip()
    if courtesy := _about_name(said, conversation, language) or _small_talk(said, language):
        return courtesy
    return _answer(said, conversation, language) if is_question(said) else _acknowledged(said, conversation, language)


def knows_answer(conversation: Conversation) -> bool:
    """Check whether memory or the user's own words answer the question, so that no tool is needed."""
    told = _earlier_statements(conversation)
    if answer_from_present(conversation.words, conversation.present, Language.ENGLISH):
        return True
    if asks_name(conversation.words):
        return (introduced_name(told) or _name_on_record(conversation)) is not None
    return bool(closest_statements(conversation.words, [*_remembered(conversation), *told], _ANSWERS))


def _reported(results: Sequence[ModelMessage], language: Language) -> str:
    """Answers of sub-agents and tools; what was looked up counts as remembered instead."""
    lines = []
    for result in results:
        name = result.name or ""
        if name.startswith(DELEGATE):
            about = {"name": name.removeprefix(DELEGATE), "said": result.content}
            lines.append(phrase(language, "subagent_said", result.content, **about))
        elif name in TASK_TOOL_NAMES:
            lines += [] if is_about_nothing(result) else [without_ids(result.content)]
        elif name != SEARCH:
            lines.append(first_words(result.content, _REPORTED_WORDS))
    return "\n\n".join(lines)


def _flaw_of_reminder(said: str, conversation: Conversation) -> str:
    """The key of the question that a request for a reminder leaves open; empty where there is none."""
    flaw = reminder_flaw(said, conversation.present.now) if conversation.present else None
    return {"past": "reminder_past", "empty": "reminder_empty", None: ""}[flaw]


def _about_name(said: str, conversation: Conversation, language: Language) -> str:
    if asks_name(said):
        name = introduced_name([*_earlier_statements(conversation), *_remembered(conversation)]) or _name_on_record(
            conversation
        )
        return phrase(language, "your_name" if name else "unknown", said, said=name)
    rest = _NAME_TOLD.sub("", said)
    name = introduced_name([said]) if rest != said and not re.search(r"\w{4,}", rest) else None
    return phrase(language, "name_noted", said, said=name) if name else ""


def _name_on_record(conversation: Conversation) -> str | None:
    return conversation.present.name if conversation.present else None


def asks_name(text: str) -> bool:
    return bool(_NAME_ASKED.search(text))


def introduced_name(texts: Iterable[str]) -> str | None:
    """The name that was told last, the latest text first."""
    for text in texts:
        names = [match[1] for match in _NAME_TOLD.finditer(text) if match[1].lower() not in _NO_NAMES]
        if names and not asks_name(text):
            return names[-1]
    return None


def _small_talk(said: str, language: Language) -> str:
    if len(words(said)) > _SMALL_TALK_WORDS:
        return ""
    kind = next((kind for kind, pattern in _SMALL_TALK.items() if re.search(pattern, said, re.IGNORECASE)), None)
    return phrase(language, kind, said) if kind else ""


def _earlier_statements(conversation: Conversation) -> list[str]:
    return statements_of(turn.text for turn in conversation.earlier if turn.role == "user")


def _remembered(conversation: Conversation) -> list[str]:
    """Sentences of what memory gave, where it is certain, and of what was looked up."""
    looked_up = [result.content for result in conversation.results if result.name == SEARCH]
    return _sentences_of(
        [*(piece.text for piece in conversation.memory if piece.type not in (TALK, EARLIER, UNCERTAIN)), *looked_up]
    )


def _uncertain(conversation: Conversation) -> list[str]:
    return _sentences_of(piece.text for piece in conversation.memory if piece.type == UNCERTAIN)


def _sentences_of(texts: Iterable[str]) -> list[str]:
    quotable = (block.text for text in texts for block in parse(text) if block.kind in _QUOTABLE)
    return list(dict.fromkeys(sentence for text in quotable for sentence in sentences(plain(text))))


def _language(said: str, conversation: Conversation) -> Language:
    """A word or two may be in any language; what was said before tells."""
    if len(words(said)) >= 2 or not conversation.earlier:
        return language_of(said)
    return language_of(" ".join([*(turn.text for turn in conversation.earlier if turn.role == "user"), said]))


def _answer(question: str, conversation: Conversation, language: Language) -> str:
    sources = {
        "known": _remembered(conversation),
        "you_said": _earlier_statements(conversation),
        "not_sure": _uncertain(conversation),
    }
    for key, candidates in sources.items():
        if found := closest_statements(question, candidates, _ANSWERS):
            return phrase(language, key, question, said=" ".join(map(_quoted, found)))
    return phrase(language, "unknown", question)


def _acknowledged(said: str, conversation: Conversation, language: Language) -> str:
    parts = []
    tone = analyse_tone(said).value
    if abs(tone) >= _FELT:
        parts.append(phrase(language, "good_news" if tone > 0 else "bad_news", said))
    matter = sorted(sentences(said), key=lambda each: (not _is_definite(each), -len(set(terms(each)))))
    if matter and terms(matter[0]):
        parts.append(phrase(language, "understood", said, said=_quoted(matter[0])))
    related = [each for each in closest_statements(said, _remembered(conversation), _RELATES) if each not in said]
    if related:
        parts.append(phrase(language, "related", said, said=_quoted(related[0])))
    return " ".join(parts) or phrase(language, "listening", said)


def _is_definite(sentence: str) -> bool:
    return bool(_FIGURE.search(sentence) or dates_in(sentence, datetime(2000, 1, 1, tzinfo=UTC)))


def _quoted(text: str) -> str:
    short = first_words(" ".join(text.split()), _QUOTED_WORDS)
    return short if short[-1:] in ".!?…" else f"{short}."
