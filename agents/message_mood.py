"""Mood of a message: its tone without what it only arranges or states, and with irony heard."""

import math
import re
from datetime import UTC, datetime

from agents.context_manager.extraction import find_statement
from agents.fragments import MessageSentence, message_sentences
from agents.people import KnownPeople
from agents.task_manager.extraction import find_tasks
from agents.tone import ToneAnalysis, analyse_tone
from bus_schema.processing import FactKind
from language.words import Language

_NOBODY = KnownPeople()
_ANY_TIME = datetime(2000, 1, 3, 12, tzinfo=UTC)
# A request or a fact in words that carry feeling is mostly none of the speaker's.
_MATTER_SHARE = 0.25
_QUESTION_SHARE = 0.5
_STATED_SHARE = 0.5
_IRONIC = -0.5
_OVERJOYED_VALUE = 0.4
# One weak word is not yet a mood.
_WEAK = 0.36
_SHORT_WORDS = 3
_OVERJOYED = re.compile(r"!!|\bура\b", re.IGNORECASE)
_AGAIN = re.compile(
    r"\b(?:опять|снова|в который раз|\w+[ыо]?й раз|again|another|yet|third time|as usual|как обычно|как всегда|"
    r"still|всё ещё)\b",
    re.IGNORECASE,
)
_AGREES = re.compile(
    r"^\W*(?:ok|okay|great|good|fine|cool|perfect|brilliant|lovely|nice|super|thanks|хорошо|отлично|супер|ладно|"
    r"здорово|класс|"
    r"прекрасно|договорились)\b[,.! ]",
    re.IGNORECASE,
)
# Praise that opens what is nothing to praise: «ну супер, …», "oh great, another …".
_IRONY = re.compile(
    r"^\W*(?:ну (?:вот )?(?:супер|отлично|здорово|прекрасно|класс\w*|замечательно|молод\w+|спасибо|конечно|круто|"
    r"хорош\w*|да|"
    r"вообще|просто)|ага,? конечно|да уж|вот спасибо|спасибо большое,? что|просто (?:супер|прекрасно|"
    r"замечательно|класс\w*|отлично)|"
    r"прекрасно,? (?:просто|опять|снова)|отлично,? (?:просто|опять|снова)|супер,? (?:просто|опять|снова)|"
    r"oh,? (?:great|good|brilliant|lovely|joy|wonderful|fantastic|perfect|super)|(?:well )?(?:that's )?just "
    r"(?:great|perfect|brilliant|"
    r"lovely|wonderful|what i needed)|sure,? (?:another|because|why not)|(?:great|brilliant|lovely|fantastic|"
    r"wonderful|perfect|fab|"
    r"super|cheers|thanks|nice),? (?:another|now|so|for (?:nothing|another|telling|letting|leaving|ruining|the "
    r"warning)|just)\b.*|yeah,? (?:right|great|cool)|"
    r"love (?:that|it when|how|being)|so much for|nothing like|gotta love|good to know)\b|"
    r"\b(?:living the dream|what could go wrong|lucky me|aren't i lucky|счастье-то какое|жизнь удалась|как "
    r"всегда вовремя|"
    r"всю жизнь мечтал[аи]?|кто бы сомневался|just what i (?:needed|wanted))\b",
    re.IGNORECASE,
)
_UNREAL = re.compile(
    r"\b(?:если|бы|if|would|suppose|imagine|remember when|used to|помнишь)\b|'d\b|"
    r"^\W*(?:have (?:a|fun)|hope|good luck|happy (?:birthday|new|friday|anniversary)|merry|enjoy|congrat\w*|с "
    r"(?:днём|праздником|новым)|"
    r"удачи|хорош(?:его|ей)|приятн(?:ого|ой)|поздравля\w+)\b",
    re.IGNORECASE,
)
_CHEERED = re.compile(r"!\s*$|[🎉🥳❤😍👏🙏😊]")


def message_mood(text: str, language: Language | None = None) -> ToneAnalysis:
    """The mood that a message shows, −1 to 1, with the words that it shows in; stronger sentences count for more."""
    heard = [tone for sentence in message_sentences(text, language) if (tone := _of_sentence(sentence)).evidence]
    total = math.fsum(abs(tone.value) for tone in heard)
    if not total:
        return ToneAnalysis(0.0)
    value = math.fsum(tone.value * abs(tone.value) for tone in heard) / total
    evidence = dict.fromkeys(word for tone in heard if tone.value * value > 0 for word in tone.evidence)
    return ToneAnalysis(round(value, 3), tuple(evidence))


def _of_sentence(sentence: MessageSentence) -> ToneAnalysis:
    tone = analyse_tone(sentence.text)
    text = sentence.text.replace("’", "'")
    if not tone.value and _OVERJOYED.search(text) and not _AGAIN.search(text) and not _asks(sentence):
        return ToneAnalysis(_OVERJOYED_VALUE, ("!!",))
    if tone.value > -_WEAK and not sentence.is_question and not _CHEERED.search(text) and (irony := _irony(text, tone)):
        return ToneAnalysis(_IRONIC, (irony,))
    return ToneAnalysis(round(tone.value * _share(sentence, tone), 3), tone.evidence) if tone.value else tone


def _irony(text: str, tone: ToneAnalysis) -> str:
    """Words that praise what is nothing to praise; empty where there are none."""
    if found := _IRONY.search(text):
        return found[0].strip()
    opening = re.split(r"[,.!]", text, maxsplit=1)[0]
    praises = bool(tone.evidence) and len(opening.split()) <= _SHORT_WORDS and tone.evidence[0] in opening
    return opening.strip() if praises and _AGAIN.search(text[len(opening) :]) else ""


def _share(sentence: MessageSentence, tone: ToneAnalysis) -> float:
    """Share of a tone that is the speaker's mood: little in requests, facts, wishes and agreement."""
    text = sentence.text
    if _UNREAL.search(text) or _asks(sentence):
        return _MATTER_SHARE
    if _AGREES.match(text) and not _CHEERED.search(text) and len(tone.evidence) == 1:
        return _MATTER_SHARE
    kind = find_statement(sentence, _ANY_TIME, _NOBODY)
    if kind:
        return _MATTER_SHARE if kind.kind in (FactKind.PREFERENCE, FactKind.ROLE) else _STATED_SHARE
    is_weak = abs(tone.value) < _WEAK and len(tone.evidence) == 1
    return _QUESTION_SHARE if sentence.is_question or is_weak else 1.0


def _asks(sentence: MessageSentence) -> bool:
    return bool(find_tasks(sentence, _ANY_TIME, _NOBODY))
