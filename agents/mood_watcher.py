"""The mood watcher: assesses the tone of users, fragment by fragment."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from agents.configuration.prompts import shipped_guide
from agents.fragments import ProcessingResult, links_to, quotes_message
from agents.message_mood import message_mood
from agents.models.language_model import LanguageModel
from agents.models.prompt import Material, build_prompt
from agents.models.structured import try_complete_as
from agents.tone import ToneAnalysis, combine_tones
from bus_schema.dialogue import DialogueFragment, DialogueMessage
from bus_schema.ids import derived
from bus_schema.notification import NotificationGenerated, Urgency
from bus_schema.processing import Mood, Tone
from language.words import Language, language_of

# The weight of the newest tone in what is usual.
_NEWEST = 0.3
_SHARP = 0.6
_FEWEST_HEARD = 2
_FEWEST_EVIDENCE = 2
AGENT = "mood_watcher"
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

    def having_heard(self, tone: float, is_sharp: bool) -> Self:
        """The history with one more tone in it."""
        usual = tone if not self.heard else self.usual + _NEWEST * (tone - self.usual)
        return self.model_copy(update={"usual": round(usual, 3), "heard": self.heard + 1, "is_turned": is_sharp})


class ReadMood(BaseModel):
    """The model's answer: tone and evidence."""

    model_config = ConfigDict(extra="forbid")
    tone: float = Field(ge=-1, le=1)
    evidence: list[str] = Field(max_length=8)


class MoodWatcher:
    """Hears by its lexicon, or better with a language model, which has to name what it judges by."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    async def process(
        self, fragment: DialogueFragment, history: MoodHistory
    ) -> tuple[MoodHistory, ProcessingResult[Mood]]:
        """The mood of a fragment, with the user's history after it."""
        messages = fragment.heard
        outcome = ProcessingResult[Mood]()
        if messages:
            tone = await self._tone(messages)
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
            history = history.having_heard(tone.value, is_sharp)
        return history, outcome

    async def _tone(self, messages: Sequence[DialogueMessage]) -> ToneAnalysis:
        by_lexicon = combine_tones(message_mood(message.content or "") for message in messages)
        guide = shipped_guide(AGENT, language_of(" ".join(message.content or "" for message in messages)))
        materials = [Material(message.message_id, "message", message.content or "") for message in messages]
        asked = build_prompt("mood", "write", guide.system, "Judge the tone as JSON.", materials)
        read = await try_complete_as(self._model, asked, ReadMood, guide.model)
        if read is None:
            return by_lexicon
        evidence = tuple(each for each in read.evidence if quotes_message(each, messages))
        return ToneAnalysis(round(read.tone, 3), evidence) if evidence or abs(read.tone) < _PLAIN else by_lexicon


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
