"""Episodes: what was said long ago, how densely it is kept, what of it was kept."""

from typing import Any

from bus_schema.envelope import Envelope
from bus_schema.episodes import EpisodeHead, Layer
from bus_schema.identities import is_user_id
from bus_schema.lsm import ListEpisodes
from bus_schema.lsm_statistics import ExplainEpisode, GetLayerHistory
from bus_schema.packer import PackEpisode
from gateway.ui.components import SegmentedControl, box, button, search, show_if, text
from gateway.ui.empty_state import EmptyState
from gateway.ui.episodes.detail import EpisodeActions, EpisodeDetail
from gateway.ui.episodes.episode_list import EpisodeItem, EpisodeList
from gateway.ui.episodes.overview import EpisodeFigures, LayerChart
from gateway.ui.episodes.whose import chat_button
from gateway.ui.errors import ScreenSection
from gateway.ui.layout import skeleton
from gateway.ui.memory.tabs import memory_tabs
from gateway.ui.page_session import PageSession

_COMMAND = "mindbus episodes import chats.jsonl"
_PAGE = 100
_HEAR_EVERY_S = 2.0
_LOOK_AGAIN_EVERY_S = 5.0
_TOLD = "mb.evt.episode."


class EpisodesScreen:
    """A list beside the one that is chosen, under how all of them do."""

    def __init__(self, frame: PageSession) -> None:
        self.frame = frame
        query, words = frame.query, frame.words
        chat = query.get("chat", "")
        self.wanted = ListEpisodes(
            chat_id=chat if is_user_id(chat) else None,
            layers=_layers(query.get("layer", "")),
            anchors_only="anchors" in query,
            limit=_PAGE,
        )
        self._heads: dict[str, EpisodeHead] = {}
        self._next_cursor: str | None = None
        self._chosen: str | None = query.get("episode")
        self._filter = query.get("find", "").casefold()
        self._is_away, self._is_known = False, False
        with frame.controls:
            memory_tabs(frame, "anchors" if self.wanted.anchors_only else "episodes", self._turn)
        with box("mb-episodes") as self._place:
            self.chart = LayerChart(words, box("mb-panel mb-ep-chart", "section"))
            self.figures = EpisodeFigures(words, box("mb-panel mb-ep-figures", "section"))
            self._list()
            detail = box("mb-panel mb-ep-detail", "section")
            self.detail = EpisodeDetail(
                words, detail, EpisodeActions(self._close, self._unpack, self._pack, self._anchor)
            )
            self._detail_part = ScreenSection(words, detail)

    @classmethod
    async def draw(cls, frame: PageSession) -> None:
        """Show it, then keep it up to date."""
        screen = cls(frame)
        frame.hear(_HEAR_EVERY_S, screen.hear)
        frame.every(_LOOK_AGAIN_EVERY_S, screen.look_again)
        frame.on_key("Escape", lambda _row: screen._close())
        await screen.look()
        if screen._chosen is None and screen._heads and not frame.viewer.is_phone:
            screen._chosen = next(iter(screen._heads))
        if screen._chosen is not None:
            await screen.choose(screen._chosen)

    async def look(self) -> None:
        """Ask for the list, the numbers, the curve."""
        self._is_away = not await self._list_part.attempt(self._look)
        if not self._skeleton.is_deleted:
            self._skeleton.delete()

    async def look_again(self) -> None:
        """Memory may be back."""
        if self._is_away:
            await self.look()

    async def hear(self, events: list[Envelope], is_missing: bool) -> None:
        """Something has become of an episode."""
        told = {str((event.data or {}).get("episode_id")) for event in events if event.type.startswith(_TOLD)}
        if told or is_missing:
            await self.look()
        if self._chosen is not None and (self._chosen in told or is_missing):
            await self._detail_part.attempt(self._explain)

    async def choose(self, episode_id: str) -> None:
        """Show all of an episode."""
        self._chosen = episode_id
        self.frame.remember(episode=episode_id)
        self._place.classes(add="mb-ep-open")
        self._show()
        await self._detail_part.attempt(self._explain)

    async def read_on(self) -> None:
        """The next page."""
        await self.frame.attempt(self._read_on())

    def _list(self) -> None:
        words, frame = self.frame.words, self.frame
        with box("mb-panel mb-ep-list", "section") as place:
            with box("mb-head"):
                text(words("memory.view.episodes"), "mb-sr", "h2")
                chat_button(frame, self.wanted.chat_id)
                search(words("episodes.filter"), self._narrow, frame.query.get("find", ""))
            with box("mb-ep-narrow"):
                options = [("", words("episodes.every_layer"))]
                options += [(layer.value, words(f"episodes.layer.{layer.value}")) for layer in Layer]
                chosen = self.wanted.layers[0].value if self.wanted.layers else ""
                SegmentedControl(options, chosen, self._of_layer)
            with box("mb-scroll mb-grow"):
                self._skeleton = skeleton()
                self.listing = EpisodeList(words, box(""), self.choose)
                self.nothing = EmptyState(words, "episodes", _COMMAND)
                self._more = button(words("memory.more"), self.read_on, "mb-quiet mb-hidden", "down")
        self._list_part = ScreenSection(words, place)

    async def _look(self) -> None:
        backend, chat = self.frame.backend, self.wanted.chat_id
        page = await backend.episodes(self.wanted)
        self._heads = {head.id: head for head in page.items}
        self._next_cursor = page.next_cursor
        self._is_known = True
        self._show()
        stats = await backend.episode_stats(chat)
        self.figures.show(stats)
        self.frame.subtitle(self.frame.words.count("episodes.count", stats.episodes))
        history = await backend.layer_history(GetLayerHistory(chat_id=chat))
        self.chart.show(history.points, stats)

    async def _read_on(self) -> None:
        page = await self.frame.backend.episodes(self.wanted.model_copy(update={"cursor": self._next_cursor}))
        self._heads |= {head.id: head for head in page.items}
        self._next_cursor = page.next_cursor
        self._show()

    async def _explain(self) -> None:
        if self._chosen is not None:
            self.detail.show(await self.frame.backend.episode(ExplainEpisode(episode_id=self._chosen)))

    def _show(self) -> None:
        names_chat = self.wanted.chat_id is None and len({head.chat_id for head in self._heads.values()}) > 1
        listed = [
            EpisodeItem(head, head.id == self._chosen, names_chat) for head in self._heads.values() if self._fits(head)
        ]
        self.listing.show(listed)
        show_if(self._more, self._next_cursor)
        narrowed = self._filter or self.wanted.layers or self.wanted.anchors_only or self.wanted.chat_id
        self.nothing.explain("none_fits" if narrowed else "empty")
        self.nothing.show(is_empty=self._is_known and not listed)

    def _fits(self, head: EpisodeHead) -> bool:
        return self._filter in " ".join((head.headline, head.id, head.chat_id, *head.tags)).casefold()

    def _narrow(self, find: str) -> None:
        self._filter = find.strip().casefold()
        self.frame.remember(find=find.strip() or None)
        self._show()

    def _of_layer(self, layer: str) -> Any:
        self.frame.remember(layer=layer or None)
        self.wanted = self.wanted.model_copy(update={"layers": _layers(layer)})
        return self.look()

    def _turn(self, tab: str) -> Any:
        self.frame.remember(anchors="1" if tab == "anchors" else None)
        self.wanted = self.wanted.model_copy(update={"anchors_only": tab == "anchors"})
        return self.look()

    def _close(self) -> None:
        self._chosen = None
        self.frame.remember(episode=None)
        self._place.classes(remove="mb-ep-open")
        self.detail.close()
        self._show()

    async def _unpack(self, episode_id: str) -> None:
        done = self.frame.words("episodes.unpacked")
        await self._do(self.frame.backend.unpack_episode(episode_id), done)

    async def _pack(self, episode_id: str, to: Layer) -> None:
        wanted = PackEpisode.model_validate({"episode_id": episode_id, "to": to})
        await self._do(self._packed(wanted), "")

    async def _packed(self, wanted: PackEpisode) -> None:
        packed = await self.frame.backend.pack_episode(wanted)
        words = self.frame.words
        key = f"episodes.outcome.{packed.outcome}"
        self.frame.say(words(key) + (f": {packed.reason}" if packed.reason else ""))

    async def _anchor(self, episode_id: str, is_anchor: bool) -> None:
        await self._do(self.frame.backend.set_anchor(episode_id, is_anchor=is_anchor), "")

    async def _do(self, work: Any, done: str) -> None:
        """The list hears of it by itself; whoever has asked sees it at once."""
        if await self.frame.attempt(work, done):
            await self._detail_part.attempt(self._explain)
            await self.look()


def _layers(name: str) -> tuple[Layer, ...]:
    return (Layer(name),) if name in list(Layer) else ()
