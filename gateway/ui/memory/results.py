"""Search results with the parts of each score, kept up to date with live changes, and the list of these changes."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from typing import Any, Final

from nicegui.element import Element

from bus_schema.glm import Explanation, FoundKem, KemPage
from bus_schema.kem import Kem
from bus_schema.kem_match import facets, holds_at, meets_filter
from bus_schema.kem_query import KemQuery
from gateway.shared_memory import KemChange
from gateway.ui.components import (
    attributes,
    box,
    clickable,
    identifier,
    moment,
    score_bar,
    show_if,
    tag,
    text,
    toggle,
    update,
)
from gateway.ui.i18n import Localizer
from gateway.ui.memory.search_form import MemorySearch, is_id
from gateway.ui.rich_text import excerpt, highlight, show_text, text_diff
from gateway.ui.rows import RedrawnRow, Rows
from gateway.ui.svg import icon
from language.markdown import plain_document
from mindbus.sdk.kem_filters import format_value


@dataclass(frozen=True)
class KemItem:
    """A unit in the list; `before` is its content when it was found, if that has changed since."""

    found: FoundKem
    before: str | None = None
    is_gone: bool = False
    is_chosen: bool = False

    @property
    def kem(self) -> Kem:
        return self.found.kem


class SearchResults:
    """All pages so far; `fresh` are units that a new search might find."""

    def __init__(self) -> None:
        self.hits: dict[str, KemItem] = {}
        self.fresh: set[str] = set()
        self.query = KemQuery()
        self.next_cursor: str | None = None
        self.is_degraded = False

    def begin(self, query: KemQuery, page: KemPage) -> None:
        self.query = query
        self.hits.clear()
        self.fresh.clear()
        self.add(page)

    def add(self, page: KemPage) -> None:
        self.hits |= {item.kem.id: KemItem(item) for item in page.items}
        self.next_cursor, self.is_degraded = page.next_cursor, page.is_degraded

    def items(self) -> list[FoundKem]:
        return [hit.found for hit in self.hits.values() if not hit.is_gone]

    def visible_items(self, question: MemorySearch, chosen: str | None) -> list[KemItem]:
        """Units of the selected content type, in the order of the answer."""
        hits = (hit for hit in self.hits.values() if question.shows(hit.kem))
        return [replace(hit, is_chosen=hit.kem.id == chosen) for hit in hits]

    def receive(self, changes: Iterable[KemChange]) -> None:
        """Mark changed units and collect new ones."""
        for change in changes:
            item = self.hits.get(change.kem_id)
            if item is not None:
                self.hits[change.kem_id] = apply_change(item, change)
            elif change.event in ("stored", "updated") and meets_filter(change.metadata, self.query.metadata_filters):
                self.fresh.add(change.kem_id)
            elif change.event == "deleted":
                self.fresh.discard(change.kem_id)


def apply_change(hit: KemItem, change: KemChange) -> KemItem:
    """The item after a change; eviction from the working memory leaves it as it is."""
    if change.event == "deleted":
        return replace(hit, is_gone=True)
    if change.kem is None or change.kem.version <= hit.kem.version:
        return hit
    before = hit.kem.content if hit.before is None else hit.before
    return KemItem(hit.found.model_copy(update={"kem": change.kem}), before or "", is_chosen=hit.is_chosen)


_LENGTH = 240
MARKDOWN = "text/markdown"
_MAX_TAGS = 4
# A score below it says that the result is rather not what was meant (0.5: as likely as not).
_STRONG = 0.5


def result_rows(i18n: Localizer, place: Element, choose: Callable[[str], Any]) -> Rows[KemItem]:
    """Rows of units; a live change marks its row and never moves it."""

    def row(hit: KemItem) -> RedrawnRow[KemItem]:
        kem_id = hit.kem.id
        return RedrawnRow(clickable("mb-hit", lambda: choose(kem_id), data_row=kem_id, data_kem=kem_id), draw)

    def draw(row: Element, hit: KemItem) -> None:
        toggle(row, "mb-gone", is_on=hit.is_gone)
        update(row, aria_pressed=hit.is_chosen)
        with box("mb-hit-top"):
            with box("mb-hit-text mb-grow"):
                show_text(_excerpt_of(hit, i18n))
            if hit.found.score is not None:
                text(i18n.number(hit.found.score, 2), "mb-num mb-strong")
        if hit.found.score is not None:
            _show_score(i18n, hit.found.score, hit.found.explain)
        _foot(i18n, hit)

    with place:
        return Rows(box("mb-hits"), row)


def show_state(i18n: Localizer, hit: KemItem) -> None:
    """Whether the unit was deleted or changed since it was found, or does not hold now."""
    if hit.is_gone:
        tag(i18n("memory.deleted"), "err")
    elif hit.before is not None:
        tag(i18n("memory.changed"), "kem", dot=True)
    if not hit.is_gone and not holds_at(hit.kem, datetime.now(UTC)):
        tag(i18n("memory.outdated"), "warn")


def _foot(i18n: Localizer, hit: KemItem) -> None:
    kem = hit.kem
    with box("mb-hit-foot"):
        show_state(i18n, hit)
        if twins := hit.found.twins:
            attributes(tag(i18n.count("memory.twins", len(twins)), ""), title=", ".join(each.kem_id for each in twins))
        if others := hit.found.contradicts:
            has_newer = any(each.is_newer for each in others)
            mark = tag(i18n("memory.contradicted" if has_newer else "memory.contradicts"), "warn")
            attributes(mark, title=", ".join(each.kem_id for each in others))
        if kem.visibility != "public":
            with box("mb-tag", "span"):
                icon("hidden", "mb-i14")
                text(i18n(f"memory.visibility.{kem.visibility}"))
        # A number says nothing without its key.
        named = [(key, value) for key, value in facets(kem.metadata) if isinstance(value, str) and not is_id(value)]
        for key, value in named[:_MAX_TAGS]:
            attributes(tag(value, "", "mb-hit-tag"), title=f"{key}={value}")
        box("mb-grow")
        moment(i18n, kem.updated_at, i18n.when(kem.updated_at, datetime.now(UTC)))


@dataclass(frozen=True)
class ScoreShares:
    """Parts of a score, each multiplied by the unit's validity; as shown, they add up to the score."""

    base: float
    words: float
    meaning: float

    @classmethod
    def of(cls, score: float, explain: Explanation | None) -> "ScoreShares":
        parts = (explain.base, explain.by_words) if explain else (0.0, 0.0)
        base, words = (round(part * (explain.validity if explain else 1.0), 2) for part in parts)
        return cls(base, words, round(round(score, 2) - base - words, 2))


