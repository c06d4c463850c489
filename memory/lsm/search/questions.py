"""Questions to a chat: their topic, speakers, clauses, and the time that they name."""

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
from memory.lsm.search.question_kinds import (
    asks_for_current,
    asks_for_order,
    asks_how_often,
    is_overview,
    note_kinds,
    words_of_kind,
)

_CLAUSE_END = re.compile(r"[?;]\s+|,?\s+(?:and|or|as well as|but|и|или|а также|но)\s+", re.IGNORECASE)
_MAX_CLAUSES = 4
_WORD = re.compile(r"[^\W\d_][\w'’-]+")
# What the assistant has said, as opposed to what it would say.
_OF_ASSISTANT = re.compile(
    r"\b(?:did you (?:[\w']+ ){0,2}(?:recommend|suggest|tell|advise|explain|say|answer|give|guide|propose|describe)"
    r"|you(?: had| have|['’]ve)? (?:recommended|suggested|told|advised|explained|said|answered|gave|guided|proposed)"
    r"|your (?:advice|recommendations?|suggestions?|explanations?)"
    r"|(?:ты|вы) (?:\w+ ){0,2}(?:(?:по)?(?:совето|рекомендо)вал|предлагал|предложил|сказал|говорил|ответил|отвечал"
    r"|объяснил|объяснял)[аи]?|(?:тво|ваш)\w{0,3} (?:совет|ответ|рекомендаци|предложени|объяснени)\w*)\b",
    re.IGNORECASE,
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
_TOLD_RU = r"((?:говори|сказа|рассказ(?:ыв)?а|упомина|упомяну|спрашива|спроси|проси|обсужда|обсуди|разговарива)л[аи]?)"
_SOON = r"(?:(?:\w+ly|already|even|first|ever|never|last|also|just) ){0,2}"
# That a person was told something is no topic: the group is left out.
_TELLING = re.compile(
    rf"\b(?:did|have|had|was|were) (?:i|we|you) {_SOON}((?:mention|tell|talk|discuss|say|ask)\w*|told|said)\b"
    rf"|\b(?:i|we|you)(?: had| have|['’](?:ve|d))? {_SOON}(mentioned|told|talked|discussed|said|asked)\b"
    rf"|\b(?:я|мы|ты|вы) (?:\w+ ){{0,2}}{_TOLD_RU}\b|\b{_TOLD_RU}(?: ли)? (?:я|мы|ты|вы)\b",
    re.IGNORECASE,
)
# Their halves would be searched for as words.
_CONTRACTED = re.compile(
    r"\b(?:(?:i|you|he|she|it|we|they|that|there|here|who|what|where|when|how|why|let)['’](?:m|s|d|ll|re|ve)"
    r"|(?:are|ca|could|did|does|do|had|has|have|is|must|should|was|were|wo|would)n['’]t)\b",
    re.IGNORECASE,
)
_HOW_DID = re.compile(r"\bhow did\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """Stems with their words, without the names of speakers; `clauses` are empty for a question of a single one.

    One that `is_of_time` alone asks for what was said then, whatever it was about; one `of_assistant` for what that
    has said. `counted` are the stems of what it asks how often it was, `notes` the kinds of notes that it asks for;
    `length` is the number of its stems with those that go without saying, to which the confidence was fitted.
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
    ignored = name_stems | _of_course(question)
    rest = question if time is None else f"{question[: time.start]} {question[time.stop :]}"
    counted = frozenset[str]()
    if asks_how_often(question):
        thing = rest if time is not None and _is_surely_time(question, time) else question
        counted = frozenset(query_stems(_topic(thing))).difference(_OF_COUNTING, name_stems)
    parsed = ParsedQuestion(
        _without(_without(query_stems(_topic(question)), name_stems) or said, ignored),
        named,
        _clauses(_topic(rest), ignored),
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


def _of_course(question: str) -> Set[str]:
    """Stems of a question for an overview or an order by which it is known as such, and of words that go with them."""
    if not (is_overview(question) or asks_for_order(question)):
        return frozenset()
    said = OVERVIEW_WORDS.union(word.lower() for text in words_of_kind(question) for word in words(text))
    if _HOW_DID.search(question):
        said |= COURSE_WORDS
    return {stem for stem, word in query_stems(question).items() if word.lower() in said}


def _topic(text: str) -> str:
    """A text without contractions, and without the verbs by which one asks what was told, unless it has no more."""
    rest = _CONTRACTED.sub(" ", _TELLING.sub(_without_verb, text))
    return text if all(word.lower() in SEARCH_STOP_WORDS for word in query_stems(rest).values()) else rest


def _without_verb(telling: re.Match[str]) -> str:
    begin, end = (each - telling.start() for each in telling.span(telling.lastindex or 0))
    return f"{telling[0][:begin]} {telling[0][end:]}"


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
