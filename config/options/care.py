"""Settings of how storage looks after artifacts."""

from pydantic import BaseModel, Field, field_validator

from bus_schema.artifacts import retention_policy


class CareSettings(BaseModel):
    """What storage takes away, how it looks after what stays."""

    retention: str = Field(
        default="",
        description="How long artifacts of a type are kept at most, such as draft=30d,critique=7d; default: for ever.",
    )
    gc_interval_s: float = Field(
        default=86400, ge=0, description="Time from one garbage collection of storage to the next; 0: by hand alone."
    )
    gc_max_objects: int = Field(
        default=10_000,
        ge=0,
        description="A garbage collection that would take more is refused; see storage-maintenance.",
    )
    gc_max_percent: float = Field(
        default=25, ge=0, le=100, description="The same in percent of what there is, from 100 things on."
    )
    audit_days: float = Field(
        default=7, ge=0, description="In how many days storage reads every artifact anew; 0: by hand alone."
    )

    @field_validator("retention")
    @classmethod
    def _is_policy(cls, retention: str) -> str:
        retention_policy(retention)
        return retention
