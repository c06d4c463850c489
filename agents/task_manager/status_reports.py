"""Reports on tasks: done, moved, cancelled, reassigned."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Literal

from agents.fragments import MessageSentence
from agents.people import KnownPeople, Mention
from agents.task_manager.english import pasts
from agents.task_manager.patterns import NAME, mask_names
from agents.task_manager.russian_verbs import work_verbs
from language.dates.expressions import SpokenDate, dates_in, without_dates
from language.words import has_cyrillic

Change = Literal["done", "moved", "cancelled", "reassigned"]
_NOT = re.compile(r"n't\b|\s+(?:not|yet to)\b")
_INSTEAD = re.compile(rf"(?:вместо|instead of) ({NAME})", re.IGNORECASE)
_SPLIT = re.compile(r",\s*(?:а|но|and|but)\s+|;\s*|\.\s+|,\s+(?=\w)|\s(?:and|but|а|но)\s", re.IGNORECASE)


def _any(forms: Iterable[str]) -> str:
    # «ё» is written or not, as people like.
    return "|".join(sorted((form.replace("ё", "[её]") for form in forms), key=len, reverse=True))


def _pattern(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


_ENGLISH = rf"(?:{_any(pasts())}|done|finished|ready|complete|out|live|handed in|taken care of)"
_DONE = _pattern(
    rf"\b(?:I|we|he|she|they|{NAME})(?:'ve|'s| have| has)?(?: already| just| finally| also)* {_ENGLISH}\b",
    rf"\b(?:is|are|was|were|has been|have been|got)(?: now| already| finally| all)* {_ENGLISH}\b",
    rf"^\W*(?:already |just |finally |all )?{_ENGLISH}\b",
    r"[✅☑✔]|\[x\]",
)
_UNDONE = _pattern(
    r"\b(?:если|когда|как только|if|when|once|until|unless|should have)\b",
    r"\b(?:не|будет|будут|быть|бы|почти|not|n't|never|will|be|almost|nearly|to)\s+(?:\w+\s+)?$",
    r"n't\s+(?:\w+\s+)?$",
)
_MOVED = _pattern(
    r"\b(?:перен[её]с\w*|перенос\w*|переношу|перенест\w*|сдвига\w*|сдвин\w*|отлож\w*|отклад\w*)\b",
    r"\b(?:продл\w*|новый срок|срок теперь)\b",
    r"\b(?:mov(?:e|ed|ing)|postpon(?:e|ed|ing)|push(?:ed|ing)?|reschedul(?:e|ed|ing)|delay(?:ed|ing)?|shift(?:ed|ing)?)\b",
    r"\b(?:extend(?:ed|ing)?|slip(?:s|ped)?|new deadline|deadline is now|now due)\b",
)
_CANCELLED = _pattern(
    r"\b(?:отмен\w*|(?:больше|уже) не (?:нуж\w+|надо|требуется)|не ?актуальн\w*|снима\w+ с|сняли с|отпал[аи]?)\b",
    r"\b(?:cancel\w*|call(?:ed|ing)? off|no longer (?:need|necessary|relevant)\w*|not needed any ?more)\b",
    r"\b(?:scrap(?:ped)?|(?:dropped|dropping|let's drop) the|don't need .* any ?more|(?:is|are) off)\b",
)
_REASSIGNED = _pattern(
    rf"\b(?:переда(?:ю|л|ла|ли|[её]м)|отда(?:ю|л|ла|ли|[её]м)|перепоруч\w*|переназнач\w*)\b[^.]*?{NAME}",
    rf"\bвместо {NAME}[^.]*?{NAME}|{NAME}[^.]*?\bвместо {NAME}",
    rf"{NAME} (?:забирает|забрала?|подхватит|подхватила?|бер[её]т)\b",
    rf"\b(?:hand|pass|giv|gave|transfer|reassign|delegat)\w*\b[^.]*?\bto {NAME}",
    rf"{NAME} (?:takes over|will take over|is taking over|took over)|{NAME}[^.]*? instead of {NAME}",
)


@dataclass(frozen=True)
class StatusReport:
    """A reported change; `about` is the text that tells which task it is of."""

    change: Change
    about: str
    to: SpokenDate | None = None
    by: Mention | None = None


def find_reports(sentence: MessageSentence, said_at: datetime, people: KnownPeople) -> list[StatusReport]:
    """Every report in a sentence; whether there is such a task is another question."""
    return [] if sentence.is_question else list(_reports(sentence.text, said_at, people))


def _reports(sentence: str, said_at: datetime, people: KnownPeople) -> Iterator[StatusReport]:
    mentions = people.mentions(sentence)
    mask = mask_names(sentence, mentions)
    dates = dates_in(sentence, said_at)
    about = without_dates(sentence, dates)
    if _CANCELLED.search(mask):
        yield StatusReport("cancelled", about)
    elif dates and _MOVED.search(mask):
        yield StatusReport("moved", about, to=dates[-1])
    elif heir := _heir(mask, mentions):
        yield StatusReport("reassigned", about, by=heir)
    else:
        yield from _done(sentence, people)


def _heir(mask: str, mentions: list[Mention]) -> Mention | None:
    found = _REASSIGNED.search(mask)
    if not found:
        return None
    replaced = _INSTEAD.search(mask)
    heirs = [
        each
        for each in mentions
        if found.start() <= each.start < found.end() and (not replaced or each.start != replaced.start(1))
    ]
    return heirs[-1] if heirs else None


def _done(sentence: str, people: KnownPeople) -> Iterator[StatusReport]:
    for clause in _clauses(sentence):
        for found in _completions(mask_names(clause, people.mentions(clause))):
            if not _UNDONE.search(clause[: found.start()]) and not _NOT.match(clause[found.end() :]):
                yield StatusReport("done", clause)
                break


def _completions(masked: str) -> Iterator[re.Match[str]]:
    if has_cyrillic(masked):
        yield from _russian_done().finditer(masked)
    yield from _DONE.finditer(masked)


@cache
def _russian_done() -> re.Pattern[str]:
    verbs = work_verbs()
    forms = _any(form for verb in verbs for form in (*verb.pasts, *verb.participles))
    return _pattern(rf"\b(?:{forms}|выполнил[аи]?|готов[аоы]?(?! \w+(?:ть|ти)\b)|выполнен[аоы]?)\b")


def _clauses(sentence: str) -> list[str]:
    """Parts that each tell one thing; what names nothing by itself stays with the part before."""
    return [part for part in _SPLIT.split(sentence) if part.strip()]
