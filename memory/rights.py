"""Access rights on units: decided here for stored rows and cached units alike."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from bus_schema.identities import Principal
from bus_schema.kem import KemDraft, KemRights
from memory.errors import KemIdTaken, NoSuchKem, NotTheOwner, NotYoursToShare, NotYoursToWrite

RIGHTS = frozenset(KemRights.model_fields)


class Owned(Protocol):
    """Unit with an owner and rights: a `Kem` or its row."""

    @property
    def id(self) -> str: ...
    @property
    def owner(self) -> str: ...
    @property
    def visibility(self) -> str: ...
    @property
    def readers(self) -> Sequence[str]: ...
    @property
    def writers(self) -> Sequence[str]: ...


OwnedT = TypeVar("OwnedT", bound=Owned)


def owns(unit: Owned, principal: Principal) -> bool:
    """True if the principal decides who may read or write the unit."""
    return principal.is_trusted or principal.owner == unit.owner


def is_writable(unit: Owned, principal: Principal) -> bool:
    """True for the owner and its writers; a public unit is not writable by everybody."""
    return owns(unit, principal) or principal.owner in unit.writers


def is_readable(unit: Owned, principal: Principal) -> bool:
    """True for the owner, its readers and writers, and for everybody if the unit is public."""
    return unit.visibility == "public" or owns(unit, principal) or principal.owner in readers_of(unit)


def require_writable(unit: OwnedT | None, kem_id: str, principal: Principal) -> OwnedT:
    """The unit, if there is one that the principal may change. Raises NoSuchKem, NotYoursToWrite."""
    if unit is None or not is_readable(unit, principal):
        raise NoSuchKem(is_denied=unit is not None, kem_id=kem_id)
    if not is_writable(unit, principal):
        raise NotYoursToWrite(kem_id=kem_id)
    return unit


def readers_of(unit: Owned) -> list[str]:
    """Principals other than the owner that may read a unit that is not public: its readers and writers."""
    return list(dict.fromkeys([*unit.readers, *unit.writers]))


def owner_of_new(draft: KemDraft, principal: Principal) -> str:
    """Owner of a unit that does not exist yet. Raises NotTheOwner."""
    owner = draft.owner or principal.owner
    if owner != principal.owner and not principal.is_trusted:
        raise NotTheOwner(owner=owner)
    return owner


def rights_of_replacement(
    body: Mapping[str, Any], draft: KemDraft, older: Owned, principal: Principal
) -> dict[str, Any]:
    """Rights of a unit that a draft replaces; `body` has the draft's fields in the form of the older unit.

    A draft that names no rights keeps the older ones. Raises KemIdTaken, NotTheOwner, NotYoursToShare.
    """
    if not is_writable(older, principal):
        raise KemIdTaken(is_denied=True, kem_id=older.id)
    if draft.owner not in (None, older.owner):
        raise NotTheOwner(owner=draft.owner)
    current = {name: getattr(older, name) for name in RIGHTS}
    if not RIGHTS & draft.model_fields_set:
        return current
    proposed = {name: body[name] for name in RIGHTS}
    if proposed != current and not owns(older, principal):
        raise NotYoursToShare(kem_id=older.id)
    return proposed
