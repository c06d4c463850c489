"""Memory: what agents know together, found, explained, as it changes."""

import time
from typing import Any

from nicegui import ui

from bus_schema.glm import FoundKem
from bus_schema.identities import is_user_id
from bus_schema.kem_query import KemQuery
from gateway.backend import LOCAL_USER
from gateway.desks.memory import facets_of
from gateway.feed import Missed
from gateway.memory_changes import KemChange
from gateway.ui.frame import Frame
from gateway.ui.memory.detail import Detail
from gateway.ui.memory.facet_lists import FacetLists
from gateway.ui.memory.found import Found, changed_hit
from gateway.ui.memory.happenings import Happenings
from gateway.ui.memory.nothing import Nothing
from gateway.ui.memory.question import Question
from gateway.ui.memory.question_bar import QuestionBar
from gateway.ui.memory.results import Hit, Results
from gateway.ui.parts import Segments, attributes, box, button, field, popup, show_if, text
from gateway.ui.trouble import Part
from memory.refusals import NoSuchKem

_PAGE = 50
_HEAR_EVERY_S = 0.25
_VIEWS = ("search", "changes")


class MemoryScreen:
    """Search beside live changes; a change marks what is shown, it never moves it."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        question = Question.of_address(frame.query)
        self.memory = frame.backend.memory_of(question.user)
        self.found = Found()
        self._chosen: Hit | None = None
        self._heard: list[KemChange | Missed] = []
        self._controls(question)
        with box("mb-memory"):
            self.facets = FacetLists(frame.words, box("mb-facets mb-scroll", "aside"), self.ask)
            with box("mb-memory-main") as self._search:
                self.bar = QuestionBar(frame.words, self._search, question, self.ask)
                self._line()
                place = box("mb-scroll mb-grow mb-memory-place")
                self.part = Part(frame.words, place)
                self.results = Results(frame.words, place, self.choose)
                with place:
                    self.nothing = Nothing(frame.words)
                    self._more = button(frame.words("memory.more"), self.read_on, "mb-quiet mb-hidden", "down")
            self._changes = box("mb-memory-main mb-scroll")
            self.happenings = Happenings(frame.words, self._changes, self.choose)
            drawer = box("mb-drawer mb-sheet mb-hidden", "aside")
            self.detail = Detail(frame.words, drawer, lambda: self.choose(None), self._pick)
        self._turn("changes" if frame.query.get("view") == "changes" else "search")

    @classmethod
    async def draw(cls, frame: Frame) -> None:
        """Show it, then keep it up to date."""
        screen = cls(frame)
        following = screen.memory.changes.told_to(screen._heard.append)
        following.__enter__()
        ui.context.client.on_delete(lambda: following.__exit__(None, None, None))
        frame.every(_HEAR_EVERY_S, screen.hear)
        frame.on_key("Escape", lambda _row: screen.choose(None))
        await screen.look()
        if wanted := frame.query.get("kem"):
            await screen.choose(wanted)

    async def ask(self, question: Question) -> None:
        """Another question, or the same again."""
        self.bar.question = question
        self.frame.remember(**question.in_address())
        await self.look()

    async def look(self) -> None:
        """Ask memory what is written."""
        query = self.bar.query()
        if query is not None:
            await self.part.attempt(lambda: self._look(query))

    async def read_on(self) -> None:
        """The next page."""
        query = self.bar.query()
        if query is not None:
            await self.frame.attempt(self._read_on(query))

    async def choose(self, kem_id: str | None) -> None:
        """Show all of a unit."""
        self.frame.remember(kem=kem_id)
        self._chosen = None
        if kem_id is None:
            self.detail.close()
        elif (known := self.found.hits.get(kem_id)) is not None:
            self._chosen = known
            self.detail.show(known)
        else:
            await self.frame.attempt(self._fetch(kem_id))
        self._show()

    async def hear(self) -> None:
        """What has happened since."""
        heard, changes = list(self._heard), [item for item in self._heard if not isinstance(item, Missed)]
        self._heard.clear()
        if len(changes) < len(heard):
            self.frame.say(self.frame.words("memory.missed"))
        if not heard:
            return
        self.happenings.add(changes)
        self.found.hear(changes)
        if not self.found.hits and self.bar.question.is_open:
            await self.look()
        self._follow_chosen(changes)
        self._show()

    def _follow_chosen(self, changes: list[KemChange]) -> None:
        if self._chosen is None:
            return
        before, kem_id = self._chosen, self._chosen.kem.id
        for change in changes:
            if change.kem_id == kem_id:
                self._chosen = changed_hit(self._chosen, change)
        if self._chosen != before:
            self.detail.show(self._chosen)

    async def _look(self, query: KemQuery) -> None:
        began = time.monotonic()
        page = await self.memory.search(query, limit=_PAGE, explain=query.is_ranked)
        took_s = time.monotonic() - began
        self.found.begin(page)
        words = self.frame.words
        self._took.set_text(words("memory.took", time=words.seconds(took_s)))
        self.nothing.explain(is_memory_empty=self.bar.question.is_open)
        total = (await self.memory.stats()).kems
        self.frame.subtitle(words.count("memory.units", total))
        self._answered()

    async def _read_on(self, query: KemQuery) -> None:
        self.found.add(await self.memory.search(query, self.found.next_cursor, _PAGE, explain=query.is_ranked))
        self._answered()

    async def _fetch(self, kem_id: str) -> None:
        try:
            self._chosen = Hit(FoundKem(kem=await self.memory.kem(kem_id)))
        except NoSuchKem:
            self.detail.show_nothing()
            return
        self.detail.show(self._chosen)

    def _answered(self) -> None:
        self.facets.show(facets_of(self.found.items(), is_all=self.found.next_cursor is None), self.bar.question)
        self._show()

    def _show(self) -> None:
        words, found = self.frame.words, self.found
        hits = found.shown(self.bar.question, self._chosen.kem.id if self._chosen else None)
        self.results.show(hits)
        first = "memory.first" if found.next_cursor else "memory.found"
        self._count.set_text(words.count(first, len(hits)))
        show_if(self._degraded, found.is_degraded)
        show_if(self._legend, any(hit.found.explain for hit in hits))
        show_if(self._fresh, found.fresh)
        self._fresh_said.set_text(words.count("memory.fresh", len(found.fresh)))
        show_if(self._more, found.next_cursor)
        self.nothing.show(is_empty=not hits)

    def _line(self) -> None:
        words = self.frame.words
        with box("mb-found-line"):
            self._count = text("", "mb-medium")
            attributes(self._count, aria_live="polite")
            self._took = text("", "mb-meta mb-num mb-grow")
            self._degraded = text(words("memory.degraded"), "mb-meta mb-warn mb-hidden")
            with box("mb-line-x mb-not-phone") as self._legend:
                for key, colour in (("memory.lexical", "processed"), ("memory.dense", "process")):
                    with box("mb-line-x mb-cap"):
                        box("mb-legend-box", "i").style(f"--c: var(--{colour})")
                        text(words(key), "mb-t2")
            with attributes(box("mb-btn mb-small mb-hidden", "button"), type="button") as self._fresh:
                self._fresh_said = text("")
            self._fresh.on("click", self.look)

    def _controls(self, question: Question) -> None:
        words = self.frame.words
        with self.frame.controls:
            view = "changes" if self.frame.query.get("view") == "changes" else "search"
            Segments([(key, words(f"memory.view.{key}")) for key in _VIEWS], view, self._turn)
            user = f"user.{question.user}" if question.user else LOCAL_USER
            button(words("memory.as", user=user), self._ask_whom, "mb-not-phone", "user")

    def _turn(self, view: str) -> None:
        show_if(self._search, view == "search")
        show_if(self._changes, view == "changes")
        self.frame.remember(view=view if view != "search" else None)

    def _pick(self, key: str, value: str) -> Any:
        return self.ask(self.bar.question.toggled(key, value))

    def _ask_whom(self) -> None:
        words, wanted = self.frame.words, {"user": self.bar.question.user or ""}

        def go() -> None:
            user = wanted["user"].strip()
            self.frame.remember(user=user if is_user_id(user) else None, kem=None)
            ui.run_javascript("location.reload()")

        with popup(words("memory.as_whom")):
            text(words("memory.as_whom"), "", "h2")
            text(words("memory.as_hint"), "", "p")
            line = field(words("chat.user"), wanted["user"], lambda user: wanted.update(user=user))
            line.on("keydown.enter", go)
            with box("mb-actions"):
                button(words("timeline.show"), go, "mb-primary")
