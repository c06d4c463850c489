"""The units of an answer, kept up with what happens to them."""

from collections.abc import Iterable
from dataclasses import replace

from bus_schema.glm import FoundKem, KemPage
from bus_schema.kem_matching import meets_filter
from bus_schema.kem_query import KemQuery
from gateway.memory_changes import KemChange
from gateway.ui.memory.question import Question
from gateway.ui.memory.results import Hit


class Found:
    """All pages so far; `fresh` are units that have come or changed since, which another answer may have."""

    def __init__(self) -> None:
        self.hits: dict[str, Hit] = {}
        self.fresh: set[str] = set()
        self.query = KemQuery()
        self.next_cursor: str | None = None
        self.is_degraded = False

    def begin(self, query: KemQuery, page: KemPage) -> None:
        """A new answer."""
        self.query = query
        self.hits.clear()
        self.fresh.clear()
        self.add(page)

    def add(self, page: KemPage) -> None:
        """More of it."""
        self.hits |= {item.kem.id: Hit(item) for item in page.items}
        self.next_cursor, self.is_degraded = page.next_cursor, page.is_degraded

    def items(self) -> list[FoundKem]:
        """What facets are counted of."""
        return [hit.found for hit in self.hits.values() if not hit.is_gone]

    def shown(self, question: Question, chosen: str | None) -> list[Hit]:
        """Those of the type that is wanted, in the order of the answer."""
        hits = (hit for hit in self.hits.values() if question.shows(hit.kem))
        return [replace(hit, is_chosen=hit.kem.id == chosen) for hit in hits]

    def hear(self, changes: Iterable[KemChange]) -> None:
        """Mark what has changed where it stands."""
        for change in changes:
            known = self.hits.get(change.kem_id)
            if known is not None:
                self.hits[change.kem_id] = changed_hit(known, change)
            elif change.event in ("stored", "updated") and meets_filter(change.metadata, self.query.metadata_filters):
                self.fresh.add(change.kem_id)
            elif change.event == "deleted":
                self.fresh.discard(change.kem_id)


def changed_hit(hit: Hit, change: KemChange) -> Hit:
    """What has left the working memory is kept all the same."""
    if change.event == "deleted":
        return replace(hit, is_gone=True)
    if change.kem is None or change.kem.version <= hit.kem.version:
        return hit
    before = hit.kem.content if hit.before is None else hit.before
    return Hit(hit.found.model_copy(update={"kem": change.kem}), before or "", is_chosen=hit.is_chosen)