def _show_score(i18n: Localizer, score: float, explain: Explanation | None) -> None:
    """A bar of the score, coloured by its shares."""
    shares = ScoreShares.of(score, explain)
    # What meaning takes away is taken from the base, so that the bar is as long as the score.
    base = shares.base + min(shares.meaning, 0)
    parts: tuple[tuple[float, str], ...] = ((base, "t3"), (shares.words, "processed"), (shares.meaning, "process"))
    if explain is not None and explain.raised_by is not None:
        # What it is found by is said of the unit that it supersedes.
        parts = ((score, "t3"),)
    title = i18n("memory.score", score=i18n.number(score, 2))
    score_bar(*((share, colour) for share, colour in parts if share > 0), title=title)


def is_strong(hit: KemItem) -> bool:
    """Whether a result has words of the query, or a meaning that is near to it; one that was not ranked is as good."""
    found = hit.found
    return found.score is None or found.score >= _STRONG or bool(found.explain and found.explain.words)


def content_of(kem: Kem, i18n: Localizer) -> str:
    """The content, or the artifact that holds it."""
    if kem.content is not None:
        return kem.content
    ref = kem.ref
    return "" if ref is None else i18n("memory.in_artifact", id=ref.artifact_id, size=i18n.bytes(ref.size_bytes))


