"""Whatever is written, agents read it: markup, code, emoji, words in any order."""

from hypothesis import example, given
from hypothesis import strategies as st

from agents.context_manager.agent import ContextManager
from agents.context_manager.knowledge import FactBase
from agents.fragment_reader import FragmentReader
from agents.models.offline.model import OfflineModel
from agents.mood_watcher import MoodHistory, MoodWatcher
from agents.task_manager.agent import TaskManager
from agents.task_manager.tasks import TaskList
from tests.fragments import a_fragment

READER = FragmentReader(OfflineModel())
WORDS = ("я", "Аня", "Борису", "отчёт", "решили", "нужно", "завтра", "в 12:00", "не", "и", "Anna", "must", "by Friday")
MARKUP = (
    "```",
    "---",
    "???",
    "!!!",
    "…",
    "—",
    "«»",
    ">",
    "-",
    "1.",
    "#",
    "|",
    "|---|",
    "[ ]",
    "**a**",
    "<b>",
    "{}",
    "\\",
)
RARE = ("👍", "🇷🇺", "$5", "31.02", "@anna", "http://a.b", "\u200b", "\u202e", "e\u0301", "一")
LINES = st.lists(st.sampled_from((*WORDS, *MARKUP, *RARE)) | st.text(max_size=8), min_size=1, max_size=12).map(" ".join)
MESSAGES = st.lists(LINES, min_size=1, max_size=6).map("\n".join).filter(lambda text: "\0" not in text and text.strip())


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
