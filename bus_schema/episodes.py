"""The atom of long-term memory: an episode, with what each of its layers keeps (spec 002 §4.3)."""

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
    model_validator,
)

from bus_schema.embeddings import Embedding
from bus_schema.identities import UserId

EpisodeId = Annotated[str, StringConstraints(pattern=r"^ep_[A-Za-z0-9_-]{1,64}$")]
RawLogId = Annotated[str, StringConstraints(pattern=r"^raw_[A-Za-z0-9_-]{1,64}$")]
RawLogIds = tuple[RawLogId, ...]
Speaker = Literal["user", "assistant"]


class Layer(StrEnum):
    """How densely an episode is kept: whole, as a summary, as a headline."""

    HOT = "hot"
    WARM = "warm"
    COLD = "cold"


class AnchorReason(StrEnum):
    """Why an episode never goes cold (spec 002 §4.6)."""

    PROFILE = "profile"
    PROJECT = "project"
    EXPLICIT = "explicit"
    SYSTEM = "system"


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True)


class RawTurn(_Kept):
    """One message as it was said; `speaker` is the name of whoever said it, where the message tells it."""

    raw_log_id: RawLogId
    role: Speaker
    content: str
    time: AwareDatetime
    speaker: str | None = None


class Entity(_Kept):
    """Somebody or something that an episode names, as the text has it, with the turns that name it."""

    name: str
    kind: Literal["person", "place", "organization", "thing", "date", "amount"]
    raw_log_ids: RawLogIds


class Decision(_Kept):
    """What was decided, in the words in which it was said, with the turns that say it."""

    text: str
    raw_log_ids: RawLogIds


class _OfALayer(_Kept):
    layer: str

    @model_serializer(mode="wrap")
    def _with_layer(self, rest: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Messages leave out defaults, but without its layer nobody could tell what this is."""
        return {"layer": self.layer, **rest(self)}


class HotContent(_OfALayer):
    """The whole text, nothing left out."""

    layer: Literal["hot"] = "hot"
    raw_messages: tuple[RawTurn, ...]
    entities: tuple[Entity, ...] = ()
    decisions: tuple[Decision, ...] = ()


class WarmContent(_OfALayer):
    """What questions are answered from; `key_point_sources` are the turns of each key point, in their order."""

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
    """What tells whether it is worth looking deeper."""

    layer: Literal["cold"] = "cold"
    headline: str
    tags: tuple[str, ...] = ()
    embedding: Embedding | None = None


Content = Annotated[HotContent | WarmContent | ColdContent, Field(discriminator="layer")]


class EpisodeHead(_Kept):
    """An episode without its content; `version` grows with every change.

    `words` are those of its raw text, `kept_words` those of its layer.
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
    """A stretch of a dialogue about one matter, as its layer keeps it; the raw turns stay in the log."""

    content: Content
    raw_log_ids: RawLogIds
