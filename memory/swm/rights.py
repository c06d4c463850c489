"""The rights on units at hand: the same as those on rows."""

from bus_schema.kem import Kem
from mindbus.principal import Principal


def is_readable(kem: Kem, principal: Principal) -> bool:
    """Every read of the working memory asks this."""
    readers = {kem.owner, *kem.readers, *kem.writers}
    return principal.is_trusted or kem.visibility == "public" or principal.owner in readers


def is_writable(kem: Kem, principal: Principal) -> bool:
    """That everybody may read a unit does not make it everybody's to change."""
    return owns(kem, principal) or principal.owner in kem.writers


def owns(kem: Kem, principal: Principal) -> bool:
    """Whether the asker says who may read or write the unit."""
    return principal.is_trusted or principal.owner == kem.owner
