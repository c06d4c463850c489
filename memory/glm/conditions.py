"""What a question means as a condition on rows."""

from collections.abc import Iterator

from sqlalchemy import ColumnElement, and_, false, not_, or_, select, true

from bus_schema.kem_query import AllOf, AnyOf, Between, Condition, KemQuery, MetadataFilter, NoneOf, OneOf, Scalar
from memory.glm.tables import FacetRow, KemRow


def meeting(query: KemQuery) -> ColumnElement[bool]:
    """All that a question says, apart from nearness."""
    return and_(_meeting(query.metadata_filters), meeting_but_for_metadata(query))


def meeting_but_for_metadata(query: KemQuery) -> ColumnElement[bool]:
    """The rest of it: of few rows, what their metadata says is seen sooner than who else has such metadata."""
    named = [KemRow.id.in_(query.ids)] if query.ids else []
    return and_(true(), *named, *_in_time(query))


def _in_time(query: KemQuery) -> Iterator[ColumnElement[bool]]:
    if query.created_at_start is not None:
        yield KemRow.created_at >= query.created_at_start
    if query.created_at_end is not None:
        yield KemRow.created_at <= query.created_at_end
    if query.updated_at_start is not None:
        yield KemRow.updated_at >= query.updated_at_start
    if query.updated_at_end is not None:
        yield KemRow.updated_at <= query.updated_at_end


def _meeting(wanted: MetadataFilter) -> ColumnElement[bool]:
    match wanted:
        case AllOf(AND=parts):
            return and_(*map(_meeting, parts))
        case AnyOf(OR=parts):
            return or_(*map(_meeting, parts))
        case NoneOf(NOT=part):
            return not_(_meeting(part))
        case _:
            # A list of ids rather than a look at each row: so that the database may begin with the rarest value.
            holding = (
                select(FacetRow.kem_id).where(FacetRow.key == key, _holding(condition))
                for key, condition in wanted.items()
            )
            return and_(true(), *(KemRow.id.in_(each) for each in holding))


def _holding(condition: Condition) -> ColumnElement[bool]:
    match condition:
        case OneOf(any_of=values):
            return or_(false(), *map(_equal, values))
        case Between(gt=gt, gte=gte, lt=lt, lte=lte):
            number = FacetRow.number
            bounds = (
                None if gt is None else number > gt,
                None if gte is None else number >= gte,
                None if lt is None else number < lt,
                None if lte is None else number <= lte,
            )
            return and_(*(bound for bound in bounds if bound is not None))
        case _:
            return _equal(condition)


def _equal(value: Scalar) -> ColumnElement[bool]:
    if isinstance(value, bool):
        return FacetRow.flag == value
    return FacetRow.text == value if isinstance(value, str) else FacetRow.number == value
