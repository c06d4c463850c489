"""The memory screen: search in shared memory and its changes."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from nicegui import ui

from bus_schema.glm import FoundKem
from bus_schema.kem_query import KemQuery
from gateway.api.memory import facets_of
from gateway.event_feed import MissedEvents
from gateway.shared_memory import KemChange, KemNotFound
from gateway.ui.components import SegmentedControl, box, button, clickable, show_if, text
from gateway.ui.dialogs import prompt_user
from gateway.ui.layout import skeleton
from gateway.ui.memory.detail import KemDetail
from gateway.ui.memory.results import (
    ChangeList,
    KemItem,
    ResultSummary,
    SearchResults,
    apply_change,
    is_strong,
    result_rows,
)
from gateway.ui.memory.search_form import FacetPanel, MemorySearch, SearchForm
from gateway.ui.page_session import PageSession
from gateway.ui.sections import EmptyState, LatestReading, ScreenSection

_COMMAND = 'mindbus memory add --text "The release was moved to Friday." --meta project_id=apollo'
_PAGE = 50
_RECEIVE_EVERY_S = 0.25
_LOOK_AGAIN_EVERY_S = 5.0


# Screen and query of each view.
_VIEWS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "search": ("memory", {}),
    "episodes": ("episodes", {}),
    "anchors": ("episodes", {"anchors": "1"}),
    "changes": ("memory", {"view": "changes"}),
}


class MemoryScreen:
    """Search results beside live changes."""

    def __init__(self, session: PageSession) -> None:
        self.session = session
        question = MemorySearch.of_address(session.query)
        self.memory = session.backend.memory(question.user)
        self.found = SearchResults()
        self._shows_weak = False
        self._chosen: KemItem | None = None
        self._choices, self._searches = LatestReading(), LatestReading()
        self._controls(question)
        with box("mb-memory"):
            self._facets = box("mb-facets mb-scroll", "aside")
            self.facets = FacetPanel(session.i18n, self._facets, self.ask)
            with box("mb-memory-main") as self._search:
                self.bar = SearchForm(session.i18n, self._search, question, self.ask)
                self.line = ResultSummary(session.i18n, self.refresh)
                self._answer()
            self._changes = box("mb-memory-main mb-scroll")
            self.change_list = ChangeList(session.i18n, self._changes, self.choose)
            drawer = box("mb-drawer mb-sheet mb-hidden", "aside")
            self.detail = KemDetail(session, drawer, lambda: self.choose(None), self._pick)
        self._turn(self._view)

    def _answer(self) -> None:
        """Results, the line of the weaker ones, what there is without any."""
        place = box("mb-scroll mb-grow mb-memory-place")
        self.part = ScreenSection(self.session.i18n, place)
        self.results = result_rows(self.session.i18n, place, self.choose)
        with place:
            self.part.placeholder = skeleton()
            self.empty_state = EmptyState(self.session.i18n, "memory", _COMMAND)
            with clickable("mb-weak mb-hidden", self._show_weak) as self._weak:
                self._weak_count = text("", "mb-t3")
                text(self.session.i18n("memory.show_weaker"), "mb-link")
            self._more = button(self.session.i18n("memory.more"), self.load_more, "mb-quiet mb-hidden", "down")

    @classmethod
    async def draw(cls, session: PageSession) -> None:
        screen = cls(session)
        listener = session.enter(screen.memory.changes.listen())
        session.every(_RECEIVE_EVERY_S, lambda: screen.receive(listener.take()))
        session.every(_LOOK_AGAIN_EVERY_S, screen.part.retry_if_failed)
        session.on_keys({"Escape": lambda: screen.choose(None)})
        await screen.refresh()
        if kem_id := session.query.get("kem"):
            await screen.choose(kem_id)

    async def ask(self, question: MemorySearch) -> None:
        self.bar.question = question
        self.session.remember(**question.in_address())
        await self.refresh()

    async def refresh(self) -> None:
        query = self.bar.query()
        if query is None:
            self.part.settle()
        else:
            await self.part.attempt(lambda: self._refresh(query))

    def _show_weak(self) -> None:
        self._shows_weak = True
        self._show()

    async def load_more(self) -> None:
        await self.session.attempt(self._load_more())

    async def choose(self, kem_id: str | None) -> None:
        self.session.remember(kem=kem_id)
        self._chosen, is_latest = None, self._choices.begin()
        if kem_id is None:
            self.detail.close()
        elif (item := self.found.hits.get(kem_id)) is not None:
            self._chosen = item
            self.detail.show(item)
        else:
            await self.session.attempt(self._fetch(kem_id, is_latest))
        self._show()

    async def receive(self, items: list[KemChange | MissedEvents]) -> None:
        changes = [item for item in items if not isinstance(item, MissedEvents)]
        if len(changes) < len(items):
            self.session.say(self.session.i18n("memory.missed"))
        if not changes:
            return
        self.change_list.add(changes)
        self.found.receive(changes)
        if not self.found.hits and self.bar.question.is_open:
            await self.refresh()
        chosen = self._chosen
        for change in changes:
            if chosen is not None and change.kem_id == chosen.kem.id:
                chosen = apply_change(chosen, change)
        if chosen is not None and chosen != self._chosen:
            self._chosen = chosen
            self.detail.show(chosen)
        self._show()

    async def _refresh(self, query: KemQuery) -> None:
        began, is_latest = time.monotonic(), self._searches.begin()
        page = await self.memory.search(query, limit=_PAGE, explain=query.is_ranked)
        if not is_latest():
            return
        self._shows_weak = False
        self.line.took(time.monotonic() - began)
        self.found.begin(query, page)
        is_open = self.bar.question.is_open
        self.empty_state.explain("memory.empty" if is_open else "memory.no_answer", has_command=is_open)
        self.session.subtitle(self.session.i18n.count("memory.units", (await self.memory.stats()).kems))
        self._show_answer()

    async def _load_more(self) -> None:
        found, place = self.found, (self.found.query, self.found.next_cursor)
        page = await self.memory.search(found.query, found.next_cursor, _PAGE, explain=found.query.is_ranked)
        # Another answer, or this page, may have come meanwhile.
        if place == (found.query, found.next_cursor):
            found.add(page)
            self._show_answer()

    async def _fetch(self, kem_id: str, is_latest: Callable[[], bool]) -> None:
        try:
            kem = await self.memory.kem(kem_id)
        except KemNotFound:
            kem = None
        if not is_latest():
            return
        if kem is None:
            self.detail.show_empty()
            return
        self._chosen = KemItem(FoundKem(kem=kem))
        self.detail.show(self._chosen)

    def _show_answer(self) -> None:
        self.facets.show(facets_of(self.found.items(), is_all=self.found.next_cursor is None), self.bar.question)
        self._show()

    def _show(self) -> None:
        results = self.found
        hits = results.visible_items(self.bar.question, self._chosen.kem.id if self._chosen else None)
        strong = [hit for hit in hits if is_strong(hit)]
        weak = [] if self._shows_weak else hits[len(strong) :] if strong == hits[: len(strong)] else []
        shown = hits[: len(hits) - len(weak)]
        self.results.show((hit.kem.id, hit) for hit in shown)
        show_if(self._weak, weak)
        self._weak_count.set_text(self.session.i18n.count("memory.weaker", len(weak)))
        self.line.show(results, shown, is_all=bool(weak) or not results.next_cursor)
        show_if(self._more, results.next_cursor and not weak)
        self.empty_state.show(is_empty=not hits)

    def _controls(self, question: MemorySearch) -> None:
        with self.session.controls:
            memory_tabs(self.session, self._view, self._turn)
            user_button(self.session, question.user)

    @property
    def _view(self) -> str:
        return "changes" if self.session.query.get("view") == "changes" else "search"

    def _turn(self, view: str) -> None:
        for place, shown_in in ((self._facets, "search"), (self._search, "search"), (self._changes, "changes")):
            show_if(place, view == shown_in)
        self.session.remember(view=view if view != "search" else None)

    def _pick(self, key: str, value: str) -> Any:
        return self.ask(self.bar.question.toggled(key, value))


def memory_tabs(session: PageSession, chosen: str, switch: Callable[[str], Any]) -> None:
    """Tabs: `switch` shows a view of this screen, the others open another screen for the same user."""
    user = session.query.get("user") or session.query.get("chat")

    def go(view: str) -> Any:
        screen, query = _VIEWS[view]
        if screen == session.name:
            return switch(view)
        of_user = {"chat" if screen == "episodes" else "user": user} if user else {}
        return ui.navigate.to(f"/{screen}?{urlencode({**query, **of_user})}".removesuffix("?"))

    SegmentedControl([(view, session.i18n(f"memory.view.{view}")) for view in _VIEWS], chosen, go)


def user_button(session: PageSession, user_id: str | None) -> None:
    """The user whose access rights apply; a click changes it."""

    def switch(user: str) -> None:
        session.remember(user=user or None, kem=None)
        ui.run_javascript("location.reload()")

    label = session.i18n(
        "memory.as", user=session.backend.names.of(user_id) if user_id else session.backend.account.identity
    )
    button(label, lambda: prompt_user(session, "memory.as_user", user_id or "", switch), "mb-not-phone", "user")
