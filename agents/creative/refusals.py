"""Refusals of a model, told from texts that quote, rhyme or report one."""

import re

from language.words import words

# A longer text that begins so goes on to do what it was asked for.
_LONGEST_WORDS = 120
_VERSE_LINES, _VERSE_WORDS = 4, 10
_HEADING = re.compile(r"\A\s*#{1,6}[^\n]*\n+")
_LIST_ITEM = re.compile(r"\s*(?:[-*•]|\d+[.)])\s")


def _any(*patterns: str) -> str:
    return f"(?:{'|'.join(patterns)})"


_CANNOT = _any(
    r"can(?:no|['’])t",
    "can not",
    r"could(?:n['’]t| not)",
    r"won['’]t",
    "will not",
    r"(?:am|are) (?:not able|unable)",
    r"['’](?:m|re) (?:not able|unable)",
    "(?:must|have to) decline",
)
_SERVE = _any(
    "accommodate",
    "answer",
    "assist",
    "complet",
    "comply",
    "continu",
    "creat",
    "discuss",
    "do (?:that|this|so)",
    "engage",
    "fulfil",
    "generat",
    "help",
    "offer",
    "proceed",
    "process",
    "produc",
    "provide",
    "respond",
    "support",
    "writ",
)
_ENGLISH_OPENING = _any(
    r"(?:i['’]m|i am|we['’]re|we are) (?:(?:very|so|really|deeply|truly) )?(?:sorry|afraid)",
    "sorry",
    "(?:i|we) apologi[sz]e",
    "my apologies",
    "unfortunately",
    "regrettably",
    r"(?:(?:i['’]m|i am) )?(?:as |just )?an? (?:ai|artificial intelligence)\b",
    r"(?:(?:i['’]m|i am) )?(?:as |just )?an? (?:large )?language model\b",
    rf"i ?{_CANNOT}",
    rf"we ?{_CANNOT}(?: \w+)? {_SERVE}\w* (?:with )?(?:this|that|your)",
    "i decline",
    r"i (?:do not|don['’]t) (?:feel comfortable|have the ability)",
)
_ENGLISH_INABILITY = _any(
    rf"\b(?:i|we) ?{_CANNOT}(?: \w+){{0,3}}? (?:to )?{_SERVE}",
    r"\bi (?:do not|don['’]t) (?:have the ability|feel comfortable)",
    r"\bi decline\b",
    rf"\bunable to {_SERVE}",
    r"\b(?:against|violat\w+) (?:my|our|the) (?:guidelines|polic|programming)",
)
_RUSSIAN_SERVE = _any(
    "помо[чг]",
    "выполн",
    "напис",
    "писать",
    "созда",
    "предостав",
    "ответ",
    "отвеч",
    "продолж",
    "с?делать",
    "обсу",
    "состав",
    "предл",
    "с?генерир",
    "подготов",
    "обработ",
    "этого",
    "это",
)
_I_AM = "(?:всего лишь |лишь |просто )?"
_MACHINE = _any(r"(?:большая )?языковая модель", r"ии\b", r"ai\b", "искусственный интеллект", r"нейросет\w+")
_RUSSIAN_CANNOT = _any("не (?:могу|смогу|можем|умею)", "не в состоянии", "не имею возможности", r"не способ\w+")
_RUSSIAN_OPENING = _any(
    "извин(?:и|ите|яюсь)",
    r"прост(?:и|ите)\b",
    "прошу прощения",
    "сожалею",
    "мне (?:очень )?жаль",
    "к сожалению",
    "увы",
    rf"как {_MACHINE}",
    rf"я(?: [—–-])? {_I_AM}{_MACHINE}",
    rf"(?:я )?{_RUSSIAN_CANNOT}",
    r"(?:я )?вынужден\w* отказ",
)
_RUSSIAN_INABILITY = _any(
    rf"\b{_RUSSIAN_CANNOT} (?:[\w-]+ ){{0,3}}?{_RUSSIAN_SERVE}",
    r"\bвынужден\w* отказ",
    "не (?:могу|смогу) с этим",
    r"\bотказываюсь (?:выполн|помо|писа|отвеч)",
)
_PAIRS = tuple(
    (re.compile(opening, re.IGNORECASE), re.compile(inability, re.IGNORECASE))
    for opening, inability in ((_ENGLISH_OPENING, _ENGLISH_INABILITY), (_RUSSIAN_OPENING, _RUSSIAN_INABILITY))
)


def is_refusal(text: str) -> bool:
    """Whether the whole output is a refusal: it begins like one, says that it will not serve, and ends soon.

    A longer text, verse, and one that quotes a refusal are none.
    """
    said = _HEADING.sub("", text).strip().lstrip("*_ ")
    if len(words(said)) > _LONGEST_WORDS or _is_verse(said):
        return False
    line = " ".join(said.split())
    return any(opening.match(line) and inability.search(line) for opening, inability in _PAIRS)


def _is_verse(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    is_list = any(map(_LIST_ITEM.match, lines))
    return len(lines) >= _VERSE_LINES and not is_list and all(len(line.split()) <= _VERSE_WORDS for line in lines)
