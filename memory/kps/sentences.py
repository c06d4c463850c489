"""Where sentences end, in Russian and in English."""

import re
from collections.abc import Iterator

_END = re.compile(r"[.!?…]+[»”\"')\]]*(?=\s)")
_WORD = re.compile(r"[^\W_]+(?:[.-][^\W_]+)*$")
_NEXT = re.compile(r"\s*[«“\"'(\[—–-]*\s*(\S)")
# A dot after these does not end a sentence, for something always follows them.
# fmt: off
_ABBREVIATIONS = {
    "mr", "mrs", "ms", "dr", "prof", "st", "vs", "fig", "figs", "no", "nos", "vol", "pp", "ed", "eds",
    "approx", "dept", "est", "e.g", "i.e", "cf", "al", "им", "см", "ср", "рис", "табл", "гл", "проф", "акад",
    "доц", "тов", "ул", "пер", "просп", "пл", "кв", "стр", "напр", "т.е", "т.к", "т.н", "пос", "обл",
}
# fmt: on
# "12 км. Дальше" ends one, "г. Москва" does not.
_AFTER_NUMBER = {"г", "гг", "в", "вв", "м", "км", "кг", "ч", "л", "p", "m", "h", "s"}


def sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The spans of the sentences between two places, without the space between them."""
    begin = start
    for found in _END.finditer(text, start, end):
        if begin < found.start() and _is_end(text, begin, found, end):
            yield begin, found.end()
            begin = _skip_space(text, found.end(), end)
    if text[begin:end].strip():
        yield begin, end


def _is_end(text: str, begin: int, mark: re.Match[str], end: int) -> bool:
    following = _NEXT.match(text, mark.end(), end)
    if following is None:
        return True
    if following[1].islower():
        return False
    return mark[0][0] != "." or len(mark[0]) > 1 or not _is_abbreviation(text, begin, mark.start())


def _is_abbreviation(text: str, begin: int, dot: int) -> bool:
    word = _WORD.search(text, max(begin, dot - 40), dot)
    if word is None:
        return False
    lower, before = word[0].lower(), text[begin : word.start()].rstrip()
    if lower in _AFTER_NUMBER:
        return not before[-1:].isdigit()
    # Initials; the number of an item, which stands first.
    is_initial = len(lower) == 1 and word[0].isupper()
    return is_initial or lower in _ABBREVIATIONS or (lower.isdecimal() and not before)


def _skip_space(text: str, start: int, end: int) -> int:
    while start < end and text[start].isspace():
        start += 1
    return start
