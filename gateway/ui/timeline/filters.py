"""Filters of the timeline and the switch between live and paused."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from gateway.ui.components import SegmentedControl, box, button, clickable, field, icon_button, popup, text, update
from gateway.ui.page_session import PageSession
from gateway.ui.svg import icon
from gateway.ui.timeline.marks import TOPICS, EventMark


class TimelineFilters:
    """User, trace and topics, kept in the address."""

    def __init__(self, session: PageSession) -> None:
        self.session = session
        self.user = session.backend.names.resolve(session.query.get("user", ""))
        self.trace = session.query.get("trace")
        self.group = "trace" if session.query.get("group") == "trace" else "service"
        topics = session.query.get("topics")
        self.hidden = {topic for topic in TOPICS if topics and topic not in topics.split(",")}
        self._chips: dict[str, tuple[Element, TextElement]] = {}

    def draw(self, place: Element, on_topics: Callable[[], Any]) -> None:
        """Show them in a place; `on_topics` is called when topics are shown or hidden."""
        self._on_topics, session = on_topics, self.session
        with place:
            if self.user:
                self._chosen("user", session.backend.names.of(self.user), "user")
            if self.trace:
                self._chosen("link", self.trace, "trace")
            icon_button("plus", session.i18n("timeline.add_filter"), self._ask, "mb-framed")
            self._topics = box("mb-chips mb-scroll")
            with box("mb-not-phone"):
                groups = [(key, session.i18n(f"timeline.by_{key}")) for key in ("service", "trace")]
                SegmentedControl(groups, self.group, lambda group: self.go(group=group if group == "trace" else None))

    def shows(self, mark: EventMark) -> bool:
        return mark.event.topic not in self.hidden

    def count(self, counts: Counter[str]) -> None:
        """Show the numbers of events by topic."""
        for topic in TOPICS:
            if (counts[topic] or topic in self.hidden) and topic not in self._chips:
                self._add(topic)
        for topic, (_, number) in self._chips.items():
            number.set_text(self.session.i18n.number(counts[topic]))

    def _add(self, topic: str) -> None:
        pressed = topic not in self.hidden
        with self._topics, clickable("mb-chip", lambda: self._toggle(topic), aria_pressed=pressed) as chip:
            box("mb-dot", "i").style(f"color: var(--{topic})")
            text(topic)
            self._chips[topic] = chip, text("", "mb-num")

    def _toggle(self, topic: str) -> Any:
        self.hidden ^= {topic}
        update(self._chips[topic][0], aria_pressed=topic not in self.hidden)
        self.session.remember(topics=",".join(one for one in TOPICS if one not in self.hidden) if self.hidden else None)
        return self._on_topics()

    def _chosen(self, icon_name: str, name: str, key: str) -> None:
        label = self.session.i18n("timeline.remove_filter", name=name)
        with clickable("mb-chip mb-on", lambda: self.go(**{key: None}), aria_label=label, title=name):
            icon(icon_name, "mb-i14")
            text(name, "mb-ell mb-chip-text")
            icon("close", "mb-i14")

    def go(self, **params: str | None) -> None:
        """Reload with other filters, since storage must be asked anew."""
        self.session.remember(**params)
        ui.run_javascript("location.reload()")

    def _ask(self) -> None:
        i18n = self.session.i18n
        form = {"user": self.user or "", "trace": self.trace or ""}

        def go() -> None:
            named = form["user"].strip()
            user = self.session.backend.names.resolve(named)
            if named and user is None:
                self.session.say(i18n("chat.nobody", name=named), is_error=True)
                return
            self.go(user=user, trace=form["trace"].strip() or None)

        with popup(i18n("timeline.add_filter")):
            text(i18n("timeline.add_filter"), "", "h2")
            for key in ("user", "trace"):
                text(i18n(f"timeline.{key}"), "mb-label")
                line = field(i18n(f"timeline.{key}"), form[key], partial(form.__setitem__, key))
                line.on("keydown.enter", go)
            with box("mb-actions"):
                button(i18n("timeline.show"), go, "mb-primary")


_MAX_WAITING = 5000


class LiveToggle:
    """Live or paused; while paused, new marks are counted and kept."""

    def __init__(self, session: PageSession, on_toggle: Callable[[], Any]) -> None:
        self.session = session
        self.is_on = session.query.get("live") != "0" and "to" not in session.query
        self._waiting: list[EventMark] = []
        with clickable("mb-live", on_toggle) as self.element:
            box("mb-dot", "i")
            self._label = text("")
        self._update()

    def keep(self, fresh: Sequence[EventMark]) -> None:
        self._waiting = [*self._waiting, *fresh][-_MAX_WAITING:]
        self._update()

    def toggle(self) -> list[EventMark]:
        """The kept marks if it is live again, else none."""
        self.is_on = not self.is_on
        # Nothing is kept while it is live.
        waited, self._waiting = self._waiting, []
        self.session.remember(live=None if self.is_on else "0")
        self._update()
        return waited

    def _update(self) -> None:
        i18n = self.session.i18n
        label = i18n("live") if self.is_on else i18n("paused")
        if self._waiting:
            label = i18n("paused_with", n=i18n.number(len(self._waiting)))
        self._label.set_text(label)
        update(self.element, aria_pressed=self.is_on)
