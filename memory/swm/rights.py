"""The rights on units at hand: the same as those on rows."""

from bus_schema.kem import Kem
from memory.asker import Asker


def is_readable(kem: Kem, asker: Asker) -> bool:
    """Every read of the working memory asks this."""
    readers = {kem.owner, *kem.readers, *kem.writers}
    return asker.is_trusted or kem.visibility == "public" or asker.owner in readers


def is_writable(kem: Kem, asker: Asker) -> bool:
    """That everybody may read a unit does not make it everybody's to change."""
    return owns(kem, asker) or asker.owner in kem.writers


def owns(kem: Kem, asker: Asker) -> bool:
    """Whether the asker says who may read or write the unit."""
    return asker.is_trusted or asker.owner == kem.owner
