"""Search results with the parts of each score, kept up to date with live changes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from nicegui.element import Element

from bus_schema.glm import Explanation, FoundKem, KemPage
from bus_schema.kem import Kem
from bus_schema.kem_match import facets, meets_filter
from bus_schema.kem_query import KemQuery
from gateway.memory_changes import KemChange
from gateway.ui.components import Rows, attributes, box, moment, show_if, tag, text
from gateway.ui.i18n import Localizer
from gateway.ui.memory.highlights import excerpt, highlight, show_text, text_diff
from gateway.ui.memory.search_form import MemorySearch
from gateway.ui.svg import icon


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

    def shown(self, question: MemorySearch, chosen: str | None) -> list[KemItem]:
        """Units of the selected content type, in the order of the answer."""
        hits = (hit for hit in self.hits.values() if question.shows(hit.kem))
        return [replace(hit, is_chosen=hit.kem.id == chosen) for hit in hits]

    def hear(self, changes: Iterable[KemChange]) -> None:
        """Mark changed units and collect new ones."""
        for change in changes:
            known = self.hits.get(change.kem_id)
            if known is not None:
                self.hits[change.kem_id] = apply_change(known, change)
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
_MOST_TAGS = 4


class ResultList:
    """Rows of units; a live change marks its row and never moves it."""

    def __init__(self, i18n: Localizer, place: Element, choose: Callable[[str], Any]) -> None:
        with place:
            made = box("mb-hits")
        self._rows: Rows[KemItem] = Rows(made, lambda hit: _Row(i18n, hit, choose))

    def show(self, hits: Sequence[KemItem]) -> None:
        self._rows.show((hit.kem.id, hit) for hit in hits)


class _Row:
    def __init__(self, i18n: Localizer, hit: KemItem, choose: Callable[[str], Any]) -> None:
        self._i18n, kem_id = i18n, hit.kem.id
        self.element = attributes(box("mb-hit", "button"), type="button", data_row=kem_id, data_kem=kem_id)
        self.element.on("click", lambda: choose(kem_id))

    def show(self, hit: KemItem) -> None:
        self.element.clear()
        self.element.classes(replace=f"mb-hit {'mb-gone' if hit.is_gone else ''}")
        attributes(self.element, aria_pressed=str(hit.is_chosen).lower()).update()
        with self.element:
            with box("mb-hit-top"):
                with box("mb-hit-text mb-grow"):
                    show_text(_excerpt_of(hit, self._i18n))
                if hit.found.score is not None:
                    text(self._i18n.number(hit.found.score, 2), "mb-num mb-strong")
            if hit.found.score is not None:
                score_bar(self._i18n, hit.found.score, hit.found.explain)
            self._foot(hit)

    def _foot(self, hit: KemItem) -> None:
        i18n, kem = self._i18n, hit.kem
        with box("mb-hit-foot"):
            if hit.is_gone:
                tag(i18n("memory.deleted"), "err")
            elif hit.before is not None:
                tag(i18n("memory.changed"), "kem", dot=True)
            if kem.visibility != "public":
                with box("mb-tag", "span"):
                    icon("hidden", "mb-i14")
                    text(i18n(f"memory.visibility.{kem.visibility}"))
            # A number says nothing without its key.
            told = [(key, value) for key, value in facets(kem.metadata) if isinstance(value, str)]
            for key, value in told[:_MOST_TAGS]:
                attributes(tag(value, "", "mb-hit-tag"), title=f"{key}={value}")
            box("mb-grow")
            moment(i18n, kem.updated_at, i18n.when(kem.updated_at, datetime.now(UTC)))


def score_bar(i18n: Localizer, score: float, explain: Explanation | None) -> Element:
    """A bar of the score, coloured by the shares of lexical and dense similarity."""
    lexical, dense = (max(explain.lexical or 0, 0), max(explain.dense or 0, 0)) if explain else (0.0, 1.0)
    total = lexical + dense or 1.0
    with attributes(
        box("mb-score"), aria_hidden="true", title=i18n("memory.score", score=i18n.number(score, 2))
    ) as made:
        for share, colour in ((lexical, "processed"), (dense, "process")):
            if share:
                box("", "i").style(f"width: {100 * score * share / total:.1f}%; --c: var(--{colour})")
    return made


def content_of(kem: Kem, i18n: Localizer) -> str:
    """The content, or the artifact that holds it."""
    if kem.content is not None:
        return kem.content
    ref = kem.ref
    return "" if ref is None else i18n("memory.in_artifact", id=ref.artifact_id, size=i18n.bytes(ref.size_bytes))


def _excerpt_of(hit: KemItem, i18n: Localizer) -> Sequence[Any]:
    said, found_by = content_of(hit.kem, i18n), hit.found.explain.words if hit.found.explain else ()
    if hit.before is not None and hit.before != said and len(said) <= _LENGTH:
        return text_diff(hit.before, said)
    return excerpt(said, found_by, _LENGTH) or highlight("–", ())


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
            with attributes(box("mb-btn mb-small mb-hidden", "button"), type="button") as self._fresh:
                self._fresh_said = text("")
            self._fresh.on("click", refresh)

    def took(self, seconds: float) -> None:
        self._took.set_text(self.i18n("memory.took", time=self.i18n.seconds(seconds)))

    def show(self, found: SearchResults, hits: Sequence[KemItem]) -> None:
        i18n = self.i18n
        first = "memory.first" if found.next_cursor else "memory.found"
        self._count.set_text(i18n.count(first, len(hits)))
        show_if(self._degraded, found.is_degraded)
        show_if(self._legend, any(hit.found.explain for hit in hits))
        show_if(self._fresh, found.fresh)
        self._fresh_said.set_text(i18n.count("memory.fresh", len(found.fresh)))
