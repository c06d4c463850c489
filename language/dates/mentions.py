"""Days and deadlines that a text names, whatever day they turn out to be."""

import re
from collections.abc import Iterator

_EN_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December|"
    r"Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec)\b\.?"
)
_EN_DAY = r"(?:[Mm]onday|[Tt]uesday|[Ww]ednesday|[Tt]hursday|[Ff]riday|[Ss]aturday|[Ss]unday)"
_EN_COUNT = r"(?:\d+|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|few|couple(?: of)?|several|half a)"
_EN_UNIT = r"(?:minute|hour|day|night|week|weekend|month|quarter|year|summer|winter|spring|fall|autumn)"
_RU_MONTH = (
    r"(?:январ[яеюь]|феврал[яеюь]|март[аеу]?|апрел[яеюь]|ма[яею]|июн[яеюь]|июл[яеюь]|август[аеу]?|сентябр[яеюь]|"
    r"октябр[яеюь]|ноябр[яеюь]|декабр[яеюь])"
)
_RU_DAY = r"(?:понедельник\w*|вторник\w*|сред[уеы]|четверг\w*|пятниц\w*|суббот\w*|воскресень\w*)"
_RU_ORDINAL = (
    r"(?:(?:двадцать |тридцать )?(?:перв|втор|треть|четв[её]рт|пят|шест|седьм|восьм|девят|десят|\w{4,10}надцат|"
    r"двадцат|тридцат)(?:ого|его|ое|ому|ый|ий))"
)
_RU_COUNT = r"(?:\d+|пару|полтор[аы]|одну|один|два|две|три|четыре|пять|шесть|семь|восемь|девять|десять|несколько)"
_RU_UNIT = r"(?:минут\w*|час\w{0,2}|дн[яей]\w*|день|сут\w+|недел\w+|месяц\w*|квартал\w*|год[аеуы]?|лет)"
_RU_WHICH = r"(?:следующ|прошл|прошедш|ближайш|будущ|минувш|эт|текущ|позапрошл)"

_EXACT = (
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?",
    r"\d{1,2}\.\d{1,2}\.(?:\d{4}|\d\d)|\d{1,2}/\d{1,2}/(?:\d{4}|\d\d)",
    rf"\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_EN_MONTH}(?:,? \d{{4}})?",
    rf"{_EN_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?|{_EN_MONTH}(?: of)? \d{{4}}",
    rf"(?:end|close|beginning|start|middle) of (?:the |this |next )?(?:{_EN_UNIT}|{_EN_MONTH})|mid-{_EN_MONTH}",
)
_SPOKEN = (
    rf"(?:next|last|this|past|coming|following|every|each) (?:{_EN_UNIT}s?|{_EN_DAY}|{_EN_MONTH})",
    rf"(?:in|within) {_EN_COUNT} {_EN_UNIT}s?|{_EN_COUNT} {_EN_UNIT}s? (?:ago|from now|later|before|after)",
    r"(?:the )?day (?:after tomorrow|before yesterday)|tomorrow|yesterday|tonight",
    rf"(?:\d{{1,2}}(?:-?го|-?е|-?му)?|{_RU_ORDINAL}) {_RU_MONTH}(?: \d{{4}}(?: г(?:од[ау]?|\.)?)?)?",
    rf"(?:начал[еоау]|конец|конц[аеу]|середин[аеуы]) (?:{_RU_WHICH}\w+ )?(?:{_RU_UNIT}|{_RU_MONTH})",
    rf"{_RU_WHICH}\w{{1,3}} (?:{_RU_UNIT}|{_RU_DAY}|выходн\w+|лет\w+|зим\w+|весн\w+|осен\w+|{_RU_MONTH})",
    rf"(?:через|спустя) (?:{_RU_COUNT} )?{_RU_UNIT}|(?:{_RU_COUNT} )?{_RU_UNIT} (?:тому )?назад",
    r"через пол(?:года|часа)|послезавтра|позавчера|завтра|вчера",
    rf"(?:во?|ко?|до|со?|на|по|кажд\w+) (?P<said>{_RU_DAY})",
    rf"(?:во?|к|до|с|на|по|за) (?P<said>{_RU_MONTH}(?: \d{{4}}(?: года?)?)?)",
)
# These are words of another kind where they are written small.
_LARGE = (
    rf"{_EN_DAY}s?",
    r"January|February|April|June|July|August|September|October|November|December",
    r"(?:[iI]n|[bB]y|[sS]ince|[uU]ntil) (?P<said>March|May)",
    r"(?:Q[1-4]|[1-4]Q)(?: \d{4})?",
)
_LEAST = (
    r"(?:[1-4]|перв\w+|втор\w+|трет\w+|четв[её]рт\w+|I{1,3}|IV)(?:-?[мй])? квартал\w*(?: \d{4}(?: года?)?)?",
    r"(?:19|20)\d\d(?: год[ауе]?м?| г\.)?",
    r"\d{1,2}(?::\d\d)? ?[ap]\.?m\.?|\d{1,2}:\d\d|\d{1,2} (?:утра|вечера|дня|ночи)",
    r"\d{1,2}(?:-?го|-?му) числ[ау]|\d{1,2} числа|the \d{1,2}(?:st|nd|rd|th)",
)


def _compiled(patterns: tuple[str, ...], flags: int) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(rf"(?<![\w.-])(?:{each})(?!\w)", flags) for each in patterns)


_PATTERNS = (
    *_compiled(_EXACT, re.NOFLAG),
    *_compiled(_SPOKEN, re.IGNORECASE),
    *_compiled(_LARGE, re.NOFLAG),
    *_compiled(_LEAST, re.IGNORECASE),
)


def dates_in(text: str) -> Iterator[tuple[int, int]]:
    """Where dates stand, without the prepositions that lead to them."""
    taken: list[tuple[int, int]] = []
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            start, end = match.span("said" if match.groupdict().get("said") else 0)
            if not any(start < other_end and other < end for other, other_end in taken):
                taken.append((start, end))
                yield start, end
