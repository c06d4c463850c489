"""How dates are said in Russian."""

from collections.abc import Sequence

from language.dates.arithmetic import (
    CLOSE_OF_BUSINESS_HOUR,
    Reading,
    at_time,
    end_of_month,
    end_of_named_month,
    end_of_quarter,
    end_of_week,
    end_of_year,
    in_days,
    on_date,
    on_day_of_month,
    on_weekday,
    start_of_week,
)
from language.dates.grammar import Match, Rule, calendar_day, either, numbered, rule, says, span, year_of

_WEEKDAYS = numbered(
    "понедельник, понедельника, понедельнику, понедельником | вторник, вторника, вторнику, вторником | "
    "среда, среды, среде, среду, средой | четверг, четверга, четвергу, четвергом | "
    "пятница, пятницы, пятнице, пятницу, пятницей | суббота, субботы, субботе, субботу, субботой | "
    "воскресенье, воскресенья, воскресенью"
)
_MONTHS = numbered(
    "января | февраля | марта | апреля | мая | июня | июля | августа | сентября | октября | ноября | декабря", start=1
)
_ORDINALS = numbered(
    "первого | второго | третьего | четвёртого, четвертого | пятого | шестого | седьмого | восьмого | девятого | "
    "десятого | одиннадцатого | двенадцатого | тринадцатого | четырнадцатого | пятнадцатого | шестнадцатого | "
    "семнадцатого | восемнадцатого | девятнадцатого | двадцатого | двадцать первого | двадцать второго | "
    "двадцать третьего | двадцать четвёртого, двадцать четвертого | двадцать пятого | двадцать шестого | "
    "двадцать седьмого | двадцать восьмого | двадцать девятого | тридцатого | тридцать первого",
    start=1,
)
_COUNTS = {
    "пару": 2, "полтора": 1.5, "полторы": 1.5, "один": 1, "одну": 1, "два": 2, "две": 2, "три": 3, "четыре": 4,
    "пять": 5, "шесть": 6, "семь": 7, "восемь": 8, "девять": 9, "десять": 10, "несколько": 3,
}  # fmt: skip
_UNITS = {
    **dict.fromkeys(("минут", "минуту", "минуты"), "minute"),
    **dict.fromkeys(("час", "часа", "часов", "часик"), "hour"),
    **dict.fromkeys(("день", "дня", "дней", "сутки", "суток", "денёк", "деньков"), "day"),
    **dict.fromkeys(("неделю", "недели", "недель", "недельку"), "week"),
    **dict.fromkeys(("месяц", "месяца", "месяцев"), "month"),
}
_PARTS = {
    "утром": 10, "с утра": 10, "к утру": 10, "до обеда": 13, "к обеду": 13, "в обед": 13, "после обеда": 15,
    "днём": 15, "днем": 15, "вечером": 19, "к вечеру": 19, "до вечера": 19, "ночью": 23, "к ночи": 23, "в полдень": 12,
    "к полудню": 12, "до полудня": 12,
}  # fmt: skip
_HALVES = {"утра": 0, "дня": 12, "вечера": 12, "ночи": 0}
_ENDS = {
    "недели": end_of_week(), "этой недели": end_of_week(),
    "следующей недели": end_of_week(1), "месяца": end_of_month(), "этого месяца": end_of_month(),
    "следующего месяца": end_of_month(1), "квартала": end_of_quarter, "года": end_of_year,
}  # fmt: skip
# «Среда» is also an environment, «в 15.05» may be a version: what is said before them tells.
_BY = r"(?:в|во|к|ко|до|на|с|со|по|от|после|около|срок|дедлайн)[\s:—-]+"


def _weekday(match: Match) -> Reading | None:
    which, name = (match[1] or "").lower(), match[2].lower()
    if which.startswith(("прошл", "минувш", "кажд")):
        return None
    return on_weekday(_WEEKDAYS[name], weeks=1 if which.startswith(("следующ", "будущ")) else 0)


def _in(match: Match) -> Reading | None:
    said = (match[1] or "один").lower()
    return span(float(said.replace(",", ".")) if said[0].isdigit() else _COUNTS[said], _UNITS[match[2].lower()])


def _hour(match: Match) -> Reading | None:
    hour, half = int(match[1]), (match[2] or "").lower()
    if half:
        return at_time(hour % 12 + _HALVES[half]) if 0 < hour <= 12 else None
    return at_time(hour + 12 if 0 < hour < 7 else hour)


