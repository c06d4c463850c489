"""The mood watcher: assesses the mood of users, message by message, fragment by fragment."""

import asyncio
import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from agents.configuration.prompts import shipped_guide
from agents.context_manager.extraction import find_statement
from agents.fragment_reader import FragmentReader, ReadingPart
from agents.fragments import MessageSentence, ProcessingResult, links_to, message_sentences, quotes_message
from agents.people import KnownPeople
from agents.present import Present
from agents.sentence_kinds import SentenceKind, sentence_kind
from agents.task_manager.extraction import find_tasks
from agents.tone import ToneAnalysis, analyse_tone, combine_tones
from bus_schema.dialogue import DialogueFragment, DialogueMessage
from bus_schema.ids import derived
from bus_schema.notification import NotificationGenerated, Urgency
from bus_schema.processing import FactKind, Mood, Tone
from language.words import Language, first_words, language_of

_NOBODY = KnownPeople()
_ANY_TIME = datetime(2000, 1, 3, 12, tzinfo=UTC)
# A request or a fact in words that carry feeling is mostly none of the speaker's.
_MATTER_SHARE = 0.25
_QUESTION_SHARE = 0.5
_STATED_SHARE = 0.5
_WEAK_SHARE = 0.7
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
    r"love (?:that|it when|how|being)|so much for|typical\b|thanks a (?:bunch|million|lot) for|nothing like|"
    r"gotta love|good to know)\b|"
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
# Log-odds that a tone of 1 adds to joy, to distress, and takes from plain talk; the least value that is a mood. Fitted
# in cross-validation on agents/data/sentences: 77 % of moods with their sign; 12 % of plain talk misheard, 3 % of
# tasks and facts. The least value is set by labelled everyday talk of others: 8 to 9 % of it is misheard.
_LEXICON_SIGN, _LEXICON_FELT = 1.0, 0.5
_LEAST_FELT = 0.2
# The least value of a mood, the most of what is none.
_MOOD, _UNFELT = 0.25, 0.15
_EVIDENCE_WORDS = 6
_CHEERED = re.compile(r"!\s*$|[🎉🥳❤😍👏🙏😊]")


def message_mood(text: str, language: Language | None = None) -> ToneAnalysis:
    """The mood that a message shows, −1 to 1, with the words that it shows in; stronger sentences count for more."""
    heard = [tone for each in message_sentences(text, language) if (tone := _of_sentence(each)).evidence]
    total = math.fsum(abs(tone.value) for tone in heard)
    if not total:
        return ToneAnalysis(0.0)
    value = math.fsum(tone.value * abs(tone.value) for tone in heard) / total
    evidence = dict.fromkeys(word for tone in heard if tone.value * value > 0 for word in tone.evidence)
    return ToneAnalysis(round(value, 3), tuple(evidence))


def _of_sentence(sentence: MessageSentence) -> ToneAnalysis:
    """The mood that a sentence shows, by its words and by the model; evidence only where it counts as a mood."""
    tone = analyse_tone(sentence.text)
    text = sentence.text.replace("’", "'")
    if not tone.value and _OVERJOYED.search(text) and not _AGAIN.search(text) and not _asks(sentence):
        return ToneAnalysis(_OVERJOYED_VALUE, ("!!",))
    if tone.value > -_WEAK and not sentence.is_question and not _CHEERED.search(text) and (irony := _irony(text, tone)):
        return ToneAnalysis(_IRONIC, (irony,))
    share = _share(sentence, tone)
    # Of a few words the lexicon knows more.
    is_short = bool(tone.value) and len(text.split()) <= _SHORT_WORDS
    both = share * tone.value if is_short else _weighed(sentence_kind(sentence.text), share * tone.value)
    both *= share if share == _MATTER_SHARE and not is_short else 1.0
    if abs(both) < _LEAST_FELT:
        return ToneAnalysis(round(both / _LEAST_FELT * _UNFELT, 3), tone.evidence)
    value = math.copysign(min(1.0, _MOOD + (abs(both) - _LEAST_FELT) * (1 - _MOOD)), both)
    evidence = tone.evidence if tone.value * both > 0 else (first_words(sentence.text, _EVIDENCE_WORDS),)
    return ToneAnalysis(round(value, 3), evidence)


def _weighed(kind: SentenceKind, heard: float) -> float:
    """Probability of joy less that of distress, by the classifier, whose odds the lexicon's tone shifts."""
    plain = max(1 - kind.glad - kind.upset, 0.0) * math.exp(-_LEXICON_FELT * abs(heard))
    glad, upset = kind.glad * math.exp(_LEXICON_SIGN * heard), kind.upset * math.exp(-_LEXICON_SIGN * heard)
    return (glad - upset) / (glad + upset + plain)


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
    if is_weak:
        return _WEAK_SHARE
    return _QUESTION_SHARE if sentence.is_question else 1.0


def _asks(sentence: MessageSentence) -> bool:
    return bool(find_tasks(sentence, _ANY_TIME, _NOBODY))


