"""What the agents know of a user, beside the talk with them."""

from datetime import UTC, datetime

from nicegui import ui
from nicegui.element import Element

from bus_schema.processing import Fact, Task
from gateway.ui.chat.knowledge import Knowledge
from gateway.ui.icons import icon
from gateway.ui.parts import box, text
from gateway.ui.sparkline import area
from gateway.ui.words import Words

_MOST = 8
_SHARP = 0.25


class Aside:
    """Drawn anew when an agent has told something; there is little of it."""

    def __init__(self, words: Words, place: Element) -> None:
        self.words = words
        with place:
            with box("mb-head"):
                text(words("aside.title"), "", "h2")
            self._body = box("mb-scroll mb-grow")

    def show(self, knowledge: Knowledge) -> None:
        """What is known now."""
        self._body.clear()
        with self._body:
            if knowledge.moods:
                self._mood(knowledge)
            self._tasks(knowledge.open_tasks)
            self._facts(knowledge)
            if knowledge.deferred:
                self._deferred(knowledge)
            if not (knowledge.moods or knowledge.tasks or knowledge.facts):
                text(self.words("aside.nothing"), "mb-meta mb-aside-note", "p")

    def _mood(self, knowledge: Knowledge) -> None:
        words, last = self.words, knowledge.moods[-1]
        is_low = last.tone < last.usual - _SHARP
        with box("mb-aside-part", "section"):
            with self._title("mood", words("aside.mood")):
                box("mb-grow")
                arrow = "↓" if last.tone < last.usual else "↑" if last.tone > last.usual else ""
                text(f"{words.number(last.tone, 2)} {arrow}", f"mb-num mb-medium {'mb-warn' if is_low else ''}")
            curve = area([mood.tone for mood in knowledge.moods[-30:]], 236, 40, low=-1, high=1)
            ui.html(curve, sanitize=False).classes(f"mb-mood {'mb-warn' if is_low else 'mb-acc'}")
            if last.evidence:
                text(f"«{last.evidence[0]}»", "mb-meta", "p")

    def _tasks(self, tasks: list[Task]) -> None:
        if not tasks:
            return
        words, now = self.words, datetime.now(UTC)
        with box("mb-aside-part", "section"):
            with self._title("task", words("aside.tasks")):
                text(words.count("aside.open", len(tasks)), "mb-meta")
            for task in tasks[:_MOST]:
                with box("mb-aside-row"):
                    text(task.text, "mb-clamp")
                    due = words("aside.due", when=words.when(task.due, now)) if task.due else task.due_said
                    text(" · ".join(part for part in (due, task.owner or "") if part), "mb-cap mb-t3")

    def _facts(self, knowledge: Knowledge) -> None:
        facts = knowledge.valid_facts
        if not facts:
            return
        with box("mb-aside-part", "section"):
            with self._title("memory", self.words("aside.facts")):
                text(str(len(facts)), "mb-meta mb-num")
            for fact in facts[:_MOST]:
                self._fact(fact, knowledge.replaced_by(fact))

    def _fact(self, fact: Fact, before: Fact | None) -> None:
        words = self.words
        with box("mb-aside-row"):
            if before is not None:
                text(before.text, "mb-struck mb-clamp", "del")
            text(fact.text, "mb-clamp" + (" mb-changed" if before else ""))
            said = (words(f"fact.{fact.kind.value}"), fact.project or "", words.when(fact.said_at, datetime.now(UTC)))
            text(" · ".join(part for part in said if part), "mb-cap mb-t3")

    def _deferred(self, knowledge: Knowledge) -> None:
        words, now = self.words, datetime.now(UTC)
        with box("mb-aside-part", "section"):
            with self._title("clock", words("aside.deferred")):
                text(str(len(knowledge.deferred)), "mb-meta mb-num")
            for waiting in list(knowledge.deferred.values())[:_MOST]:
                wish = knowledge.wishes.get(waiting.notification_id)
                with box("mb-aside-row"):
                    text(wish.message if wish else waiting.notification_id, "mb-clamp")
                    text(
                        f"{words('aside.until', when=words.when(waiting.until, now))} · {waiting.reason}",
                        "mb-cap mb-t3",
                    )

    def _title(self, picture: str, said: str) -> Element:
        made = box("mb-line-x mb-aside-title")
        with made:
            icon(picture, "mb-i14")
            text(said, "mb-medium")
        return made
