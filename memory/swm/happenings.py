"""What has happened to units at hand."""

from dataclasses import dataclass
from typing import Literal

from bus_schema.kem import Kem

Happened = Literal["KEM_PUBLISHED", "KEM_UPDATED", "KEM_EVICTED", "KEM_DELETED"]


@dataclass(frozen=True, slots=True)
class Happening:
    """Of one that is gone there is the id alone; `is_told` where the global memory has told everybody already."""

    event_type: Happened
    kem_id: str
    kem: Kem | None = None
    is_told: bool = False
