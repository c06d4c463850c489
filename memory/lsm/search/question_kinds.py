"""Kinds of answers that a question asks for: an overview, an order, every time, what holds now; kinds of notes."""

import re
from collections.abc import Iterator

from bus_schema.episodes import NoteKind

_OVERVIEW = re.compile(
    r"\b(?:summar(?:y|ise|ize)|overview|recap|in general|what (?:have|did|were) we (?:talk|discuss|speak|decid)\w*"
    r"|what (?:was|were|is|has been) (?:\w+ ){0,2}(?:discussed|decided|agreed)|remind me what we|tell me about our"
    r"|о ч[её]м мы|что мы (?:обсуждали|решили|решали|выбрали)"
    r"|на ч[её]м (?:мы )?(?:остановились|сошлись)|что было решено"
    r"|кратко|вкратце|в общих чертах|итоги?|резюме|подытожь|напомни,? (?:о ч[её]м|что мы))\b",
    re.IGNORECASE,
)
_IN_ORDER = re.compile(
    r"\b(?:(?:in )?(?:what|which) (?:order|sequence)|(?:the )?order in which|chronological(?:ly)?|timeline of"
    r"|in (?:the )?(?:right|correct|exact|proper) (?:order|sequence)"
    r"|in order(?=\s*(?:[?.!]|$))"
    r"|в как(?:ом порядке|ой последовательности)|хронологи\w+|по порядку)\b",
    re.IGNORECASE,
)
# Ready, or allowed: «Is my visa in order?»
_IS_IN_ORDER = re.compile(r"^\W*(?:is|are|was|were)\b[^,]* in order\W*$", re.IGNORECASE)
_HOW_OFTEN = re.compile(
    r"\b(?:how (?:often|frequently|many times)|on how many occasions|(?:the )?number of times"
    r"|(?:every|each) time (?:i|we)|all the times|(?:как|насколько) часто|часто ли|(?:сколько|как много) раз"
    r"|каждый раз,? когда|все случаи)\b",
    re.IGNORECASE,
)
_CURRENT = re.compile(
    r"\b(?:now|nowadays|current(?:ly)?|these days|latest|most recent(?:ly)?|at the moment|still|any ?more"
    r"|(?:any|no) longer|up to date|(?:has|have|been|is|are|did|what) (?:[\w'’-]+ ){0,7}?changed"
    r"|did (?:[\w'’-]+ ){1,7}?change(?=\s*(?:[?.!,;]|$|since|after|from|to|because|again))"
    r"|сейчас|теперь|вс[её] ещ[её]|по-прежнему|до сих пор|(?:текущ|нынешн|актуальн)\w+"
    r"|(?:измени|поменя|смени|передума)\w+|в итоге|больше не)\b",
    re.IGNORECASE,
)
_OF_A_PAST_TIME = re.compile(
    r"\b(?:(?:19|20)\d\d|ago|last (?:week|month|year|spring|summer|autumn|fall|winter)|back then"
    r"|назад|прошл\w+|тогда)\b",
    re.IGNORECASE,
)
# Advice, rates and habits: they are told once, as a rule.
_ADVISED = re.compile(
    r"\b(?:should|ought|must (?:i|we|you|one)|do(?:es)? (?:\w+ ){1,3}(?:need|have) to|supposed to"
    r"|times (?:an?|per|each|every) (?:hour|day|night|week|month|year)"
    r"|(?:надо|нужно|можно|следует|долж(?:ен|н\w+))(?! был)|стоит(?= \w+(?:ть|ться|ти|чь)\b)|на все случаи"
    r"|раз в (?:час|день(?! рожд)|сутки|неделю|месяц|год))\b"
    r"|\b(?:(?:do|will|would) you|ты|вы)\b(?! (?:please )?(?:remember|recall|list|помни\w*|може\w*|смож\w*))"
    r".*\b(?:(?:every|each) time|каждый раз)\b",
    re.IGNORECASE,
)
# Kinds of notes by the words of the questions that ask for them.
_ASKS_FOR_NOTES: tuple[tuple[NoteKind, re.Pattern[str]], ...] = (
    (
        "event",
        re.compile(
            r"\b(?:did|has|have|had|was|were|when|когда|был[аои]?|[а-яё]{2,}(?:л|ла|ло|ли|лся|лась|лось|лись))\b",
            re.IGNORECASE,
        ),
    ),
    (
        "preference",
        re.compile(
            r"\b(?:(?<!would )(?<!look )(?<!looks )like[sd]?|love[sd]?|enjoy\w*|prefer\w*|favou?rites?|allerg\w+|hates?"
            r"|dislikes?|предпоч\w+|любим\w+|люб(?:лю|ит|ишь|ят|им)|нрав\w+|аллерги\w+|ненави\w+|терпеть не)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "instruction",
        re.compile(
            r"\b(?:i|we)(?:'ve| have)? (?:\w+ )?(?:ask|told|tell|instruct|request|want)(?:ed|s)? you\b"
            r"|\bmy instructions?\b"
            r"|\b(?:should|must) you\b|\byou supposed to\b|\bя (?:тебя |тебе )?(?:\w+ )?(?:прос\w+|велел\w*|наказ\w+)\b"
            r"|\bмо[яиё]\w? (?:указани\w+|инструкци\w+|просьб\w+)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "number",
        re.compile(
            r"\b(?:how (?:many(?! times)|much|long|old|far|big|large|tall|heavy|fast)|сколько(?! раз)|почём"
            r"|what (?:percent\w*|number|amount|age|price|cost|score|budget)|как(?:ая|ой|ую|ого) (?:сумм\w+|возраст\w*"
            r"|бюджет\w*|процент\w*|цен\w+|стоимость|номер\w*))\b",
            re.IGNORECASE,
        ),
    ),
)


def is_overview(question: str) -> bool:
    """Whether a question asks for an overview, which packs answer, rather than for details, which turns answer.

    Measured: packs alone answer a third of the questions for details, raw turns nearly all.
    """
    return _OVERVIEW.search(question) is not None


def asks_for_order(question: str) -> bool:
    """Whether a question asks in what order things were."""
    return _IN_ORDER.search(question) is not None and _IS_IN_ORDER.search(question) is None


def asks_how_often(question: str) -> bool:
    """Whether a question asks how often something was, hence for every time that it was told of."""
    return _HOW_OFTEN.search(question) is not None and _ADVISED.search(question) is None


def asks_for_current(question: str) -> bool:
    """Whether a question says itself that it asks how something stands now, or whether it has changed."""
    return _CURRENT.search(question) is not None and _OF_A_PAST_TIME.search(question) is None


def note_kinds(question: str) -> frozenset[NoteKind]:
    """Kinds of notes that a question asks for."""
    return frozenset(kind for kind, pattern in _ASKS_FOR_NOTES if pattern.search(question))


def words_of_kind(question: str) -> Iterator[str]:
    """The words by which a question is known to ask for an overview or an order."""
    for pattern in (_OVERVIEW, _IN_ORDER):
        yield from (each[0] for each in pattern.finditer(question))
