"""Who may do what with a unit: decided here, nowhere else."""

from sqlalchemy import ColumnElement, exists, or_, true

from memory.asker import Asker
from memory.glm.tables import KemRow, ReaderRow


def readable_by(asker: Asker) -> ColumnElement[bool]:
    """The condition on a unit; every read carries it, so that what is denied looks exactly like what is absent."""
    if asker.is_trusted:
        return true()
    named = exists().where(ReaderRow.kem_id == KemRow.id, ReaderRow.reader == asker.owner).correlate(KemRow)
    return or_(KemRow.visibility == "public", KemRow.owner == asker.owner, named)


def is_readable(row: KemRow, asker: Asker) -> bool:
    """The same of a row at hand."""
    return asker.is_trusted or row.visibility == "public" or asker.owner in {row.owner, *readers_of(row)}


def is_writable(row: KemRow, asker: Asker) -> bool:
    """That everybody may read a unit does not make it everybody's to change."""
    return owns(row, asker) or asker.owner in row.writers


def owns(row: KemRow, asker: Asker) -> bool:
    """Whether the asker says who may read or write the unit."""
    return asker.is_trusted or asker.owner == row.owner


def readers_of(row: KemRow) -> list[str]:
    """Who may read it beside the owner, as long as it is not public; who writes must read."""
    return list(dict.fromkeys([*row.readers, *row.writers]))
