"""Days and times as people say them: "a week on Tuesday", "half seven", «без пятнадцати девять», «в пт»."""

from datetime import date, datetime, time, timedelta

from dateutil.easter import easter
from dateutil.relativedelta import relativedelta

from language.dates.grammar import Match, Meaning, Reading, day_rule, first_existing, rule, waking_hour
from language.dates.vocabulary import (
    COUNTS,
    EN_HOURS,
    EN_MONTHS,
    MINUTES,
    MONTHS,
    RU_DATIVE_ORDINALS,
    RU_HOURS,
    RU_MONTH,
    RU_ORDINALS,
    RU_SHORT_WEEKDAYS,
    WEEKDAYS,
    either,
    month_of,
)

_SATURDAY = 5
# "12.10" may be a time, "26.11" is a day.
_LEAST_DAY = 24
_NO_WEEKDAY_AFTER = frozenset(["i", "we", "he", "she", "they", "you", "and", "the", "just", "have", "had", "who"])
_HALF = {"утра": 0, "дня": 12, "вечера": 12, "ночи": 0, "morning": 0, "afternoon": 12, "evening": 12, "tonight": 12}
_FIRST_EVENING_HOUR = 6
_HOURS = RU_HOURS | EN_HOURS
_EN_WEEKDAY = either(name for name in WEEKDAYS if name.isascii())
_RU_WEEKDAY = either(name for name in WEEKDAYS if not name.isascii())
_BY = r"(?:by|before|until|till|til|up to)"
_DUE = r"(?:on|by|for|before|until|till|til|this|next)"
_LATER_ENDS = r"(?=\s*(?:$|[,.;:!?)])|\s+(?:в|к|до|утром|днём|днем|вечером|надо|нужно|у|с|мне|нам)\b)"
# What may follow an hour that is no count of something.
_EN_ENDS = (
    r"(?=\s*(?:$|[,;!?)]|\.(?!\d))|\s+(?:o'clock|sharp|on|today|tomorrow|tmrw|tonight|for|with|and|to|in|at|latest|or|"
    rf"please|pls|then|but|{_EN_WEEKDAY})\b)"
)
_RU_ENDS = (
    r"(?=\s*(?:$|[,.;:!?)])|\s+(?:сегодня|завтра|послезавтра|в|во|у|на|с|и|надо|нужно|ровно|примерно)\b|"
    r"\s+\w+(?:ть|ти|чь|[аяуео]ю|[жшчлд]у)(?:ся|сь)?\b)"
)


def _week_after(match: Match, now: datetime) -> Meaning:
    """A week after a day that is named: "a week on Tuesday", "Friday week", "a week tomorrow"."""
    name = match["day"].lower()
    today = now.date()
    if name in ("today", "tomorrow"):
        return today + timedelta(days=7 + (name == "tomorrow"))
    return today + timedelta(days=(WEEKDAYS[name] - today.weekday() - 1) % 7 + 8)


def _weeks_after(match: Match, now: datetime) -> Meaning:
    """So many weeks after a day that is named: "two weeks on Friday"."""
    weeks = int(match["count"]) if match["count"].isdigit() else int(COUNTS[match["count"].lower()])
    name = match["day"].lower()
    ahead = 1 if name == "tomorrow" else (WEEKDAYS[name] - now.weekday() - 1) % 7 + 1
    return now.date() + timedelta(days=ahead, weeks=weeks)


def _of_next_week(match: Match, now: datetime) -> Meaning:
    return now.date() + timedelta(days=7 + WEEKDAYS[match["day"].lower()] - now.weekday())


def _weekday(match: Match, now: datetime) -> Meaning:
    name = match["day"].lower()
    number = RU_SHORT_WEEKDAYS[name] if name in RU_SHORT_WEEKDAYS else ("sat", "sun").index(name) + _SATURDAY
    is_next = "next" in match[0].lower()
    return now.date() + timedelta(days=(number - now.weekday() - 1) % 7 + 1 + 7 * is_next)


def _weekday_alone(match: Match, now: datetime) -> Meaning:
    """Saturday or Sunday in short without "on"; "we sat" and "in the sun" are none."""
    before = match.string[: match.start()].lower().split()[-1:]
    return None if before and before[0] in _NO_WEEKDAY_AFTER else _weekday(match, now)


def _weekend(today: date, weeks: int = 0) -> date:
    """Saturday; on Sunday, that day."""
    return today + timedelta(days=max(0, _SATURDAY - today.weekday()), weeks=weeks)


