"""Units in memory, with an index on their metadata (spec 000 §3.6)."""

from bus_schema.kem import Kem
from bus_schema.kem_query import KemQuery
from mindbus.indexed_cache import IndexedLRUCache
from mindbus.kem_matching import texts_in, texts_wanted

# What a unit takes besides its content, its metadata, its vector.
_OVERHEAD_BYTES = 2000
_LEAST, _MOST = -10, 10


class IndexedKems(IndexedLRUCache[Kem]):
    """Those that were used last, within a bound; the unimportant go first. Any thread may use it."""

    def keep(self, kem: Kem) -> list[str]:
        """In place of an older one of its id; the ids of those that have had to go, which may be its own."""
        return self.put(kem.id, kem, texts_in(kem), _size_of(kem), priority_of(kem))

    def candidates(self, query: KemQuery) -> list[Kem]:
        """At least all that a question means, narrowed down as far as the index goes; to be looked at is no use."""
        kem_ids = set(query.ids) if query.ids else None
        for key, texts in texts_wanted(query.metadata_filters, self.indexed_keys):
            found = self.with_facets(key, texts)
            kem_ids = found if kem_ids is None else kem_ids & found
        kems = map(self.peek, self.keys() if kem_ids is None else kem_ids)
        return [kem for kem in kems if kem is not None]


def priority_of(kem: Kem) -> int:
    """How important its agent says it is, from -10 to 10: the number under `priority` in its metadata."""
    given = kem.metadata.get("priority")
    if isinstance(given, bool) or not isinstance(given, int | float):
        return 0
    return max(_LEAST, min(_MOST, round(given)))


def _size_of(kem: Kem) -> int:
    vector = 0 if kem.embeddings is None else len(kem.embeddings.data)
    return _OVERHEAD_BYTES + len((kem.content or "").encode()) + len(repr(kem.metadata)) + vector
