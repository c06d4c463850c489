"""Commands and events of the global memory (spec 000 §3.2)."""

from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from bus_schema.artifacts import ArtifactRef, ContentType
from bus_schema.embeddings import Embedding, ModelName
from bus_schema.identities import KemId
from bus_schema.kem import Content, Kem, KemDraft, KemNotice, KemSource, KemVisibility, Metadata, Owner, People
from bus_schema.kem_query import KemQuery
from bus_schema.messages import Command, Event, Nothing, Page, Query, StrictValue, Value
from bus_schema.replies import Code

MAX_BATCH = 1000
MAX_PAGE = 200
MAX_EMBEDDED = 64


class StoreKem(Command[Kem], domain="glm", action="store_kem"):
    """Store a unit, replacing one with the same id if the requester may write it; `created_at` is then kept."""

    kem: KemDraft


class BatchItem(Value):
    """Result for one unit of a batch; if it was refused or failed, an existing unit is unchanged."""

    kem_id: KemId
    status: Literal["stored", "replaced", "refused", "failed"]
    created_at: AwareDatetime | None = None
    updated_at: AwareDatetime | None = None
    version: int | None = None
    code: Code | None = None
    error: str | None = None


class BatchReport(Value):
    """One item per unit, in the order they were sent."""

    items: tuple[BatchItem, ...]


class KemBatch(Value):
    """Units to be stored, or an artifact with one draft per line."""

    kems: tuple[KemDraft, ...] = Field(default=(), max_length=MAX_BATCH)
    ref: ArtifactRef | None = None

    @model_validator(mode="after")
    def _has_units(self) -> Self:
        if bool(self.kems) == (self.ref is not None):
            raise ValueError("a batch has either units or a ref to them")
        return self


class BatchStoreKems(KemBatch, Command[BatchReport], domain="glm", action="batch_store_kems"):
    """Store many units independently of one another; `ref` is an artifact with one draft per line."""


class Explanation(Value):
    """Evidence of a score: similarity of meaning, lexical match, matching words; and the parts of the score.

    The score is (`base` + `by_words` + `by_meaning` + `raised`) × `validity`. `base` is what a unit of average
    similarity scores without any of the words; what is further away has a negative `by_meaning`. `validity` is less
    than 1 if the unit does not hold now. A unit that supersedes another, `raised_by`, scores at least as high as that
    one would if it held: `raised` is what this adds.
    """

    dense: float | None = None
    lexical: float | None = None
    words: tuple[str, ...] = ()
    base: float = 0.0
    by_words: float = 0.0
    by_meaning: float = 0.0
    raised: float = 0.0
    validity: float = 1.0
    raised_by: KemId | None = None


class KemTwin(Value):
    """Another unit that says the same, and where it comes from."""

    kem_id: KemId
    owner: Owner
    source: KemSource | None = None


class KemContradiction(Value):
    """Another unit that says something else of the same; `is_newer` if it has held, or was learnt, since later."""

    kem_id: KemId
    is_newer: bool = False


class FoundKem(Value):
    """A unit that the requester may read; it has a `score` if the query ranks by similarity.

    A ranked result also stands for its `twins`, which are not results of their own. The best of the results that it
    contradicts, as far as rules tell, comes right after it.
    """

    kem: Kem
    score: float | None = None
    explain: Explanation | None = None
    twins: tuple[KemTwin, ...] = ()
    contradicts: tuple[KemContradiction, ...] = ()


class KemPage(Page[FoundKem]):
    """Units in the requested order with the cursor of the next page, valid for the same query only.

    `is_degraded` means that a text was compared by its words alone, since search by meaning was unavailable.
    """

    is_degraded: bool = False


class RetrieveKems(Query[KemPage], domain="glm", action="retrieve_kems"):
    """Find units that the requester may read; without an order or a ranking, newest `updated_at` first."""

    query: KemQuery
    cursor: str | None = Field(default=None, max_length=512)
    page_size: int = Field(default=50, ge=1, le=MAX_PAGE)
    explain: bool = False


class KemChanges(StrictValue):
    """Fields to set; others keep their values. New content without a vector removes the old vector."""

    content_type: ContentType | None = None
    content: Content | None = None
    ref: ArtifactRef | None = None
    metadata: Metadata | None = None
    embeddings: Embedding | None = None
    source: KemSource | None = None
    visibility: KemVisibility | None = None
    readers: People | None = None
    writers: People | None = None
    valid_from: AwareDatetime | None = None
    valid_to: AwareDatetime | None = None
    expires_at: AwareDatetime | None = None

    @model_validator(mode="after")
    def _change_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("name at least one field to change")
        if self.content is not None and self.ref is not None:
            raise ValueError("a unit has either content or a ref to it")
        if unset := [name for name in self.model_fields_set & _NEEDED if getattr(self, name) is None]:
            raise ValueError(f"cannot be set to null: {', '.join(sorted(unset))}")
        return self


# A unit always has these; content is taken away by giving a ref, or the other way round.
_NEEDED = {"content_type", "content", "ref", "metadata", "visibility", "readers", "writers"}


class UpdateKem(Command[Kem], domain="glm", action="update_kem"):
    """Change parts of a unit; with `expected_version`, it is a conflict if the unit has changed meanwhile."""

    kem_id: KemId
    changes: KemChanges
    expected_version: int | None = Field(default=None, ge=1)


class DeleteKem(Command[Nothing], domain="glm", action="delete_kem"):
    """Delete a unit from global and working memory."""

    kem_id: KemId


class MemoryReport(Value):
    """Differences between rows and vectors; `waiting` counts vectors not yet computed; samples are named."""

    kems: int
    with_vector: int
    vectors: int
    waiting: int
    missing: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    surplus: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether rows and vectors agree."""
        return not (self.waiting or self.missing or self.stale or self.surplus)


class CheckMemory(Command[MemoryReport], domain="glm", action="check"):
    """Compare rows with vectors."""


class MemoryStats(Value):
    """Numbers of units that the requester may read, and owns; vectors are counted for the current model."""

    kems: int
    own: int
    with_vector: int
    by_content_type: dict[str, int] = Field(default={})
    newest: AwareDatetime | None = None
    model: ModelName
    dim: int


class GetMemoryStats(Query[MemoryStats], domain="glm", action="stats"):
    """Count the units that the requester may read."""


class ReindexProgress(Value):
    """Number of units that have a vector of the new model."""

    model: ModelName
    done: int
    total: int


class Reindex(Command[ReindexProgress], domain="glm", action="reindex"):
    """Compute vectors of another model for all units, continuing an interrupted run."""

    model: ModelName


class KemStored(KemNotice, topic="kem", name="stored"):
    """A unit was stored in the global memory, new or in place of an older one of the same id."""


class KemUpdated(KemNotice, topic="kem", name="updated"):
    """A unit was changed in the global or in the working memory."""


class KemDeleted(Event, topic="kem", name="deleted"):
    """A unit was deleted; copies must be dropped."""

    kem_id: KemId


class EmbeddedTexts(Value):
    """One embedding per text, in the same order."""

    items: tuple[Embedding, ...]


class EmbedTexts(Query[EmbeddedTexts], domain="glm", action="embed"):
    """Embed texts with the memory's model, as passages to be found."""

    texts: tuple[Annotated[str, Field(min_length=1, max_length=32_000)], ...] = Field(
        min_length=1, max_length=MAX_EMBEDDED
    )