DAYS: Sequence[Rule] = (
    rule(r"\bпослезавтра\b", says(in_days(2))),
    rule(r"\bзавтра\b", says(in_days(1))),
    rule(r"\bсегодня\b", says(in_days(0))),
    rule(rf"\b(?:до|к|ко|в|под) (?:самого )?кон(?:ца|цу|це|ец) ({either(_ENDS)})\b", lambda m: _ENDS[m[1].lower()]),
    rule(
        rf"\b(?:до|к|в) кон(?:ца|цу|це) ({either(_MONTHS)})\b", lambda m: end_of_named_month(_MONTHS[m[1].lower()])
    ),
    rule(r"\b(?:в|к|до) (?:самом )?начал[еуа] (?:следующей )?недели\b", says(start_of_week(1))),
    rule(r"\b(?:на|до) (?:этой|текущей) неделе\b|\bза (?:эту )?неделю\b", says(end_of_week())),
    rule(r"\b(?:на|к) следующей неделе\b", says(end_of_week(1))),
    rule(r"\bв (?:этом|текущем) месяце\b", says(end_of_month())),
    rule(r"\bв следующем месяце\b", says(end_of_month(1))),
    rule(r"\bчерез полчаса\b", says(span(0.5, "hour"))),
    rule(r"\bчерез полгода\b", says(span(6, "month"))),
    rule(
        rf"\b(?:через|в течение|не позднее чем через|максимум за) (?:(\d{{1,3}}|{either(_COUNTS)}) )?"
        rf"({either(_UNITS)})\b", _in,
    ),
    rule(
        rf"\b(\d{{1,2}})(?:-?го)? ({either(_MONTHS)})(?: (\d{{4}})(?: г(?:ода)?\b\.?)?)?",
        lambda m: calendar_day(m[1], _MONTHS[m[2].lower()], m[3]),
    ),
    rule(
        rf"\b({either(_ORDINALS)}) ({either(_MONTHS)})\b",
        lambda m: on_date(_ORDINALS[m[1].lower()], _MONTHS[m[2].lower()]),
    ),
    rule(r"\b(?:до|к|на|по)? ?(\d{1,2})(?:-?го|-?му)? числ[ау]\b", lambda m: on_day_of_month(int(m[1]))),
    rule(r"\b(?:до|к|с|на) (\d{1,2})-(?:го|му|е)\b(?! год)", lambda m: on_day_of_month(int(m[1]))),
    rule(
        r"(?<![\d.])(\d{1,2})\.(\d\d)\.(\d{4}|\d\d)(?![\d.])", lambda m: on_date(int(m[1]), int(m[2]), year_of(m[3]))
    ),
    rule(rf"\b{_BY}(\d{{1,2}})\.(0[1-9]|1[0-2])\b(?![.\d%])(?! ?(?:млн|тыс|руб|процент))",
         lambda m: on_date(int(m[1]), int(m[2]))),
    rule(
        r"(?<!по )\b(?:(эт\w+|следующ\w+|ближайш\w+|будущ\w+|прошл\w+|минувш\w+|кажд\w+) )?"
        rf"({either({name: 0 for name in _WEEKDAYS if not name.startswith('сред')})})\b", _weekday,
    ),
    rule(
        r"\b(?:(?:в|во|к|ко|до|на|со?) (?:(эт\w+|следующ\w+|ближайш\w+|будущ\w+|прошл\w+|кажд\w+) )?)"
        r"(сред[ыеу])\b(?! (?:разработ|выполнен|обитан|тестирован|исполнен))", _weekday,
    ),
)  # fmt: skip

TIMES: Sequence[Rule] = (
    rule(r"\b([01]?\d|2[0-3])[:.]([0-5]\d)\b(?![.\d])(?<!\d\.\d\d)", lambda m: at_time(int(m[1]), int(m[2]))),
    rule(rf"\b(?:в|к|до|с|около) (\d{{1,2}}) (?:час(?:а|ов|ам|у)? )?({either(_HALVES)})\b", _hour),
    rule(r"\b(?:в|к|до|с|около) (\d{1,2}) час(?:а|ов|ам|у)?()\b", _hour),
    rule(r"\b(?:до|к|в) кон(?:ца|цу|це) (?:рабочего )?дня\b", says(at_time(CLOSE_OF_BUSINESS_HOUR))),
    rule(rf"\b(?<!с )({either(_PARTS)})\b(?! рожд)", lambda m: at_time(_PARTS[m[1].lower()])),
    rule(r"\b(?:к|до) (1[0-9]|2[0-3]|[7-9])()(?=[,.;!?)]|$)", _hour),
)
