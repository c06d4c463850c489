"""Answers from the present, which is certain: day, time here and elsewhere, the user's zone, role, projects."""

import re
from datetime import date, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from agents.present import Present, day_text
from language.dates.expressions import dates_in
from language.words import Language

# The day that is asked about is cut out before.
_ASKS_DAY = re.compile(
    r"\bкак(?:ой|ая|ое|ого)\s+(?:(?:сейчас|у\s+нас|это|будет|был[ао]?)\s+)*(?:день|дата|число|числа|месяц|год)\b"
    r"(?:\s+недели)?(?:\s+(?:это|сейчас|будет|был[ао]?))?(?:\s+во?)?\W*$"
    r"|\b(?:what(?:\s+is|['’]s)?|which)\s+(?:the\s+|['’]s\s+)?(?:day|date|weekday|month|year)\b(?:\s+of\s+the\s+week)?"
    r"(?:\s+(?:is|was|will|it|be|now|on|the))*\W*$"
    # "What is tomorrow?"
    r"|^\W*what(?:\s+is|['’]s)\W*$",
    re.IGNORECASE,
)
_ASKS_TIME = re.compile(
    r"\bкоторый\s+(?:сейчас\s+)?час|\bсколько\s+(?:сейчас\s+|там\s+)?(?:времени|время)(?:\s+сейчас)?\W*$"
    r"|\bкакое\s+сейчас\s+время|\bwhat\s+time(?:\s+is\s+it|\W*$)|\bwhat(?:\s+is|['’]s)\s+the\s+time(?:\s+now)?\W*$",
    re.IGNORECASE,
)
_ASKS_ZONE = re.compile(
    r"\b(?:в\s+каком\s+я|какой\s+у\s+меня)\s+часово\w+\s+пояс|"
    r"\bwhat(?:\s+is|['’]s)\s+my\s+time\s*zone|\bwhat\s+time\s*zone\s+am\s+i\s+in",
    re.IGNORECASE,
)
_ASKS_ROLE = re.compile(
    r"\bкто\s+я\s+по\s+(?:роли|должности|профессии)|\bкакая\s+у\s+меня\s+(?:роль|должность)|\bкем\s+я\s+работаю|\bкакова\s+моя\s+(?:роль|должность)"
    r"|\bwhat(?:\s+is|['’]s)\s+my\s+(?:role|job|position)|\bwhat\s+do\s+i\s+do(?:\s+(?:here|for\s+a\s+living))?\W*$"
    r"|\bчем\s+я\s+занимаюсь\W*$",
    re.IGNORECASE,
)
_ASKS_PROJECTS = re.compile(
    r"\b(?:в|над)\s+как(?:их|ими)\s+проект\w+\s+(?:я|мы)\b|\bкакие\s+у\s+меня\s+проекты"
    r"|\bwhat\s+(?:are\s+my\s+projects|projects\s+am\s+i\s+(?:in|on))|\bwhich\s+projects\s+am\s+i\s+(?:in|on)",
    re.IGNORECASE,
)
# "What day is it and what time?"
_PARTS = re.compile(
    r"(?<=[?.!])\s+|,?\s+(?:и|а|and)\s+(?=(?:что|кто|котор|сколько|(?:(?:в|над)\s+)?(?:как|кем|чем)|wh))", re.IGNORECASE
)
_PHRASES = {
    Language.ENGLISH: {
        "time": "It is {said} ({zone}).",
        "today": "Today is {said}.",
        "tomorrow": "Tomorrow is {said}.",
        "yesterday": "Yesterday was {said}.",
        "day": "That is {said}.",
        "zone": "Your time zone is {said}.",
        "role": "Your role: {said}.",
        "projects": "Your projects: {said}.",
    },
    Language.RUSSIAN: {
        "time": "Сейчас {said} ({zone}).",
        "today": "Сегодня {said}",
        "tomorrow": "Завтра {said}",
        "yesterday": "Вчера было: {said}",
        "day": "Это {said}",
        "zone": "Ваш часовой пояс — {said}.",
        "role": "Ваша роль: {said}.",
        "projects": "Ваши проекты: {said}.",
    },
}
_YESTERDAY = re.compile(r"\b(?:вчера|yesterday)\b", re.IGNORECASE)
_DAYS = {0: "today", 1: "tomorrow", -1: "yesterday"}
# "What time is it in New York?"
_ELSEWHERE = re.compile(r"\b(?:in|в|во)\s+(?P<place>[^\W\d_][\w .’'-]*[^\W\d_])\W*$", re.IGNORECASE)
_NO_PLACES = re.compile(
    r"(?:the\s+)?(?:moment|morning|evening|afternoon|now|данный момент|настоящее время)", re.IGNORECASE
)


def answer_from_present(question: str, present: Present | None, language: Language) -> str:
    """The answers to what is asked about the present; empty where the question is about something else."""
    if present is None:
        return ""
    answers = (
        _of_clock(part, present, language) or _of_user(part, present, language) for part in _PARTS.split(question)
    )
    return " ".join(dict.fromkeys(filter(None, answers)))


def answer_from_clock(question: str, present: Present | None, language: Language) -> str:
    """The answer where nothing but days and times is asked about; empty otherwise."""
    answers = [_of_clock(part, present, language) for part in _PARTS.split(question)] if present else []
    return " ".join(dict.fromkeys(answers)) if all(answers) else ""


def _of_clock(question: str, present: Present, language: Language) -> str:
    if _ASKS_TIME.search(question):
        return _time(question, present, language)
    day = _day(question, present)
    if day is None:
        return ""
    key = _DAYS.get((day - present.now.date()).days, "day")
    return _PHRASES[language][key].format(said=day_text(day, language))


def _of_user(question: str, present: Present, language: Language) -> str:
    told = (
        (_ASKS_ZONE, "zone", present.zone),
        (_ASKS_ROLE, "role", present.role),
        (_ASKS_PROJECTS, "projects", ", ".join(present.projects)),
    )
    return " ".join(
        _PHRASES[language][key].format(said=said) for asks, key, said in told if said and asks.search(question)
    )


def _day(question: str, present: Present) -> date | None:
    """The day that is asked about, None where none is: "What date is Saturday?"."""
    today = present.now.date()
    days = [(each.start, each.end, each.at.date()) for each in dates_in(question, present.now) if each.has_day]
    days += [(*word.span(), today - timedelta(days=1)) for word in _YESTERDAY.finditer(question)]
    if len(days) > 1:
        return None
    start, end, day = days[0] if days else (0, 0, today)
    return day if _ASKS_DAY.search(question[:start] + question[end:]) else None


def _time(question: str, present: Present, language: Language) -> str:
    """The time on the user's clock, or in the place that is named; empty where that has no zone of its name."""
    place = _ELSEWHERE.search(question)
    if place is None or _NO_PLACES.fullmatch(place["place"]):
        return _PHRASES[language]["time"].format(said=f"{present.now:%H:%M}", zone=present.zone)
    zone = _zones().get(place["place"].casefold().replace(" ", "_"))
    if zone is None:
        return ""
    return _PHRASES[language]["time"].format(said=f"{present.now.astimezone(ZoneInfo(zone)):%H:%M}", zone=zone)


@cache
def _zones() -> dict[str, str]:
    """Time zones by the place that they are named after, in small letters."""
    return {zone.rpartition("/")[2].casefold(): zone for zone in sorted(available_timezones()) if "/" in zone}
