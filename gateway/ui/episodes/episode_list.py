"""The list of episodes with their layer, sizes and priority."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nicegui.element import Element

from bus_schema.episodes import EpisodeHead
from gateway.ui.components import Rows, attributes, box, moment, tag, text
from gateway.ui.i18n import Localizer
from gateway.ui.svg import icon


@dataclass(frozen=True)
class EpisodeItem:
    """An episode in the list; its chat is named if there are several."""

    head: EpisodeHead
    is_chosen: bool = False
    names_chat: bool = False


class EpisodeList:
    """Rows of episodes."""

    def __init__(self, i18n: Localizer, place: Element, choose: Callable[[str], Any]) -> None:
        with place:
            made = box("mb-hits")
        self._rows: Rows[EpisodeItem] = Rows(made, lambda listed: _Row(i18n, listed, choose))

    def show(self, listed: Sequence[EpisodeItem]) -> None:
        self._rows.show((each.head.id, each) for each in listed)


class _Row:
    def __init__(self, i18n: Localizer, listed: EpisodeItem, choose: Callable[[str], Any]) -> None:
        self._i18n, episode_id = i18n, listed.head.id
        self.element = attributes(box("mb-hit mb-ep-row", "button"), type="button", data_row=episode_id)
        attributes(self.element, data_episode=episode_id)
        self.element.on("click", lambda: choose(episode_id))

    def show(self, listed: EpisodeItem) -> None:
        head, i18n = listed.head, self._i18n
        self.element.clear()
        attributes(self.element, aria_pressed=str(listed.is_chosen).lower()).update()
        with self.element:
            with box("mb-line-x"):
                attributes(text(head.headline, "mb-medium mb-ell mb-grow"), title=head.headline)
                layer_tag(i18n, head)
            with box("mb-line-x mb-meta mb-num"):
                moment(i18n, head.started_at, i18n.date(head.started_at, datetime.now(UTC)), "")
                if listed.names_chat:
                    text(head.chat_id, "mb-ell")
                text(words_kept(i18n, head), "mb-t2 mb-ep-words")
                box("mb-grow")
                priority_bar(i18n, head.priority)


def layer_tag(i18n: Localizer, head: EpisodeHead) -> None:
    """The layer, and whether it is an anchor."""
    tag(i18n(f"episodes.layer.{head.layer.value}"), head.layer.value)
    if head.is_anchor:
        with box("mb-tag mb-tint", "span").style("--c: var(--acc)"):
            icon("anchor", "mb-i14")
            text(i18n("episodes.anchor"), "mb-not-narrow")


def words_kept(i18n: Localizer, head: EpisodeHead) -> str:
    """Number of raw words, of stored words, and the ratio."""
    said, kept = i18n.number(head.words), head.kept_words
    if kept is None or kept >= head.words:
        return said
    return f"{said} → {i18n.number(kept)}  {i18n.number(head.words / max(1, kept), 1)}×"


def priority_bar(i18n: Localizer, priority: float) -> None:
    """A bar of the priority, 0 to 1."""
    with attributes(box("mb-score mb-ep-bar"), aria_hidden="true"):
        box("", "i").style(f"width: {100 * priority:.0f}%; --c: var(--acc)")
    text(i18n.number(priority, 2), "mb-num mb-t2")
