"""Commands and events of knowledge processing (spec 000 §3.3)."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from bus_schema.artifacts import ArtifactRef, ContentType
from bus_schema.identities import KemId
from bus_schema.kem import Content, KemRights, Metadata
from bus_schema.messages import Command, Event, Link, StrictValue, Value


def _sayable(content: str) -> str:
    if not content.strip():
        raise ValueError("is empty; there is nothing to learn from it")
    return content


TextKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:@/-]{0,159}$")]


class Chunking(StrictValue):
    """Chunk length and overlap of consecutive chunks."""

    max_chars: int = Field(default=1200, ge=200, le=8000)
    overlap_chars: int = Field(default=120, ge=0, le=1000)

    @model_validator(mode="after")
    def _get_on(self) -> Self:
        if self.overlap_chars * 2 > self.max_chars:
            raise ValueError("overlap_chars is more than half of max_chars")
        return self


class ProcessedData(Value):
    """Units created, in the order of the text; `unchanged` if they existed already."""

    kem_ids: tuple[KemId, ...]
    status: Literal["stored", "unchanged"]


class ProcessRawData(Command[ProcessedData], domain="kps", action="process_raw_data"):
    """Turn an artifact or a short text into units; repeating it with the same settings creates none.

    A text that changes has a `key`: whatever its words, its units are those of the key. Units of a later `revision`
    stay as they are, so that a late arrival undoes nothing.
    """

    source: ArtifactRef | None = None
    raw_content: Annotated[Content, AfterValidator(_sayable)] | None = None
    content_type: ContentType
    initial_metadata: Metadata = Field(default={})
    rights: KemRights = KemRights()
    chunking: Chunking = Chunking()
    links: tuple[Link, ...] = Field(default=(), max_length=50)
    key: TextKey | None = None
    revision: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _has_a_source(self) -> Self:
        if (self.source is None) == (self.raw_content is None):
            raise ValueError("give either a source or raw_content")
        if self.key is not None and self.raw_content is None:
            raise ValueError("a key is for raw_content; an artifact has its id")
        if self.revision and self.key is None:
            raise ValueError("a revision is of what has a key")
        return self


class KemProcessed(Event, topic="kem", name="processed"):
    """A source was processed completely; its units are in the global memory.

    Everybody hears it, so only of public units does it name the source and the ids.
    """

    source: ArtifactRef | None = None
    kem_ids: tuple[KemId, ...]
    status: Literal["stored", "unchanged"]


class KemProcessingProgress(Event, topic="kem", name="processing_progress"):
    """Number of chunks of a long source that have become units; it names the source if its units are public."""

    source: ArtifactRef | None = None
    done: int = Field(ge=0)
    total: int = Field(ge=0)