def _yearly(month: int, day: int, *, before: bool = False) -> Reading:
    """A day of every year, or the day before it."""

    def read(match: Match, now: datetime) -> Meaning:
        this_year = date(now.year, month, day)
        next_one = this_year if this_year >= now.date() else this_year.replace(year=now.year + 1)
        return next_one - timedelta(days=before or match[0].lower().startswith(("before", "до ")))

    return read


def _easter(_: Match, now: datetime) -> Meaning:
    this_year = easter(now.year)
    return this_year if this_year >= now.date() else easter(now.year + 1)


def _before_month(match: Match, now: datetime) -> Meaning:
    """The last day before a month begins."""
    month = month_of(match["month"])
    return date(now.year + (month <= now.month), month, 1) - timedelta(days=1)


def _middle(match: Match, now: datetime) -> Meaning:
    month = month_of(match["month"])
    return date(now.year + (month < now.month), month, 15)


def _day_of_next_month(match: Match, now: datetime) -> Meaning:
    return (now.date() + relativedelta(months=1, day=1)).replace(day=int(match["day"]))


def _numbered_day(match: Match, now: datetime) -> Meaning:
    """The next day of this number, written in figures or in words."""
    said = match["day"].lower()
    day = int(said) if said.isdigit() else (RU_ORDINALS | RU_DATIVE_ORDINALS)[said]
    this_month = now.date().replace(day=1)
    return first_existing(day, (this_month, this_month + relativedelta(months=1)), now.date())


def _day_and_month(match: Match, now: datetime) -> Meaning:
    this_year = date(now.year, int(match["month"]), 1)
    return first_existing(int(match["day"]), (this_year, this_year.replace(now.year + 1)), now.date())


def _dotted_day(match: Match, now: datetime) -> Meaning:
    """A day and a month with a stop between; one that may be a time, such as 12.10, needs "by" or "on" before it."""
    is_time = int(match["day"]) < _LEAST_DAY and match.start() == match.start("day")
    return None if is_time else _day_and_month(match, now)


def _hour(match: Match, _: datetime) -> Meaning:
    """An hour in figures or a word, with the part of the day where one is named."""
    said, parts = match["hour"].lower(), match.groupdict()
    minute = int(parts.get("minute") or 0)
    hour = int(said) if said.isdigit() else _HOURS[said]
    if part := (parts.get("part") or "").lower():
        at_night = part == "ночи" and _FIRST_EVENING_HOUR < hour < 12
        return time((hour % 12) + (12 if at_night else _HALF[part]), minute) if 0 < hour <= 12 else None
    return _on_the_clock(said, minute)


def _on_the_clock(hour: str, minute: int) -> time:
    return waking_hour(int(hour) if hour.isdigit() else _HOURS[hour.lower()], minute)


def _around_hour(match: Match, _: datetime) -> Meaning:
    """So many minutes before or after an hour: "quarter to nine", «без десяти пять»."""
    said, count = match["hour"].lower(), match["minutes"].lower()
    hour = int(said) if said.isdigit() else _HOURS[said]
    minutes = int(count) if count.isdigit() else MINUTES[count]
    if not 0 < hour <= 12 or not 0 < minutes < 60:
        return None
    if match.groupdict().get("way") == "past":
        return waking_hour(hour, minutes)
    return waking_hour(hour - 1 or 12, 60 - minutes)


def _half_of_next(match: Match, _: datetime) -> Meaning:
    """Part of an hour that is under way: «полседьмого» is 6:30, «четверть пятого» 4:15."""
    hour = RU_ORDINALS[match["next"].lower()] - 1
    minute = 15 if match[0].lower().find("четверть") >= 0 else 30
    return waking_hour(hour or 12, minute)


