"""Episodes of long-term memory and the content of each layer (spec 002 §4.3)."""

from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AwareDatetime,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
    model_validator,
)

from bus_schema.embeddings import Embedding
from bus_schema.identities import UserId
from bus_schema.ids import derived
from bus_schema.messages import Value

EpisodeId = Annotated[str, StringConstraints(pattern=r"^ep_[A-Za-z0-9_-]{1,64}$")]
RawLogId = Annotated[str, StringConstraints(pattern=r"^raw_[A-Za-z0-9_-]{1,64}$")]
RawLogIds = tuple[RawLogId, ...]
SearchId = Annotated[str, StringConstraints(pattern=r"^srch_[A-Za-z0-9_-]{1,64}$")]
Speaker = Literal["user", "assistant"]


# Those of a talk are asked for with each of its answers.
@lru_cache(maxsize=8192)
def raw_log_id_of(chat_id: str, message_id: str) -> str:
    """Id in the raw log of a message of a dialogue."""
    return f"raw_{derived(chat_id, message_id)}"


class Layer(StrEnum):
    """Density at which an episode is kept: whole text (hot), summary (warm), headline (cold)."""

    HOT = "hot"
    WARM = "warm"
    COLD = "cold"


class AnchorReason(StrEnum):
    """Reason why an episode never goes cold (spec 002 §4.6)."""

    PROFILE = "profile"
    PROJECT = "project"
    EXPLICIT = "explicit"
    SYSTEM = "system"


class RawTurn(Value):
    """One message of the raw log; `speaker` is the display name, if the message has one.

    `is_excerpt` means that a search shows a passage of a long message.
    """

    raw_log_id: RawLogId
    role: Speaker
    content: str
    time: AwareDatetime
    speaker: str | None = None
    is_excerpt: bool = False


class Entity(Value):
    """A named person or thing in an episode, as written in the text, with the turns that name it."""

    name: str
    kind: Literal["person", "place", "organization", "thing", "date", "amount"]
    raw_log_ids: RawLogIds


class Decision(Value):
    """A decision in the words in which it was made, with the turns that state it.

    `superseded_by` are the turns of a later decision that, according to rules, seems to change it.
    """

    text: str
    raw_log_ids: RawLogIds
    superseded_by: RawLogIds = ()


NoteKind = Literal["event", "preference", "instruction", "number"]


class Note(Value):
    """A short sentence in which a person told an event with its time, a preference, an instruction or a number.

    `raw_log_ids` are the turns that say so. Searches look among the notes for what questions of these kinds ask for.
    """

    kind: NoteKind
    text: str
    raw_log_ids: RawLogIds


class _OfALayer(Value):
    layer: str

    @model_serializer(mode="wrap")
    def _with_layer(self, rest: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Serialise the layer even where it is the default, since the content's type depends on it."""
        return {"layer": self.layer, **rest(self)}


class HotContent(_OfALayer):
    """The whole text of the episode."""

    layer: Literal["hot"] = "hot"
    raw_messages: tuple[RawTurn, ...]
    entities: tuple[Entity, ...] = ()
    decisions: tuple[Decision, ...] = ()


class WarmContent(_OfALayer):
    """Summary and key points; `key_point_sources` are the turns of each key point, in the same order."""

    layer: Literal["warm"] = "warm"
    summary: str
    key_points: tuple[str, ...] = ()
    key_point_sources: tuple[RawLogIds, ...] = ()
    entities: tuple[Entity, ...] = ()
    decisions: tuple[Decision, ...] = ()
    embedding: Embedding | None = None

    @model_validator(mode="after")
    def _knows_its_sources(self) -> Self:
        if len(self.key_points) != len(self.key_point_sources) or not all(self.key_point_sources):
            raise ValueError("every key point has the ids of the turns that it is from")
        return self


class ColdContent(_OfALayer):
    """Headline and tags: enough to tell whether the episode is worth unpacking."""

    layer: Literal["cold"] = "cold"
    headline: str
    tags: tuple[str, ...] = ()
    embedding: Embedding | None = None


Content = Annotated[HotContent | WarmContent | ColdContent, Field(discriminator="layer")]


class EpisodeHead(Value):
    """An episode without its content; `version` grows with every change.

    `words` counts the words of its raw text, `kept_words` those of its layer.
    """

    id: EpisodeId
    chat_id: UserId
    created_at: AwareDatetime
    last_accessed: AwareDatetime
    access_count: int = Field(default=0, ge=0)
    layer: Layer
    priority: float = Field(ge=0, le=1)
    headline: str
    tags: tuple[str, ...] = ()
    continues_from: EpisodeId | None = None
    related_to: tuple[EpisodeId, ...] = ()
    is_anchor: bool = False
    anchor_reason: AnchorReason | None = None
    started_at: AwareDatetime
    ended_at: AwareDatetime
    turns: int = Field(ge=0)
    words: int = Field(ge=0)
    kept_words: int | None = Field(default=None, ge=0)
    version: int = Field(ge=1)


class Episode(EpisodeHead):
    """Consecutive turns of a dialogue on one topic, in the form of their layer; the raw turns stay in the log.

    `notes` are made when the episode is packed, for the search, and stay in every layer; they are no part of its text.
    """

    content: Content
    raw_log_ids: RawLogIds
    notes: tuple[Note, ...] = ()
