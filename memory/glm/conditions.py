"""KEM queries and read rights as SQL conditions."""

from sqlalchemy import ColumnElement, and_, exists, false, not_, or_, select, true

from bus_schema.kem_query import AllOf, AnyOf, Between, Condition, KemQuery, MetadataFilter, NoneOf, OneOf, Scalar
from memory.glm.tables import FacetRow, KemRow, ReaderRow
from mindbus.principal import Principal


def readable_by(principal: Principal) -> ColumnElement[bool]:
    """Condition that every read carries, so that a denied unit looks exactly like an absent one."""
    if principal.is_trusted:
        return true()
    is_reader = exists().where(ReaderRow.kem_id == KemRow.id, ReaderRow.reader == principal.owner).correlate(KemRow)
    return or_(KemRow.visibility == "public", KemRow.owner == principal.owner, is_reader)


def matching(query: KemQuery) -> ColumnElement[bool]:
    """All conditions of a query, similarity apart."""
    return and_(_matching(query.metadata_filters), matching_apart_from_metadata(query))


def matching_apart_from_metadata(query: KemQuery) -> ColumnElement[bool]:
    """Ids and times only: for few rows, comparing their metadata is faster than looking up the facets."""
    conditions: list[ColumnElement[bool]] = [KemRow.id.in_(query.ids)] if query.ids else []
    bounds = (
        (KemRow.created_at, query.created_at_start, query.created_at_end),
        (KemRow.updated_at, query.updated_at_start, query.updated_at_end),
    )
    for time, start, end in bounds:
        if start is not None:
            conditions.append(time >= start)
        if end is not None:
            conditions.append(time <= end)
    return and_(true(), *conditions)


def _matching(conditions: MetadataFilter) -> ColumnElement[bool]:
    match conditions:
        case AllOf(AND=parts):
            return and_(*map(_matching, parts))
        case AnyOf(OR=parts):
            return or_(*map(_matching, parts))
        case NoneOf(NOT=part):
            return not_(_matching(part))
        case _:
            # Lists of ids instead of EXISTS per row, so that the database may begin with the rarest value.
            kem_ids = (
                select(FacetRow.kem_id).where(FacetRow.key == key, _facet_meets(condition))
                for key, condition in conditions.items()
            )
            return and_(true(), *(KemRow.id.in_(each) for each in kem_ids))


def _facet_meets(condition: Condition) -> ColumnElement[bool]:
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
