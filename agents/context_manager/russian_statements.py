"""States of things that Russian sentences tell of, told from what happened and from feelings."""

import re
from collections.abc import Sequence

from agents.syntax.clauses import Sentence, Word
from agents.tone import is_felt
from language.russian import WordForm, word_forms
from language.words import has_cyrillic


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


_CHANGING = _listed(
    "переехать смениться поменяться закрыться открыться перейти подорожать подешеветь вырасти снизиться стать "
    "появиться "
    "увеличить уменьшить повысить перенести изменить поднять сократить снизить переименовать назначить"
)
_TELLING = _listed("напомнить напоминать сообщать сообщить уточнить уточнять говорить повторить повторять")
_USUAL = _listed(
    "жить работать учиться обедать вставать ложиться ездить ходить пользоваться хранить держать носить пить есть "
    "заниматься вести преподавать дежурить водить"
)
_YOU = _listed("ты вы тебе тебя вам вас твой ваш твоя ваша тобой")
_NEWS = _listed("теперь отныне уже")
_OFTEN = _listed("каждый каждую каждое будням выходным всегда обычно теперь только никогда")
_SO = _listed("такой такая такое такие")
_NOUNY = ("NOUN", "ADJF", "NUMR", "LATN", "NUMB", "UNKN")
_SCHEDULE = re.compile(
    r"\bпо (?:понедельник|вторник|сред|четверг|пятниц|суббот|воскресень)\w+м\b|\bс \w+ до \w+", re.IGNORECASE
)
_DASH = re.compile(r"\s[—–-]\s")


def is_choice(words: list[Word]) -> bool:
    """Whether a sentence tells of a choice: «берём серый ламинат», now, of something, without a day to do it on."""
    firsts = [first_form(word) for word in words]
    is_dated = any(word.is_date for word in words) or bool({word.lower for word in words} & {"не", "как"})
    chooses = any(form.has("VERB", "1per", "plur", "pres", "tran") for form in firsts)
    return chooses and not is_dated and any(form.has("NOUN", "accs") or form.has("NOUN", "nomn") for form in firsts)


def holds(read: Sentence, words: list[Word]) -> bool:
    """Whether a sentence tells how things are: of what, and what of it; not what happened, not to whom it speaks."""
    lowers = {word.lower for word in words}
    verbs = [form for word in words if (form := finite_form(word))]
    is_lasting = any(form.has("past", "perf") and (lowers & _NEWS or form.lemma in _CHANGING) for form in verbs)
    is_told = any(form.has("past") or form.has("impr") or form.has("2per") for form in verbs)
    if lowers & _YOU or (is_told and not is_lasting):
        return False
    things = [word for word in words if not word.mention and any(first_form(word).has(kind) for kind in _NOUNY)]
    count = len(things) + sum(bool(word.mention) for word in read.words) + ("я" in lowers)
    if any(form.has("1per") for form in verbs):
        return bool(things) and _is_habit(read, lowers, verbs)
    if count < _FEWEST_THINGS or is_felt(read.text):
        return False
    if any(form.has("3per") for form in verbs):
        return any(word.mention or _is_noun(word) for word in words)
    if verbs and not is_lasting:
        return _has_value(read, words)
    return not lowers & _SO and (is_lasting or "у" in lowers or _says_what(read, words, lowers))


def is_titled(words: list[Word]) -> bool:
    """Whether a sentence says what a person is: «Ахмед — старший смены»."""
    if not any(word.mention for word in words) or any(finite_form(word) for word in words):
        return False
    others = [first_form(word) for word in words if not word.mention]
    return any(form.has("NOUN", "anim", "nomn") or form.has("ADJF", "nomn") for form in others)


def first_form(word: Word) -> WordForm:
    return word_forms(word.lower)[0]


def finite_form(word: Word) -> WordForm | None:
    """The form of a finite verb that tells something; «напомню» only leads to what is told."""
    if word.mention or not has_cyrillic(word.text):
        return None
    first = first_form(word)
    is_lead = first.lemma in _TELLING and first.has("1per")
    return first if first.has("VERB") and not first.has("Abbr") and not is_lead else None


_FEWEST_THINGS = 2


def _is_habit(read: Sentence, lowers: set[str], verbs: list[WordForm]) -> bool:
    is_usual = any(form.lemma in _USUAL for form in verbs) or bool(lowers & _OFTEN)
    return (is_usual or _has_value(read, read.words)) and not any(form.has("futr") for form in verbs)


def _has_value(read: Sentence, words: Sequence[Word]) -> bool:
    return bool(re.search(r"\d", read.text)) or any(not has_cyrillic(word.text) for word in words)


def _is_noun(word: Word) -> bool:
    return first_form(word).has("NOUN", "nomn") or first_form(word).has("NOUN", "accs")


def _says_what(read: Sentence, words: list[Word], lowers: set[str]) -> bool:
    """Check for a value, a person, a schedule, or a word that says what something is: «парковка платная», «я левша»."""
    if _has_value(read, words) or any(word.mention for word in read.words) or lowers & _OFTEN:
        return True
    if _SCHEDULE.search(read.text) or _DASH.search(read.text) or lowers & {"нет", "есть"}:
        return True
    firsts = [first_form(word) for word in words]
    if any(form.has("ADJS") or form.has("PRTS") for form in firsts):
        return True
    nouns = (at for at, form in enumerate(firsts) if form.has("NOUN", "nomn"))
    subject = 0 if words[0].lower == "я" else next(nouns, len(firsts))
    kinds = ("ADJF", "nomn"), ("NOUN", "anim", "nomn")
    return any(
        form.has(*kind) and not form.has("Apro")
        for form in firsts[subject + 1 :]
        for kind in kinds[: 1 + (not subject)]
    )