DAYS = (
    rule(rf"\b(?:in )?(?:a )?week (?:on |from |this )?(?P<day>today|tomorrow|{_EN_WEEKDAY})\b", _week_after),
    rule(rf"\b(?P<day>{_EN_WEEKDAY}|tomorrow|today) week\b", _week_after),
    rule(
        rf"\b(?P<count>[2-9]|two|three|four|six) weeks (?:on |from |this )?(?P<day>tomorrow|{_EN_WEEKDAY})\b",
        _weeks_after,
    ),
    rule(rf"\b(?P<day>{_EN_WEEKDAY}) (?:of )?next week\b", _of_next_week),
    rule(rf"\bnext week,? (?:on )?(?P<day>{_EN_WEEKDAY})\b", _of_next_week),
    rule(rf"\b(?P<day>{_RU_WEEKDAY}) на следующей неделе\b", _of_next_week),
    rule(rf"\bна следующей неделе,? (?:в|во|к|ко|до) (?P<day>{_RU_WEEKDAY})\b", _of_next_week),
    day_rule("this time next week", lambda today: today + timedelta(days=7)),
    day_rule("(?:in |within )?a fortnight(?: today| from now)?", lambda today: today + timedelta(days=14)),
    day_rule(
        "in a few days|in the next few days|на днях|в ближайшие (?:пару )?дн(?:и|ей)",
        lambda today: today + timedelta(3),
    ),
    day_rule(rf"{_BY} the weekend|(?:до|к) выходны[хм]", lambda today: _weekend(today) - timedelta(days=1)),
    day_rule("next weekend|(?:на|в) следующи[ехй] выходны[ехй]", lambda today: _weekend(today, 1)),
    day_rule("(?:this|at the|over the|on the) weekend|на (?:этих )?выходных|в (?:эти )?выходные", _weekend),
    day_rule("(?:within|during) the week", lambda today: today + timedelta(days=(4 - today.weekday()) % 7)),
    day_rule("month[- ]end", lambda today: today + relativedelta(day=31)),
    day_rule("year[- ]end", lambda today: today.replace(month=12, day=31)),
    day_rule(
        "2moro|2morrow|tomoz|tomo|tmw|tomorow|tommorow|tommorrow|завтрева", lambda today: today + timedelta(days=1)
    ),
    day_rule("tonite|2nite|2night", lambda today: today),
    rule(r"\b(?:christmas|xmas) eve\b", _yearly(12, 24)),
    rule(r"\bboxing day\b", _yearly(12, 26)),
    rule(r"\b(?:new year'?s eve|nye)\b", _yearly(12, 31)),
    rule(r"\bnew year'?s day\b", _yearly(1, 1)),
    rule(r"\bvalentine'?s(?: day)?\b", _yearly(2, 14)),
    rule(r"\b(?:by|before|for|on|at|until|till) (?:christmas|xmas)(?: day)?\b", _yearly(12, 25)),
    rule(
        r"\b(?:by|before|until|till) (?:the )?new year\b|\b(?:до|к) нов(?:ого|ому) год[ау]\b",
        _yearly(1, 1, before=True),
    ),
    rule(r"\b(?:до|к) рождеств[ау]\b", _yearly(1, 7)),
    rule(r"\b(?:by|before|for|at|over) easter\b", _easter),
    rule(rf"\b{_BY} (?P<month>{either(EN_MONTHS)})\b(?! \d)(?! the)", _before_month),
    rule(rf"\b(?:до|к) (?P<month>{RU_MONTH})\b(?<!ма)", _before_month),
    rule(
        rf"\b(?:mid[- ]|(?:the )?middle of )(?P<month>{either(name for name in MONTHS if name.isascii())})\b", _middle
    ),
    rule(rf"\b(?:в|к|до) середин[еуы] (?P<month>{RU_MONTH})\b", _middle),
    rule(r"\bthe (?P<day>\d{1,2})(?:st|nd|rd|th) of next month\b", _day_of_next_month),
    rule(
        rf"\b(?:{_DUE}|{_EN_WEEKDAY}),? (?P<day>\d{{1,2}})(?:st|nd|rd|th)\b(?! (?:of |floor|time|version|century|"
        rf"{either(name for name in MONTHS if name.isascii())}))",
        _numbered_day,
    ),
    rule(
        rf"\b(?<!половине )(?<!половину )(?<!четверть )(?<!минут )(?:до |к |на |с )?"
        rf"(?P<day>{either(RU_ORDINALS)})(?: числа\b|{_LATER_ENDS})",
        _numbered_day,
    ),
    rule(rf"\bк (?P<day>{either(RU_DATIVE_ORDINALS)})\b(?! \w+(?:му|ю)\b)", _numbered_day),
    rule(r"\b(?:до|к|на) (?P<day>2[4-9]|3[01])(?=\s*(?:$|[,;!?)]|\.(?!\d)))", _numbered_day),
    rule(
        r"(?:\b(?:до|ко?|на) |(?<=[а-яё] )|^(?=\S+\s*(?:$|[а-яё])))(?P<day>0[1-9]|[12]\d|3[01])\."
        r"(?P<month>0[1-9]|1[0-2])\b\.?(?![.\d%])(?! ?(?:млн|тыс|руб))",
        _day_and_month,
    ),
    rule(r"\b(?:on|by|this|next|til|till|until|for|from) (?P<day>sat|sun)\b(?! (?:on|in|at) )", _weekday),
    rule(
        r"\b(?P<day>sat|sun)(?= (?:morning|afternoon|arvo|evening|night|am|pm|\d)|\s*[,.!?):]|\s+[—–-]|\s*$)",
        _weekday_alone,
    ),
    rule(
        r"\b(?:(?:on|by|before|until|till|til|due|deadline(?: is)?|from)\s+)?(?<![\d.,£$€])(?P<day>[12]\d|3[01])\."
        r"(?P<month>0[1-9]|1[0-2])\b(?![.,]?\d|%| ?(?:k|m|g|kg|km|cm|mm|gb|mb|euros?|eur|usd|gbp|dollars?|pounds?|"
        r"quid|bucks|percent|points|miles)\b)",
        _dotted_day,
    ),
    rule(rf"\b(?:в|во|к|ко|до|на|с|по) (?P<day>{either(RU_SHORT_WEEKDAYS)})\b(?!\.? ?(?:цена|размер))", _weekday),
    rule(
        r"\b(?:позднее|позже) (?P<day>среды)\b", lambda _, now: now.date() + timedelta(days=(1 - now.weekday()) % 7 + 1)
    ),
)
TIMES = (
    rule(
        r"\bhalf (?:past )?(?P<hour>\d{1,2})\b",
        lambda m, _: waking_hour(int(m["hour"]), 30) if int(m["hour"]) < 13 else None,
    ),
    rule(
        rf"\bhalf (?:past )?(?P<hour>{either(EN_HOURS)})\b", lambda m, _: waking_hour(EN_HOURS[m["hour"].lower()], 30)
    ),
    rule(
        rf"\b(?:(?P<minutes>\d{{1,2}}|(?:a )?quarter|five|ten|twenty)(?: minutes)?) (?P<way>to|past) "
        rf"(?P<hour>\d{{1,2}}|{either(EN_HOURS)})\b",
        _around_hour,
    ),
    rule(
        r"\b(?:at |by |before |until )?(?P<hour>\d{1,2})(?:[:.](?P<minute>\d\d))?(?: o'clock)? (?:this |in the )?"
        r"(?P<part>morning|afternoon|evening|tonight)\b",
        _hour,
    ),
    rule(
        r"\b(?:this |in the |tomorrow )?(?P<part>morning|afternoon|evening|tonight),? (?:at|by) "
        r"(?P<hour>\d{1,2})(?:[:.](?P<minute>\d\d))?\b(?! ?[ap]m)",
        _hour,
    ),
    rule(r"\b(?:at|by|before|until|till|til) (?P<hour>\d{1,2})\.(?P<minute>[0-5]\d)(?!\d| ?[ap]m)", _hour),
    rule(r"\b(?:at |by |around |about |for )?(?P<hour>\d{1,2})-?ish\b", _hour),
    rule(
        rf"\b(?:at |by |before )?(?P<hour>\d{{1,2}}|{either(EN_HOURS)})(?:[:.](?P<minute>[0-5]\d))? "
        r"(?:sharp|on the dot|o'?clock)\b",
        _hour,
    ),
    rule(r"\b(?:at|by|before|until|till) (?P<hour>[01]\d|2[0-3])(?P<minute>[0-5]\d)\b(?= ?h|[,.;!?)]|$)", _hour),
    rule(r"(?<!\w)@ ?(?P<hour>\d{1,2})(?:[:.](?P<minute>[0-5]\d))?\b(?! ?[ap]\.?m)", _hour),
    rule(rf"\b(?:at|by|before|until|till|til) (?P<hour>\d{{1,2}}|{either(EN_HOURS)})\b{_EN_ENDS}", _hour),
    rule(
        rf"\b(?:в|к|ко|до|с|после|около) (?P<hour>{either(RU_HOURS)})(?: час(?:а|ов|ам|у)?)? "
        r"(?P<part>утра|дня|вечера|ночи)\b",
        _hour,
    ),
    rule(rf"\bбез (?P<minutes>{either(MINUTES)})(?: минут)? (?P<hour>{either(RU_HOURS)})\b", _around_hour),
    rule(rf"\b(?:в|к|до|после)? ?(?:пол-? ?|половин[аеуы] )(?P<next>{either(RU_ORDINALS)})\b", _half_of_next),
    rule(rf"\b(?:в|к) четверть (?P<next>{either(RU_ORDINALS)})\b", _half_of_next),
    rule(
        rf"\bк (?P<hour>{either(hour for hour in RU_HOURS if hour.endswith(('м', 'и', 'у')))})(?: часам)?\b"
        r"(?! \w+(?:ым|им|ам|ям|ой|ей)\b)",
        _hour,
    ),
    rule(rf"\b(?:в|к|до) (?P<hour>{either(RU_HOURS)})(?: час(?:а|ов|ам))?\b{_RU_ENDS}", _hour),
    rule(r"\bдо утра\b", lambda *_: time(9)),
)
