"""Closed classes of Russian words, and what the dictionary says of single words in a sentence."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from agents.people import Mention, name_in
from agents.syntax.clauses import ImpliedOwner, Word
from language.russian import WordForm, word_forms
from language.words import has_cyrillic


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


COORDINATING = _listed("и а но да или либо зато потом затем поэтому плюс")
# A clause that begins with these says when, why or of what, not what somebody does.
SUBORDINATING = _listed(
    "если когда пока чтобы чтоб что как который которая которое которые потому хотя раз иначе вдруг будто словно "
    "поскольку где куда откуда кто чем якобы лишь ли"
)
HEDGES = _listed("возможно может наверное наверно видимо вероятно вряд якобы допустим представь будто вдруг")
POLITE = _listed("пожалуйста плиз пж пжл пжлст плз пожалста спасибо спс будь добр будь добра будьте добры ка")
FILLERS = _listed(
    "и а но да ну вот же еще тоже также тогда потом затем всё все просто только уж уже сам сама сами ладно хорошо окей "
    "ок обещаю клянусь надеюсь слышь слушайте короче кстати итак итого значит наверняка обязательно точно правда "
    "слушай блин"
)
NEED = _listed("надо нужно необходимо требуется следует осталось предстоит придется пора стоит надобно")
GROUPS = _listed(
    "коллеги ребята ребят парни парней девочки девчата народ друзья товарищи мужики все всем люди команда пап "
    "мам мамуль папуль сынок доча дочка бабуль дед дедуль брат братан "
    "бро шеф милый милая дорогой дорогая дорогие солнышко солнце родной родная зая малыш"
)
KIN = _listed("дядя тётя баба дед бабушка дедушка")
ANYBODY = _listed("кто-нибудь кто-то кто-либо")
DATIVE = {"мне": ImpliedOwner.SPEAKER, "нам": ImpliedOwner.NOBODY, "тебе": ImpliedOwner.NOBODY,
           "вам": ImpliedOwner.NOBODY, "себе": ImpliedOwner.SPEAKER}  # fmt: skip
# Said to keep the talk going, not to have something done.
TALK = _listed(
    "извинить простить смотреть посмотреть глянуть представить сказать знать помнить вспомнить держаться поздравлять "
    "понять считать погодить подождать слушать послушать поверить верить думать подумать заметить жить быть мочь "
    "хотеть "
    "пойти прикинуть вообразить бояться волноваться переживать радоваться давать бывать учить отдыхать беречь болеть "
    "угадать"
)
LOOKING = _listed("смотреть посмотреть глянуть послушать")
# Perfective verbs of what happens to somebody, which nobody promises.
HAPPENING = _listed(
    "мочь смочь успеть суметь сказать признаться поверить понять заметить умереть сойти устать соскучиться пожалеть "
    "стать захотеть согласиться простить выжить пережить забыть запомнить повезти заболеть опоздать потерять удивиться "
    "расстроиться обрадоваться надеяться увидеть услышать проснуться уснуть добавить повторить напомнить узнать выйти "
    "скорчиться лопнуть взорваться дать дождаться быть"
)
# Verbs that make an infinitive somebody's intention or duty.
INTENDING = _listed(
    "собираться планировать обещать обещаться пообещать обязаться быть постараться попробовать стараться взяться "
    "браться "
    "начать начинать согласиться решить намереваться клясться поклясться договориться подписаться вызваться "
    "хотеть успеть "
    "смочь суметь должный обязанный"
)
WISHING = _listed("хотеть хотеться требовать попросить просить поручить сказать передать велеть")
DEMANDING = _listed("просить попросить требовать потребовать велеть умолять ждать")
VOWING = _listed("обещать пообещать обещаться взяться подписаться вызваться договориться поклясться")
GOING = _listed("идти ехать пойти поехать сходить съездить бежать лететь отправляться собираться")
ASKING = _listed(
    "попросить просить поручить поручать сказать напомнить назначить передать велеть поставить просигналить заставить "
    "предложить намекнуть отправить послать"
)
# Present of these tells a state of affairs, however soon.
STATES = _listed(
    "хотеть мочь знать любить думать считать надеяться бояться понимать верить видеть слышать чувствовать "
    "помнить болеть "
    "спать жить сидеть стоять лежать устать нравиться казаться быть работать ждать говорить"
)
RESTING = _listed("висеть лежать числиться остаться оставаться быть стать")
READY = _listed("готовый сдать сделать отправить подписать оплатить запустить закончить выполнить")
BETWEEN = re.compile(r"[,;:()!?…—–]|\s-\s|\.\s")
DATE_LEADS = _listed("до к ко в во на с со по от за уже примерно около не позже позднее срок где-то ближе")


def verb_of(word: Word) -> WordForm | None:
    """The reading of a word as a verb, where that is likely."""
    if word.mention or word.is_date or not has_cyrillic(word.text):
        return None
    forms = word_forms(word.lower)
    found = next((form for form in forms if form.has("VERB") or form.has("INFN")), None)
    if found is None or found.has("Abbr") or found.score < 0.15 or (not found.is_known and found.score < 0.5):
        return None
    if found.has("2per", "plur", "futr"):
        # «Отложите» is rather asked than foretold.
        found = next((form for form in forms if form.has("impr") and form.lemma == found.lemma), found)
    first = forms[0]
    if found.has("impr") and (first.has("ADVB") or first.has("PRCL") or first.has("INTJ")):
        return None
    is_minor = found.score < 0.4 and first.score > found.score
    if is_minor and (first.has("PREP") or first.has("CONJ") or first.has("NPRO") or first.has("Apro")):
        return None
    return found if found.score >= 0.3 or not is_minor else None


def reading_as(word: Word, part: str, *lemmas: str) -> WordForm | None:
    if not has_cyrillic(word.text):
        return None
    return next((form for form in word_forms(word.lower) if form.has(part) and form.lemma in lemmas), None)


def is_noun_in(word: Word, case: str) -> bool:
    """Whether a word is likely a noun in a case; any Latin word may be."""
    if not has_cyrillic(word.text):
        return True
    return any(form.has("NOUN", case) for form in word_forms(word.lower)[:2])


def is_thing(word: Word) -> bool:
    """Check whether a word names something by itself: no pronoun, no particle, no adverb."""
    if not has_cyrillic(word.text):
        return True
    first = word_forms(word.lower)[0]
    return bool(word.mention) or (
        any(first.has(kind) for kind in ("NOUN", "ADJF", "NUMR", "PRTF", "INFN")) and not first.has("Apro")
    )


def may_be_person(word: Word, at: int) -> bool:
    """A capitalised Latin word in a Russian sentence, which opens a clause or stands before its verb."""
    return not has_cyrillic(word.text) and word.text[:1].isupper() and word.text[1:].islower() and at <= 3


def is_nominative(word: Word) -> bool:
    if not has_cyrillic(word.text):
        return True
    readings = [form for form in word_forms(word.text.split()[0].lower()) if form.has("Name") or form.has("Surn")]
    return not readings or any(form.has("nomn") or form.has("voct") for form in readings)


def has_case(word: Word, *cases: str) -> bool:
    readings = [form for form in word_forms(word.text.split()[0].lower()) if form.has("Name") or form.has("Surn")]
    return not readings or any(not form.grammemes.isdisjoint(cases) for form in readings)


def mention_in(word: Word, cases: tuple[str, ...]) -> Mention:
    """The mention with its name as it is meant in one of these cases."""
    mention = word.mention or Mention(word.start, word.end, word.text)
    if mention.user_id or not has_cyrillic(word.text) or " " in mention.name:
        return mention
    return replace(mention, name=name_in(word.text, cases))


def with_names(words: Iterable[Word]) -> tuple[Word, ...]:
    """Words of a sentence, where capitalised ones that the dictionary has not, or has as surnames, are people.

    «Дядя Коля» is one person.
    """
    people: list[Word] = []
    for word in words:
        if not word.mention and not word.is_date and _is_name(word):
            name = name_in(word.text)
            word = replace(word, mention=Mention(word.start, word.end, name))
        kin = people[-1] if people else None
        lemma = word_forms(kin.lower)[0].lemma if kin and word.mention and has_cyrillic(kin.text) else ""
        if kin and lemma in KIN and word.start == kin.end + 1:
            called = replace(mention_in(word, ("nomn",)), start=kin.start)
            name = called.name if called.user_id else f"{lemma.capitalize()} {called.name}"
            people[-1] = replace(word, start=kin.start, mention=replace(called, name=name))
        else:
            people.append(word)
    return tuple(people)


def _is_name(word: Word) -> bool:
    if not (has_cyrillic(word.text) and word.text[:1].isupper() and word.text[1:].islower()):
        return False
    first = word_forms(word.lower)[0]
    return first.has("Surn") or (first.has("Name") and not first.is_known)


def first_named(words: Sequence[Word]) -> Mention | None:
    """The first person among words, in whatever case."""
    at = next((at for at, word in enumerate(words) if word.mention), None)
    if at is None:
        return None
    is_led = at > 0 and is_preposition(words[at - 1].lower)
    return mention_in(words[at], ("gent", "ablt", "loct", "datv")) if is_led else words[at].mention


def is_preposition(word: str) -> bool:
    return bool(word) and has_cyrillic(word) and word_forms(word)[0].has("PREP")


def may_be_subject(word: Word) -> bool:
    first = word_forms(word.lower)[0]
    return first.has("nomn") and (first.has("NOUN") or first.has("NPRO"))


def is_person(word: Word) -> bool:
    """Check for a word for somebody, such as «голубушка», with which one may be called."""
    forms = word_forms(word.lower) if has_cyrillic(word.text) else ()
    return any(form.has("NOUN", "anim", "nomn") or form.has("NOUN", "anim", "voct") for form in forms)