# The weight of the newest tone in what is usual.
_NEWEST = 0.3
_SHARP = 0.6
_FEWEST_HEARD = 2
_FEWEST_EVIDENCE = 2
AGENT = "mood_watcher"
READING = "mood"
_NEWS_LASTS = timedelta(hours=6)
# As plain as makes no difference: a judgement of this needs no evidence.
_PLAIN = 0.15
_PHRASES = {
    Language.ENGLISH: {
        "down": "You sound more upset than usual. Is there something that I can take off you?",
        "up": "You sound happier than usual. Glad to hear it!",
        "heard": "heard in: {evidence}",
    },
    Language.RUSSIAN: {
        "down": "Похоже, сейчас тяжелее обычного. Могу ли я чем-нибудь помочь?",
        "up": "Похоже, настроение лучше обычного. Это радует!",
        "heard": "слышно в словах: {evidence}",
    },
}


class MoodHistory(BaseModel):
    """Usual mood of one user, with the number of moods it is made of."""

    model_config = ConfigDict(frozen=True)
    usual: Tone = 0.0
    heard: int = Field(default=0, ge=0)
    is_turned: bool = False

    def is_sharp_turn(self, tone: float, evidence: int) -> bool:
        """Check whether a tone is far from the usual; one word or the first fragments are not enough."""
        return self.heard >= _FEWEST_HEARD and evidence >= _FEWEST_EVIDENCE and abs(tone - self.usual) >= _SHARP

    def with_tone(self, tone: float, is_sharp: bool) -> Self:
        """The history with one more tone in it."""
        usual = tone if not self.heard else self.usual + _NEWEST * (tone - self.usual)
        return self.model_copy(update={"usual": round(usual, 3), "heard": self.heard + 1, "is_turned": is_sharp})


class ReadMood(BaseModel):
    """The model's answer: tone and evidence."""

    model_config = ConfigDict(extra="forbid")
    tone: float = Field(ge=-1, le=1)
    evidence: list[str] = Field(max_length=8)


class MoodWatcher:
    """Hears by its lexicon and a small model, or better with a language model, which has to name what it judges by."""

    def __init__(self, reader: FragmentReader) -> None:
        self._reader = reader

    async def process(
        self, fragment: DialogueFragment, history: MoodHistory, present: Present | None = None
    ) -> tuple[MoodHistory, ProcessingResult[Mood]]:
        """The mood of a fragment, with the user's history after it."""
        messages = fragment.heard
        outcome = ProcessingResult[Mood]()
        if messages:
            tone = await self._tone(messages, present)
            is_sharp = history.is_sharp_turn(tone.value, len(tone.evidence))
            mood = Mood(
                tone=tone.value,
                usual=history.usual,
                is_sharp_turn=is_sharp,
                evidence=tone.evidence,
                assessed_at=fragment.ended_at,
                message_ids=tuple(message.message_id for message in messages),
            )
            outcome = outcome.model_copy(
                update={
                    "items": (mood,),
                    # A mood that stays is no news.
                    "notifications": (_notice(mood, messages),) if is_sharp and not history.is_turned else (),
                    "links": links_to("message", mood.message_ids),
                }
            )
            history = history.with_tone(tone.value, is_sharp)
        return history, outcome

    async def _tone(self, messages: Sequence[DialogueMessage], present: Present | None) -> ToneAnalysis:
        # Off the event loop: a message of 800 sentences takes seconds.
        by_rules = await asyncio.to_thread(lambda: combine_tones(message_mood(each.content or "") for each in messages))
        guide = shipped_guide(AGENT, language_of(" ".join(message.content or "" for message in messages)))
        part = ReadingPart(READING, guide, "Judge the tone as JSON.", ReadMood)
        read = await self._reader.read(part, messages, present)
        if read is None:
            return by_rules
        evidence = tuple(each for each in read.evidence if quotes_message(each, messages))
        # A small model hears a plain tone, or joy, where others are angry.
        adds = evidence and abs(read.tone) >= _PLAIN and read.tone * by_rules.value >= 0
        return ToneAnalysis(round(read.tone, 3), evidence) if adds else by_rules


def _notice(mood: Mood, messages: Sequence[DialogueMessage]) -> NotificationGenerated:
    user = messages[0].user_id
    phrases = _PHRASES[language_of(" ".join(message.content or "" for message in messages))]
    way = "up" if mood.tone > mood.usual else "down"
    about = f"mood {way} {mood.assessed_at:%Y-%m-%d}"
    return NotificationGenerated(
        notification_id=f"ntf_{derived(messages[0].message_id, AGENT, way)}",
        agent=AGENT,
        to_user=user,
        message=phrases[way],
        context=phrases["heard"].format(evidence=", ".join(mood.evidence))[:4000],
        about=about,
        urgency=Urgency.NORMAL if way == "down" else Urgency.LOW,
        expires=mood.assessed_at + _NEWS_LASTS,
        links=links_to("message", mood.message_ids),
    )
