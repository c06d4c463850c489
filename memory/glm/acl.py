"""Who may do what with a unit: decided here, nowhere else."""

from sqlalchemy import ColumnElement, exists, or_, true

from memory.glm.tables import KemRow, ReaderRow
from mindbus.principal import Principal


def readable_by(principal: Principal) -> ColumnElement[bool]:
    """The condition on a unit; every read carries it, so that what is denied looks exactly like what is absent."""
    if principal.is_trusted:
        return true()
    named = exists().where(ReaderRow.kem_id == KemRow.id, ReaderRow.reader == principal.owner).correlate(KemRow)
    return or_(KemRow.visibility == "public", KemRow.owner == principal.owner, named)


def is_readable(row: KemRow, principal: Principal) -> bool:
    """The same of a row at hand."""
    return principal.is_trusted or row.visibility == "public" or principal.owner in {row.owner, *readers_of(row)}


def is_writable(row: KemRow, principal: Principal) -> bool:
    """That everybody may read a unit does not make it everybody's to change."""
    return owns(row, principal) or principal.owner in row.writers


def owns(row: KemRow, principal: Principal) -> bool:
    """Whether the asker says who may read or write the unit."""
    return principal.is_trusted or principal.owner == row.owner


def readers_of(row: KemRow) -> list[str]:
    """Who may read it beside the owner, as long as it is not public; who writes must read."""
    return list(dict.fromkeys([*row.readers, *row.writers]))
