"""Whatever is written, agents read it: markup, code, emoji, words in any order; a long message away from the loop."""

import threading
from datetime import datetime, timedelta, tzinfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.context_manager.agent import ContextManager
from agents.context_manager.knowledge import FactBase
from agents.fragment_reader import FragmentReader
from agents.models.explicit_delegation import is_delegation
from agents.models.offline.model import OfflineModel
from agents.mood_watcher import MoodHistory, MoodWatcher
from agents.task_manager.agent import TaskManager
from agents.task_manager.tasks import TaskList
from tests.fragments import a_fragment

READER = FragmentReader(OfflineModel())
WORDS = ("я", "Аня", "Борису", "отчёт", "решили", "нужно", "завтра", "в 12:00", "не", "и", "Anna", "must", "by Friday")
MARKUP = ("```", "---", "???", "…", "—", "«»", ">", "-", "1.", "#", "|", "|---|", "[ ]", "**a**", "<b>", "{}", "\\")
RARE = ("👍", "🇷🇺", "$5", "31.02", "@anna", "http://a.b", "\u200b", "\u202e", "e\u0301", "一")
LINES = st.lists(st.sampled_from((*WORDS, *MARKUP, *RARE)) | st.text(max_size=8), min_size=1, max_size=12).map(" ".join)
MESSAGES = st.lists(LINES, min_size=1, max_size=6).map("\n".join).filter(lambda text: "\0" not in text and text.strip())


class NotingClock(tzinfo):
    """The zone of a speaker; notes the threads that ask for it."""

    def __init__(self) -> None:
        self.threads: set[int] = set()

    def utcoffset(self, _at: datetime | None) -> timedelta:
        self.threads.add(threading.get_ident())
        return timedelta(0)

    def dst(self, _at: datetime | None) -> timedelta:
        return timedelta(0)

    def tzname(self, _at: datetime | None) -> str:
        return "UTC"


@given(MESSAGES)
@example("Вот код:\n```\nprint(1)\n```\nЧто тут не так?")
@example("Посмотри:\n\n---\n\nтут")
@example("\U00017000")
async def test_every_message_is_read(said: str) -> None:
    fragment = a_fragment(1, "anna", [said])
    _, mood = await MoodWatcher(READER).process(fragment, MoodHistory())
    tasks, _ = await TaskManager(READER).process(fragment, TaskList())
    facts, _ = await ContextManager(READER).process(fragment, FactBase())

    assert len(mood.items) == 1
    assert all(task.text.strip() for task in tasks.tasks)
    assert all(fact.text.strip() for fact in facts.current)


@pytest.mark.parametrize("agent", ["tasks", "facts"])
async def test_sentences_are_read_off_the_event_loop(agent: str) -> None:
    fragment, clock = a_fragment(1, "anna", ["Подготовлю смету до пятницы. Я предпочитаю чай. " * 5]), NotingClock()
    if agent == "tasks":
        await TaskManager(READER, zone=clock).process(fragment, TaskList())
    else:
        await ContextManager(READER, zone=clock).process(fragment, FactBase())

    assert clock.threads
    assert threading.get_ident() not in clock.threads


@pytest.mark.parametrize("gap", ["\n", " ", "\t", " \n"])
def test_a_long_gap_is_read_without_minutes_of_thought(gap: str) -> None:
    assert not is_delegation(f"Hello{gap * 100_000}there")
