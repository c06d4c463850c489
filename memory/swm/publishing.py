"""What a draft becomes in the working memory."""

from datetime import datetime
from typing import Any

from bus_schema.kem import Kem, KemBody, KemDraft, KemRights
from memory.errors import KemIdTaken, NotTheOwner, NotYoursToShare
from memory.swm.rights import is_writable, owns
from mindbus.principal import Principal

_RIGHTS = set(KemRights.model_fields)


def first(draft: KemDraft, kem_id: str, principal: Principal, now: datetime, *, is_known_new: bool) -> Kem:
    """A unit that is not at hand. Raises NotTheOwner.

    Where nobody can say whether the global memory has one of this id, its rights may be narrower: nobody else reads it.
    """
    owner = draft.owner or principal.owner
    if owner != principal.owner and not principal.is_trusted:
        raise NotTheOwner(owner=owner)
    says_who_reads = bool(_RIGHTS & draft.model_fields_set)
    rights = {} if is_known_new or says_who_reads else {"visibility": "private"}
    times = {"created_at": now, "updated_at": now}
    return Kem.model_validate(_body(draft) | rights | {"id": kem_id, "owner": owner, "version": 1} | times)


def following(draft: KemDraft, older: Kem, principal: Principal, now: datetime) -> Kem:
    """A unit in place of an older one. Raises KemIdTaken, NotTheOwner, NotYoursToShare."""
    if not is_writable(older, principal):
        raise KemIdTaken(is_denied=True, kem_id=older.id)
    if draft.owner not in (None, older.owner):
        raise NotTheOwner(owner=draft.owner)
    kept = {name: getattr(older, name) for name in _RIGHTS}
    body = _body(draft)
    if not _RIGHTS & draft.model_fields_set:
        body |= kept
    elif not owns(older, principal) and any(body[name] != right for name, right in kept.items()):
        raise NotYoursToShare(kem_id=older.id)
    stamp = {"id": older.id, "owner": older.owner, "created_at": older.created_at}
    return Kem.model_validate(body | stamp | {"updated_at": now, "version": older.version + 1})


def _body(draft: KemDraft) -> dict[str, Any]:
    return {name: getattr(draft, name) for name in KemBody.model_fields}
