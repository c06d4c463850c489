"""Questions to a chat: words, speakers, clauses, the time that they name, and what kind of answer they ask for."""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime

from bus_schema.episodes import NoteKind
from language.dates.intervals import Interval, NamedTime, time_in
from language.word_lists import (
    ANSWER_FORM_WORDS,
    ANSWERING_VERBS,
    COUNTING_WORDS,
    COURSE_WORDS,
    EVENT_WORDS,
    OVERVIEW_WORDS,
    SEARCH_STOP_WORDS,
)
from language.words import query_stems, small_talk_stems, words

_CLAUSE_END = re.compile(r"[?;]\s+|,?\s+(?:and|or|as well as|but|и|или|а также|но)\s+", re.IGNORECASE)
_MAX_CLAUSES = 4
_WORD = re.compile(r"[^\W\d_][\w'’-]+")
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
# What the assistant has said, as opposed to what it would say.
_OF_ASSISTANT = re.compile(
    r"\b(?:did you (?:[\w']+ ){0,2}(?:recommend|suggest|tell|advise|explain|say|answer|give|guide|propose|describe)"
    r"|you(?: had| have|['’]ve)? (?:recommended|suggested|told|advised|explained|said|answered|gave|guided|proposed)"
    r"|your (?:advice|recommendations?|suggestions?|explanations?)"
    r"|(?:ты|вы) (?:\w+ ){0,2}(?:(?:по)?(?:совето|рекомендо)вал|предлагал|предложил|сказал|говорил|ответил|отвечал"
    r"|объяснил|объяснял)[аи]?|(?:тво|ваш)\w{0,3} (?:совет|ответ|рекомендаци|предложени|объяснени)\w*)\b",
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
_SURELY_TIME = re.compile(
    r"\d|\b(?:ago|last|past|previous|yesterday|today|morning|between|from|since|starting|after|before|назад|прошл\w+"
    r"|последн\w+|вчера|позавчера|сегодня|между|с|со|от|после)\b",
    re.IGNORECASE,
)
_LEADS_TO_TIME = re.compile(r"\b(?:in|during|of|throughout|over|в|во|за|на)\s+$", re.IGNORECASE)
_WAS = re.compile(
    r"\b(?:did|was|were|have|has|had|happened|occurred|went|discussed|talked|said|told|mentioned|new"
    r"|tell me about|расскажи\w*"
    r"|был[аои]?|[а-яё]+(?:л|ла|ло|ли|лся|лась|лось|лись)|нового)\b",
    re.IGNORECASE,
)
_WILL_BE = re.compile(
    r"\b(?:will|shall|should|must|(?:have|has|need|going|want|able) to|to do|am"
    r"|(?:can|may|is|are) (?:i|we|he|she|they|it)|planned"
    r"|буд\w+|надо|нужно|что можно|следует|должн\w*|делать|план\w*)\b",
    re.IGNORECASE,
)
# What a question about a time alone has besides the time; one about how often something was, besides that.
_OF_EVENTS = frozenset(query_stems(" ".join(EVENT_WORDS)))
_OF_COUNTING = frozenset(query_stems(" ".join(COUNTING_WORDS)))
# What a person asks to have been told is no topic.
_TELLING = re.compile(
    r"\b(?:did|have|had|when|what|that) (?:i|we|you)(?: had| have|['’](?:ve|d))?"
    r" (?:(?:\w+ly|first|ever|last|also|just) ){0,2}((?:mention|say|tell|ask|talk|discuss)\w*|said|told)\b"
    r"|\b(?:я|мы|ты|вы) (?:\w+ ){0,2}((?:говори|сказа|рассказ[аы]ва|рассказа|упомина|упомяну|спрашива|спроси"
    r"|обсужда|обсуди)л[аи]?)\b",
    re.IGNORECASE,
)
_HOW_DID = re.compile(r"\bhow did\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """Stems with their words, without the names of speakers; `clauses` are empty for a question of a single one.

    One that `is_of_time` alone asks for what was said then, whatever it was about; one `of_assistant` for what that
    has said. `counted` are the stems of what it asks how often it was, `notes` the kinds of notes that it asks for;
    `length` is the number of its stems with those that are of course for an overview or an order.
    """

    stems: Mapping[str, str]
    speakers: tuple[str, ...]
    clauses: tuple[Mapping[str, str], ...]
    length: int
    interval: Interval | None = None
    is_of_time: bool = False
    counted: frozenset[str] = frozenset()
    notes: frozenset[NoteKind] = frozenset()
    of_assistant: bool = False


def parse_question(question: str, speakers: Sequence[str], at: datetime) -> ParsedQuestion:
    """Parse a question to a chat of these speakers; relative times count from `at`."""
    question = without_form(question)
    stems_of = {name: set(query_stems(name)) for name in speakers}
    # Stems have no case; a name counts only where the question capitalises it.
    capitalised = {stem for word in _WORD.findall(question) if word[0].isupper() for stem in query_stems(word)}
    named = tuple(name for name, stems in stems_of.items() if stems & capitalised)
    name_stems = {stem for name in named for stem in stems_of[name]}
    time, notes = time_in(question, at), note_kinds(question)
    said = _without(query_stems(question), name_stems)
    ignored = name_stems | _of_course(question) | _telling(question)
    rest = question if time is None else f"{question[: time.start]} {question[time.stop :]}"
    counted = frozenset[str]()
    if asks_how_often(question):
        thing = rest if time is not None and _is_surely_time(question, time) else question
        counted = frozenset(query_stems(thing)).difference(_OF_COUNTING, name_stems)
    parsed = ParsedQuestion(
        _without(said, ignored),
        named,
        _clauses(rest, ignored),
        len(said),
        counted=counted,
        notes=notes,
        of_assistant=_OF_ASSISTANT.search(question) is not None,
    )
    if time is None:
        return parsed
    is_of_time = _is_of_past(question, time, rest, at) and all(
        stem in _OF_EVENTS or stem in name_stems or word.lower() in SEARCH_STOP_WORDS
        for stem, word in query_stems(rest).items()
    )
    return replace(parsed, interval=time.interval, is_of_time=is_of_time)


def _is_of_past(question: str, time: NamedTime, rest: str, at: datetime) -> bool:
    """Whether a question asks what was at a time that is over, or goes on, as opposed to plans («to do»).

    `rest` is the question without the time: «may» stands in May.
    """
    is_past = time.interval.begin <= at and not time.interval.is_bound
    return _is_surely_time(question, time) and is_past and _WAS.search(rest) is not None and not _WILL_BE.search(rest)


def _is_surely_time(question: str, time: NamedTime) -> bool:
    """Whether a named time is one by its words, or by what leads to it: June may be a name."""
    named, before = question[time.start : time.stop], question[: time.start]
    return _SURELY_TIME.search(named) is not None or _LEADS_TO_TIME.search(before) is not None


def without_form(question: str) -> str:
    """A question without the sentences, such as «Mention only five items.», that say no more than how to answer."""
    kept = [sentence for sentence in _SENTENCE_END.split(question) if not _is_of_form(sentence)]
    rest = " ".join(kept)
    return rest if query_stems(rest).keys() - small_talk_stems() else question


def _is_of_form(sentence: str) -> bool:
    said = [word.lower() for word in words(sentence)]
    verb = next((word for word in said if word not in ("please", "пожалуйста")), "")
    return verb in ANSWERING_VERBS and all(word in ANSWER_FORM_WORDS or word.isdigit() for word in said)


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


def kinds_of(question: str) -> Set[str]:
    """Everything that a question asks for besides the most similar turns, in the order an explained search tells it."""
    question = without_form(question)
    kinds = {
        "overview": is_overview(question),
        "order": asks_for_order(question),
        "how often": asks_how_often(question),
        "current": asks_for_current(question),
    }
    named = (kind for kind, is_asked in kinds.items() if is_asked)
    return dict.fromkeys((*named, *sorted(note_kinds(question)))).keys()


def note_kinds(question: str) -> frozenset[NoteKind]:
    """Kinds of notes that a question asks for."""
    return frozenset(kind for kind, pattern in _ASKS_FOR_NOTES if pattern.search(question))


def _of_course(question: str) -> Set[str]:
    """Stems of a question for an overview or an order by which it is known as such, and of words that go with them."""
    if not (is_overview(question) or asks_for_order(question)):
        return frozenset()
    known = (each[0] for pattern in (_OVERVIEW, _IN_ORDER) for each in pattern.finditer(question))
    said = OVERVIEW_WORDS.union(word.lower() for text in known for word in words(text))
    if _HOW_DID.search(question):
        said |= COURSE_WORDS
    return {stem for stem, word in query_stems(question).items() if word.lower() in said}


def _telling(question: str) -> Set[str]:
    return {stem for each in _TELLING.finditer(question) for stem in query_stems(each[1] or each[2])}


def _without(stems: Mapping[str, str], ignored: Set[str]) -> Mapping[str, str]:
    """The stems without those, unless they are all."""
    return {stem: word for stem, word in stems.items() if stem not in ignored} or stems


def _clauses(question: str, ignored: Set[str]) -> tuple[Mapping[str, str], ...]:
    texts = [clause for clause in _CLAUSE_END.split(question) if clause.strip()]
    if not 2 <= len(texts) <= _MAX_CLAUSES:
        return ()
    stems = [{stem: word for stem, word in query_stems(text).items() if stem not in ignored} for text in texts]
    clauses = tuple(filter(None, stems))
    return clauses if len(clauses) > 1 else ()
