"""The episodes screen: overview, list and detail of long-term memory."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlencode

from nicegui import ui

from bus_schema.envelope import Envelope
from bus_schema.episodes import AnchorReason, EpisodeHead, Layer
from bus_schema.identities import is_user_id
from bus_schema.lsm import MAX_PAGE, ListEpisodes, SetAnchor, UnpackEpisode
from bus_schema.lsm_statistics import ExplainEpisode, GetEpisodeStats, GetLayerHistory
from bus_schema.packer import PackEpisode
from gateway.api.episodes import PACK_TIMEOUT_S
from gateway.ui.components import SegmentedControl, box, button, search, show_if, text
from gateway.ui.dialogs import prompt_user
from gateway.ui.episodes.detail import EpisodeDetail
from gateway.ui.episodes.links import graph_of_links, linked_ids
from gateway.ui.episodes.overview import EpisodeFigures, EpisodeItem, LayerChart, episode_rows
from gateway.ui.graph import Graph
from gateway.ui.layout import skeleton
from gateway.ui.memory.screen import memory_tabs
from gateway.ui.page_session import PageSession
from gateway.ui.sections import EmptyState, LatestReading, ScreenSection

_COMMAND = "mindbus episodes import chats.jsonl"
_PAGE, _MAX_LINKED = 50, 6
_RECEIVE_EVERY_S = 2.0
_LOOK_AGAIN_EVERY_S = 5.0
_EVENT_PREFIX = "mb.evt.episode."
_BELOW = {Layer.HOT: Layer.WARM, Layer.WARM: Layer.COLD}


class EpisodesScreen:
    """A list beside the selected episode, below the overview."""

    def __init__(self, session: PageSession) -> None:
        self.session = session
        query, i18n = session.query, session.i18n
        chat = query.get("chat", "")
        self.wanted = ListEpisodes(
            chat_id=chat if is_user_id(chat) else None,
            layers=_layers(query.get("layer", "")),
            anchors_only="anchors" in query,
        )
        self._wanted_rows = _PAGE
        self._readings = LatestReading()
        self._heads: dict[str, EpisodeHead] = {}
        self._next_cursor: str | None = None
        self._chosen: str | None = query.get("episode")
        self._filter = query.get("find", "").casefold()
        self._is_known = False
        with session.controls:
            memory_tabs(session, "anchors" if self.wanted.anchors_only else "episodes", self._turn)
        with box("mb-episodes") as self._place:
            self.chart = LayerChart(i18n, box("mb-panel mb-ep-chart", "section"))
            self.figures = EpisodeFigures(i18n, box("mb-panel mb-ep-figures", "section"))
            self._list()
            with box("mb-panel mb-ep-detail", "section") as detail:
                self.detail = EpisodeDetail(i18n, box("mb-ep-body"), self._close, self._buttons)
            self._detail_part = ScreenSection(i18n, detail)

    @classmethod
    async def draw(cls, session: PageSession) -> None:
        screen = cls(session)
        session.receive(_RECEIVE_EVERY_S, screen.receive)
        session.every(_LOOK_AGAIN_EVERY_S, screen._list_part.retry_if_failed)
        session.on_keys({"Escape": screen._close})
        await screen.refresh()
        if screen._chosen is None and screen._heads and not session.client.is_phone:
            screen._chosen = next(iter(screen._heads))
        if screen._chosen is not None:
            await screen.choose(screen._chosen)

    async def refresh(self) -> None:
        await self._list_part.attempt(self._refresh)

    async def receive(self, events: list[Envelope], is_missing: bool) -> None:
        changed = {
            str((event.data or {}).get("episode_id")) for event in events if event.type.startswith(_EVENT_PREFIX)
        }
        if changed or is_missing:
            await self.refresh()
        if self._chosen is not None and (self._chosen in changed or is_missing):
            await self._detail_part.attempt(self._explain)

    async def choose(self, episode_id: str) -> None:
        self._chosen = episode_id
        self.session.remember(episode=episode_id)
        self._place.classes(add="mb-ep-open")
        self._show()
        await self._detail_part.attempt(self._explain)

    async def load_more(self) -> None:
        self._wanted_rows = len(self._heads) + _PAGE
        await self.refresh()

    def _list(self) -> None:
        i18n, session = self.session.i18n, self.session
        with box("mb-panel mb-ep-list", "section") as place:
            with box("mb-head"):
                text(i18n("memory.view.episodes"), "mb-sr", "h2")
                chat_button(session, self.wanted.chat_id)
                search(i18n("episodes.filter"), self._narrow, session.query.get("find", ""))
            with box("mb-ep-narrow"):
                options = [("", i18n("episodes.every_layer"))]
                options += [(layer.value, i18n(f"episodes.layer.{layer.value}")) for layer in Layer]
                chosen = self.wanted.layers[0].value if self.wanted.layers else ""
                SegmentedControl(options, chosen, self._of_layer)
            with box("mb-scroll mb-grow"):
                placeholder = skeleton()
                self._rows = episode_rows(i18n, session.backend.names, box(), self.choose)
                self.empty_state = EmptyState(i18n, "memory", _COMMAND)
                self._more = button(i18n("memory.more"), self.load_more, "mb-quiet mb-hidden", "down")
        self._list_part = ScreenSection(i18n, place)
        self._list_part.placeholder = placeholder

    async def _refresh(self) -> None:
        backend, chat = self.session.backend, self.wanted.chat_id
        is_latest = self._readings.begin()
        heads, next_cursor = await self._read(self.wanted, self._wanted_rows)
        if not is_latest():
            return
        self._heads, self._next_cursor, self._is_known = heads, next_cursor, True
        self._show()
        stats = await backend.query(GetEpisodeStats(chat_id=chat))
        self.figures.show(stats)
        self.session.subtitle(self.session.i18n.count("episodes.count", stats.episodes))
        history = await backend.query(GetLayerHistory(chat_id=chat))
        self.chart.show(history.points, stats)

    async def _read(self, wanted: ListEpisodes, rows: int) -> tuple[dict[str, EpisodeHead], str | None]:
        """That many rows or all that there are, and the cursor of the next one."""
        heads: dict[str, EpisodeHead] = {}
        cursor: str | None = None
        while len(heads) < rows:
            limit = min(rows - len(heads), MAX_PAGE)
            page = await self.session.backend.query(wanted.model_copy(update={"cursor": cursor, "limit": limit}))
            heads |= {head.id: head for head in page.items}
            cursor = page.next_cursor
            if cursor is None:
                break
        return heads, cursor

    async def _explain(self) -> None:
        if (chosen := self._chosen) is None:
            return
        explained = await self.session.backend.query(ExplainEpisode(episode_id=chosen))
        links = await self._links(explained.episode)
        # Another may have been chosen meanwhile.
        if self._chosen == chosen:
            self.detail.show(explained, links)

    async def _links(self, episode: EpisodeHead) -> Graph:
        """The links among the episodes of a chat: the last of them, and those that this one names."""
        query = self.session.backend.query
        page = await query(ListEpisodes(chat_id=episode.chat_id, limit=MAX_PAGE))
        known = {head.id: head for head in page.items}
        lacking = [each for each in linked_ids(episode) if each not in known][:_MAX_LINKED]
        named = await asyncio.gather(*(query(ExplainEpisode(episode_id=each)) for each in lacking))
        return graph_of_links(self.session.i18n, episode, (*known.values(), *(each.episode for each in named)))

    def _show(self) -> None:
        names_chat = self.wanted.chat_id is None and len({head.chat_id for head in self._heads.values()}) > 1
        heads = [head for head in self._heads.values() if self._fits(head)]
        self._rows.show((head.id, EpisodeItem(head, head.id == self._chosen, names_chat)) for head in heads)
        show_if(self._more, self._next_cursor)
        narrowed = self._filter or self.wanted.layers or self.wanted.anchors_only or self.wanted.chat_id
        self.empty_state.explain("episodes.none_fits" if narrowed else "episodes.empty", has_command=not narrowed)
        self.empty_state.show(is_empty=self._is_known and not heads)

    def _fits(self, head: EpisodeHead) -> bool:
        return self._filter in " ".join((head.headline, head.id, head.chat_id, *head.tags)).casefold()

    def _narrow(self, find: str) -> None:
        self._filter = find.strip().casefold()
        self.session.remember(find=find.strip() or None)
        self._show()

    def _of_layer(self, layer: str) -> Any:
        self.session.remember(layer=layer or None)
        return self._list_of(layers=_layers(layer))

    def _turn(self, tab: str) -> Any:
        self.session.remember(anchors="1" if tab == "anchors" else None)
        return self._list_of(anchors_only=tab == "anchors")

    def _list_of(self, **wanted: Any) -> Any:
        self.wanted, self._wanted_rows = self.wanted.model_copy(update=wanted), _PAGE
        return self.refresh()

    def _close(self) -> None:
        self._chosen = None
        self.session.remember(episode=None)
        self._place.classes(remove="mb-ep-open")
        self.detail.close()
        self._show()

    def _buttons(self, episode_id: str) -> Callable[[EpisodeHead], None]:
        i18n = self.session.i18n
        anchor_it = button(i18n("episodes.anchor_it"), lambda: self._anchor(episode_id, is_anchor=True), "", "anchor")
        unanchor = button(i18n("episodes.unanchor"), lambda: self._anchor(episode_id, is_anchor=False), "", "anchor")
        packs = {
            layer: button(i18n(f"episodes.pack_{layer.value}"), partial(self._pack, episode_id, layer), "", "down")
            for layer in _BELOW.values()
        }
        unpack = button(i18n("episodes.unpack"), lambda: self._unpack(episode_id), "", "replay")

        def show_fitting(episode: EpisodeHead) -> None:
            show_if(anchor_it, not episode.is_anchor)
            show_if(unanchor, episode.is_anchor)
            for layer, pack in packs.items():
                show_if(pack, layer is _BELOW.get(episode.layer) and not (layer is Layer.COLD and episode.is_anchor))
            show_if(unpack, episode.layer is not Layer.HOT)

        return show_fitting

    async def _unpack(self, episode_id: str) -> None:
        command = UnpackEpisode(episode_id=episode_id)
        await self._do(self.session.backend.query(command), self.session.i18n("episodes.unpacked"))

    async def _pack(self, episode_id: str, to: Layer) -> None:
        command = PackEpisode.model_validate({"episode_id": episode_id, "to": to})

        async def pack() -> None:
            packed = await self.session.backend.query(command, PACK_TIMEOUT_S)
            outcome = self.session.i18n(f"episodes.outcome.{packed.outcome}")
            self.session.say(outcome + (f": {packed.reason}" if packed.reason else ""))

        await self._do(pack())

    async def _anchor(self, episode_id: str, *, is_anchor: bool) -> None:
        command = SetAnchor(episode_id=episode_id, is_anchor=is_anchor, reason=AnchorReason.EXPLICIT)
        await self._do(self.session.backend.query(command))

    async def _do(self, work: Any, done: str = "") -> None:
        """Run a command, then refresh without waiting for its event; a refused one was meant for a past state."""
        await self.session.attempt(work, done)
        await self._detail_part.attempt(self._explain)
        await self.refresh()


def _layers(name: str) -> tuple[Layer, ...]:
    return (Layer(name),) if name in list(Layer) else ()


def chat_button(session: PageSession, chat_id: str | None) -> None:
    """The chat whose episodes are shown; a click changes it."""

    def switch(chat: str) -> None:
        ui.navigate.to("/episodes" + (f"?{urlencode({'chat': chat})}" if chat else ""))

    label = session.i18n("episodes.of_all") if chat_id is None else session.backend.names.of(chat_id)
    button(label, lambda: prompt_user(session, "episodes.chat", chat_id or "", switch), "", "user")
