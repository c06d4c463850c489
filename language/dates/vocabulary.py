"""Words that dates are made of, English and Russian in one table each, in the forms in which sentences have them."""

import re
from collections.abc import Iterable, Mapping


def numbered(forms: str, start: int = 0) -> dict[str, int]:
    """Names that count up: bars between them, commas between the forms of one."""
    return {form.strip(): number for number, name in enumerate(forms.split("|"), start) for form in name.split(",")}


def either(words: Iterable[str]) -> str:
    """A pattern of any of these, the longest first."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


EN_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
RU_WEEKDAYS = ("понедельник", "вторник", "среда", "четверг", "пятница", "суббота", "воскресенье")
EN_MONTHS = tuple(numbered("January|February|March|April|May|June|July|August|September|October|November|December"))
RU_MONTHS = tuple(numbered("января|февраля|марта|апреля|мая|июня|июля|августа|сентября|октября|ноября|декабря"))
WEEKDAYS = {
    **{name.lower(): number for names in (EN_WEEKDAYS, RU_WEEKDAYS) for number, name in enumerate(names)},
    **numbered("mon | tues, tue | weds, wed | thurs, thur, thu | fri"),
    **numbered(
        "понедельника, понедельнику, понедельником | вторника, вторнику, вторником | среды, среде, среду, средой | "
        "четверга, четвергу, четвергом | пятницы, пятнице, пятницу, пятницей | "
        "субботы, субботе, субботу, субботой | воскресенья, воскресенью"
    ),
}
MONTHS = {
    **{name.lower(): number for names in (EN_MONTHS, RU_MONTHS) for number, name in enumerate(names, 1)},
    **numbered("jan | feb | mar | apr | may | jun | jul | aug | sept, sep | oct | nov | dec", 1),
}
# A pattern of the months in every case.
RU_MONTH = (
    r"(?:январ|феврал|март|апрел|ма(?=[йяею])|июн|июл|август|сентябр|октябр|ноябр|декабр)(?:[яьаейюу]|[ое]м|[яе]х)?"
)
_ONES = "первого | второго | третьего | четвёртого, четвертого | пятого | шестого | седьмого | восьмого | девятого"
RU_ORDINALS = {
    **numbered(f"{_ONES} | десятого", 1),
    **{f"{stem}надцатого": number for number, stem in enumerate(
        ("один", "две", "три", "четыр", "пят", "шест", "сем", "восем", "девят"), 11
    )},
    **{f"{tens} {one}": 10 * (2 + at) + number for one, number in numbered(_ONES, 1).items()
       for at, tens in enumerate(("двадцать", "тридцать"))},
    "двадцатого": 20, "тридцатого": 30,
}  # fmt: skip
RU_DATIVE_ORDINALS = {name.removesuffix("го") + "му": number for name, number in RU_ORDINALS.items()}
# «В пт»: after a preposition alone.
RU_SHORT_WEEKDAYS = numbered("пн | вт | ср | чт | пт | сб | вс")
EN_HOURS = numbered("one | two | three | four | five | six | seven | eight | nine | ten | eleven | twelve", 1)
RU_HOURS = numbered(
    "час, часу, часа | два, двух, двум | три, трёх, трех, трём, трем | четыре, четырёх, четырех, четырём, четырем | "
    "пять, пяти | шесть, шести | семь, семи | восемь, восьми | девять, девяти | десять, десяти | "
    "одиннадцать, одиннадцати | двенадцать, двенадцати",
    1,
)
# Minutes to or past an hour.
MINUTES = {
    "quarter": 15, "a quarter": 15, "five": 5, "ten": 10, "twenty": 20,
    "пяти": 5, "десяти": 10, "четверти": 15, "пятнадцати": 15, "двадцати": 20, "двадцати пяти": 25,
}  # fmt: skip
COUNTS: Mapping[str, float] = {
    "a couple of": 2, "couple of": 2, "a few": 3, "half a": 0.5, "half an": 0.5, "a": 1, "an": 1, "one": 1, "two": 2,
    "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "twelve": 12,
    "пару": 2, "полтора": 1.5, "полторы": 1.5, "один": 1, "одну": 1, "два": 2, "две": 2, "три": 3, "четыре": 4,
    "пять": 5, "шесть": 6, "семь": 7, "восемь": 8, "девять": 9, "десять": 10, "несколько": 3,
}  # fmt: skip
UNITS = {
    form: unit
    for unit, forms in {
        "minute": "minute minutes min mins мин минут минуту минуты",
        "hour": "hour hours hr hrs час часа часов часик",
        "day": "day days день дня дней сутки суток денёк деньков",
        "week": "week weeks неделю недели недель недельку",
        "month": "month months месяц месяца месяцев",
        "year": "year years год года году лет",
    }.items()
    for form in forms.split()
}
# Hours at which parts of the day are meant.
PARTS_OF_DAY = {
    "first thing": 10, "morning": 10, "noon": 12, "midday": 12, "lunchtime": 13, "lunch": 13, "afternoon": 15,
    "evening": 19, "night": 21, "tonight": 21, "утром": 10, "с утра": 10, "к утру": 10, "в полдень": 12,
    "arvo": 15, "teatime": 17, "tea time": 17, "after work": 18, "after school": 16, "bedtime": 21, "утречком": 10,
    "с утречка": 10, "вечерком": 19, "под вечер": 19, "после работы": 19, "к ужину": 19,
    "к полудню": 12, "до полудня": 12, "до обеда": 13, "к обеду": 13, "в обед": 13, "после обеда": 15, "днём": 15,
    "днем": 15, "вечером": 19, "к вечеру": 19, "до вечера": 19, "ночью": 23, "к ночи": 23,
}  # fmt: skip


# In any case, by their first three letters.
_MONTH_PREFIXES = {name[:3]: number for name, number in MONTHS.items()} | dict.fromkeys(("май", "мае", "маю"), 5)


def month_of(name: str) -> int:
    return _MONTH_PREFIXES[name[:3].lower()]
