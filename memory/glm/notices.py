"""Public change events of units."""

from typing import TypeVar

from bus_schema.kem import Kem, KemNotice

NoticeT = TypeVar("NoticeT", bound=KemNotice)


def notice_of(kem: Kem, kind: type[NoticeT]) -> NoticeT:
    """Its metadata only where everybody may read it anyway."""
    return kind(
        kem_id=kem.id,
        version=kem.version,
        updated_at=kem.updated_at,
        visibility=kem.visibility,
        metadata=kem.metadata if kem.visibility == "public" else {},
    )