def _excerpt_of(hit: KemItem, i18n: Localizer) -> Sequence[Any]:
    content, found_by = content_of(hit.kem, i18n), hit.found.explain.words if hit.found.explain else ()
    if hit.before is not None and hit.before != content and len(content) <= _LENGTH:
        return text_diff(hit.before, content)
    shown = plain_document(content) if hit.kem.content_type == MARKDOWN else content
    return excerpt(shown, found_by, _LENGTH) or highlight("–", ())


class ResultSummary:
    """Number of results, duration, legend, number of changes since."""

    def __init__(self, i18n: Localizer, refresh: Callable[[], Any]) -> None:
        self.i18n = i18n
        with box("mb-found-line"):
            self._count = text("", "mb-medium")
            attributes(self._count, aria_live="polite")
            self._took = text("", "mb-meta mb-num mb-grow")
            self._degraded = text(i18n("memory.degraded"), "mb-meta mb-warn mb-hidden")
            with box("mb-line-x mb-not-phone mb-hidden") as self._legend:
                for key, colour in (("memory.lexical", "processed"), ("memory.dense", "process")):
                    with box("mb-line-x mb-cap"):
                        box("mb-legend-box", "i").style(f"--c: var(--{colour})")
                        text(i18n(key), "mb-t2")
            with clickable("mb-btn mb-small mb-hidden", refresh) as self._fresh:
                self._fresh_count = text("")

    def took(self, seconds: float) -> None:
        self._took.set_text(self.i18n("memory.took", time=self.i18n.seconds(seconds)))

    def show(self, results: SearchResults, hits: Sequence[KemItem], *, is_all: bool) -> None:
        i18n = self.i18n
        first = "memory.found" if is_all else "memory.first"
        self._count.set_text(i18n.count(first, len(hits)))
        show_if(self._degraded, results.is_degraded)
        show_if(self._legend, any(hit.found.explain for hit in hits))
        show_if(self._fresh, results.fresh)
        self._fresh_count.set_text(i18n.count("memory.fresh", len(results.fresh)))


_MAX_CHANGES: Final = 200
_CHANGE_LENGTH: Final = 200
_COLOURS: Final = {"deleted": "err", "evicted": "t3", "updated": "kem"}


class ChangeList:
    """Changes since the page was opened, the latest first."""

    def __init__(self, i18n: Localizer, place: Element, choose: Callable[[str], Any]) -> None:
        self._i18n, self._choose = i18n, choose
        self._numbers = count()
        self._kept: deque[tuple[int, KemChange]] = deque(maxlen=_MAX_CHANGES)
        with place:
            self._quiet = text(i18n("memory.quiet"), "mb-meta mb-quiet-note", "p")
            self._rows: Rows[KemChange] = Rows(attributes(box("mb-hits"), aria_live="polite"), self._row)

    def add(self, changes: Iterable[KemChange]) -> None:
        self._kept.extendleft((next(self._numbers), change) for change in changes)
        show_if(self._quiet, not self._kept)
        self._rows.show(self._kept)

    def _row(self, change: KemChange) -> RedrawnRow[KemChange]:
        row = attributes(box("mb-hit mb-change mb-new"), data_change=change.event, data_kem=change.kem_id)
        return RedrawnRow(row, self._draw)

    def _draw(self, _row: Element, change: KemChange) -> None:
        i18n, kem = self._i18n, change.kem
        with box("mb-hit-foot"):
            tag(i18n(f"memory.event.{change.event}"), _COLOURS.get(change.event, "ok"), dot=True)
            identifier(i18n, change.kem_id)
            text(kem.owner if kem else "", "mb-meta mb-ell")
            box("mb-grow")
            moment(i18n, change.at, i18n.time(change.at))
        content = content_of(kem, i18n) if kem is not None else ""
        about = content or " ".join(f"{key}={format_value(value)}" for key, value in facets(change.metadata))
        if about:
            with clickable("mb-hit-text mb-t2", lambda: self._choose(change.kem_id), data_row=change.kem_id):
                show_text(excerpt(about, (), _CHANGE_LENGTH))
