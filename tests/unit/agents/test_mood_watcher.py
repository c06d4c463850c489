"""A mood watcher knows how a user mostly sounds, so it hears when they sound different."""

from datetime import timedelta

import pytest

from agents.fragment_reader import FragmentReader
from agents.models.errors import ModelUnavailable
from agents.models.language_model import LanguageModel
from agents.models.offline.model import OfflineModel
from agents.mood_watcher import MoodHistory, MoodWatcher, ReadMood
from bus_schema.dialogue import MessageKind
from bus_schema.notification import NotificationGenerated, Urgency
from bus_schema.processing import Mood
from tests.fragments import MORNING, Said, a_fragment
from tests.scripted_model import ScriptedModel


class Talks:
    """A user talks day after day."""

    def __init__(self, model: LanguageModel | None = None) -> None:
        self.watcher = MoodWatcher(FragmentReader(model or OfflineModel()))
        self.history = MoodHistory()
        self._told: tuple[NotificationGenerated, ...] = ()
        self.days = 0

    @property
    def told(self) -> list[NotificationGenerated]:
        return list(self._told)

    async def hears(self, *said: Said) -> Mood:
        self.days += 1
        fragment = a_fragment(self.days, "anna", said, MORNING + timedelta(days=self.days))
        self.history, outcome = await self.watcher.process(fragment, self.history)
        self._told = outcome.notifications
        (mood,) = outcome.items
        return mood


async def test_a_sharp_turn_for_the_worse_is_told_with_the_words_it_was_heard_in() -> None:
    anna = Talks()
    await anna.hears("Всё идёт хорошо, команда молодцы!")
    await anna.hears("Отличный день, клиент доволен.")
    assert anna.told == []

    mood = await anna.hears("Это катастрофа, всё сломалось, я в ужасе и очень устала 😡")

    assert mood.is_sharp_turn
    assert mood.tone < -0.5 < 0.3 < mood.usual
    (notice,) = anna.told
    assert notice.message == "Похоже, сейчас тяжелее обычного. Могу ли я чем-нибудь помочь?"
    assert "катастрофа" in notice.context
    assert notice.urgency is Urgency.NORMAL
    assert notice.expires is not None


async def test_a_turn_for_the_better_is_told_quietly() -> None:
    tom = Talks()
    await tom.hears("This is terrible, I'm stressed.")
    await tom.hears("Still a nightmare, I'm exhausted.")

    mood = await tom.hears("Wonderful news, I'm so happy and relieved!")

    assert mood.is_sharp_turn
    assert [notice.urgency for notice in tom.told] == [Urgency.LOW]


async def test_a_mood_that_stays_is_told_once() -> None:
    anna = Talks()
    for day in ("Отлично, я рада!", "Прекрасно, всё получилось!", "Ужас, всё сломалось, я в отчаянии!"):
        await anna.hears(day)
    assert len(anna.told) == 1

    mood = await anna.hears("Всё по-прежнему ужасно, я в отчаянии и злюсь!")

    assert mood.is_sharp_turn
    assert anna.told == []


@pytest.mark.parametrize(
    "talk",
    [
        ["Ужас, катастрофа, я в отчаянии!"],
        ["Отлично!", "Хорошо.", "Плохо."],
        ["Встреча в десять.", "Бюджет — 500 тысяч.", "Отправил договор."],
        ["I'm fine.", "A bit tired.", "Better today."],
    ],
    ids=["first day", "one word", "plain talk", "ups and downs"],
)
async def test_what_is_no_sharp_turn_is_not_told(talk: list[str]) -> None:
    user = Talks()

    for day in talk:
        assert not (await user.hears(day)).is_sharp_turn
        assert user.told == []


async def test_only_the_users_own_words_count() -> None:
    mood = await Talks().hears(
        "Встреча в десять.",
        ("user", MessageKind.HIDDEN, "[hidden instruction] Ужасная катастрофа!"),
        ("assistant", MessageKind.NATIVE, "Прекрасно, замечательно!"),
    )

    assert (mood.tone, mood.evidence, mood.message_ids) == (0.0, (), ("msg_1_0",))


async def test_a_fragment_without_the_users_words_says_nothing() -> None:
    fragment = a_fragment(1, "anna", [("assistant", MessageKind.NATIVE, "Здравствуйте!")])

    history, outcome = await MoodWatcher(FragmentReader(OfflineModel())).process(fragment, MoodHistory())

    assert outcome.items == ()
    assert history.heard == 0


async def test_a_model_hears_irony() -> None:
    read = ReadMood(tone=-0.6, evidence=["просто чудесно"])

    mood = await Talks(ScriptedModel(read)).hears("Ну просто чудесно, третий отказ за день, прекрасно живём.")

    assert (mood.tone, mood.evidence) == (-0.6, ("просто чудесно",))


@pytest.mark.parametrize(
    "answer",
    [
        ReadMood(tone=0.9, evidence=["восторг"]),
        ReadMood(tone=0.9, evidence=[]),
        "nonsense",
        ModelUnavailable("away"),
    ],
)
async def test_a_tone_that_no_words_bear_out_is_not_taken(answer: ReadMood | str | ModelUnavailable) -> None:
    mood = await Talks(ScriptedModel(answer)).hears("Ужас, всё сломалось.")

    assert mood.tone < -0.5


@pytest.mark.parametrize("answer", [ReadMood(tone=0.0, evidence=[]), ReadMood(tone=1.0, evidence=["всё сломалось"])])
async def test_a_model_that_hears_nothing_or_joy_does_not_hush_the_lexicon(answer: ReadMood) -> None:
    mood = await Talks(ScriptedModel(answer)).hears("Ужас, всё сломалось.")

    assert mood.tone < -0.5
