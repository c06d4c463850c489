"""Queries over shared memory; a unit must meet all conditions."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    StringConstraints,
    Tag,
    model_validator,
)
from typing_extensions import TypeAliasType

from bus_schema.embeddings import Embedding
from bus_schema.identities import KemId
from bus_schema.kem import MetadataKey
from bus_schema.messages import StrictValue

MAX_DEPTH = 8
MAX_CONDITIONS = 64
MAX_FILTER_CHARS = 256
# JavaScript and others hold no larger integers exactly.
LARGEST_NUMBER = 2**53

# Longer texts are not looked for by their value.
FilterText = Annotated[str, StringConstraints(max_length=MAX_FILTER_CHARS, strict=True)]
FilterNumber = Annotated[float, Field(strict=True, ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
Scalar = StrictBool | FilterText | FilterNumber
OrderBy = Literal["created_at asc", "created_at desc", "updated_at asc", "updated_at desc", "id asc", "id desc"]


class OneOf(StrictValue):
    """The value is one of these."""

    any_of: tuple[Scalar, ...] = Field(min_length=1, max_length=100)


class Between(BaseModel):
    """The value is a number within these bounds; gt and lt exclude theirs."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)
    gt: float | None = None
    gte: float | None = None
    lt: float | None = None
    lte: float | None = None

    @model_validator(mode="after")
    def _has_a_bound(self) -> Self:
        if all(bound is None for bound in (self.gt, self.gte, self.lt, self.lte)):
            raise ValueError("name at least one of gt, gte, lt, lte")
        return self

    def holds(self, value: bool | float | str) -> bool:
        """Whether a value is a number within the bounds; a boolean is none, though it is one in Python."""
        return (
            not isinstance(value, bool | str)
            and (self.gt is None or value > self.gt)
            and (self.gte is None or value >= self.gte)
            and (self.lt is None or value < self.lt)
            and (self.lte is None or value <= self.lte)
        )


class AllOf(StrictValue):
    """All of these hold."""

    AND: tuple["MetadataFilter", ...] = Field(min_length=1, max_length=MAX_CONDITIONS)


class AnyOf(StrictValue):
    """At least one of these holds."""

    OR: tuple["MetadataFilter", ...] = Field(min_length=1, max_length=MAX_CONDITIONS)


class NoneOf(StrictValue):
    """The filter does not hold; true for a unit without the key."""

    NOT: "MetadataFilter"


def _kind_of_condition(condition: Any) -> str:
    if isinstance(condition, OneOf) or (isinstance(condition, dict) and "any_of" in condition):
        return "any_of"
    return "between" if isinstance(condition, Between | dict) else "equals"


def _kind_of_filter(tree: Any) -> str:
    """Discriminator of the filter tree: its keywords are not valid metadata keys."""
    for kind, joint in (("AND", AllOf), ("OR", AnyOf), ("NOT", NoneOf)):
        if isinstance(tree, joint) or (isinstance(tree, dict) and kind in tree):
            return kind
    return "plain"


Condition = Annotated[
    Annotated[Scalar, Tag("equals")] | Annotated[OneOf, Tag("any_of")] | Annotated[Between, Tag("between")],
    Discriminator(_kind_of_condition),
]
# As in spec 000 §7.1.1: what each key must be; a list in metadata meets what one of its members meets.
Plain = Annotated[dict[MetadataKey, Condition], Field(max_length=MAX_CONDITIONS)]
MetadataFilter = TypeAliasType(
    "MetadataFilter",
    Annotated[
        Annotated[AllOf, Tag("AND")]
        | Annotated[AnyOf, Tag("OR")]
        | Annotated[NoneOf, Tag("NOT")]
        | Annotated[Plain, Tag("plain")],
        Discriminator(_kind_of_filter),
    ],
)


class KemQuery(StrictValue):
    """Conditions on units, combined with AND; both ends of a time range are included."""

    ids: tuple[KemId, ...] = Field(default=(), max_length=1000, description="Units to choose from; all if unset.")
    text_query: str | None = Field(
        default=None, min_length=1, max_length=2000, description="Text to rank units by similarity to."
    )
    embedding_query: Embedding | None = Field(default=None, description="Vector to rank units by similarity to.")
    metadata_filters: MetadataFilter = Field(
        default={}, description="Values that metadata must have, joined by AND, OR and NOT."
    )
    created_at_start: AwareDatetime | None = Field(default=None, description="Earliest creation time, with zone.")
    created_at_end: AwareDatetime | None = Field(default=None, description="Latest creation time, with zone.")
    updated_at_start: AwareDatetime | None = Field(default=None, description="Earliest update time, with zone.")
    updated_at_end: AwareDatetime | None = Field(default=None, description="Latest update time, with zone.")
    as_of: AwareDatetime | None = Field(
        default=None, description="Time, with zone, when units must hold; if unset, units that do not hold rank lower."
    )
    known_at: AwareDatetime | None = Field(
        default=None, description="Time, with zone, by which it must have been learnt that units hold; also sets as_of."
    )
    hides_unrelated: bool = Field(
        default=True, description="Whether a text that no unit is about finds nothing; if false, it finds the nearest."
    )
    order_by: OrderBy | None = Field(default=None, description="Order of results; overrides ranking by similarity.")

    @property
    def holds_at(self) -> datetime | None:
        """When units must hold; None where that does not matter."""
        return self.as_of or self.known_at

    @property
    def is_ranked(self) -> bool:
        """Whether results are ranked by similarity, which an explicit order overrides."""
        return self.text_query is not None or self.embedding_query is not None

    @model_validator(mode="after")
    def _can_be_met(self) -> Self:
        for name in ("created_at", "updated_at"):
            start: datetime | None = getattr(self, f"{name}_start")
            end: datetime | None = getattr(self, f"{name}_end")
            if start is not None and end is not None and start > end:
                raise ValueError(f"{name}_start is later than {name}_end")
        depth, conditions = _size(self.metadata_filters)
        if depth > MAX_DEPTH or conditions > MAX_CONDITIONS:
            raise ValueError(
                f"metadata_filters are {depth} levels deep with {conditions} conditions;"
                f" {MAX_DEPTH} levels, {MAX_CONDITIONS} conditions at most"
            )
        return self


def _size(tree: MetadataFilter) -> tuple[int, int]:
    match tree:
        case AllOf(AND=parts) | AnyOf(OR=parts):
            sizes = [_size(part) for part in parts]
            return 1 + max(depth for depth, _ in sizes), sum(conditions for _, conditions in sizes)
        case NoneOf(NOT=part):
            depth, conditions = _size(part)
            return 1 + depth, conditions
        case _:
            return 1, len(tree)
