"""How long things are kept, how much may go at once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from bus_schema.artifacts import retention_policy
from mindbus.settings import Settings

# What is younger may still become part of an artifact.
GRACE = timedelta(hours=24)
ORPHANS_KEPT = timedelta(days=7)
# As long as the dead letter that points at it may lie.
CLAIMS_KEPT = timedelta(days=30)
# Half-written files: far longer than a copy takes, so that no other instance's copy under way is swept.
TEMPORARY_KEPT = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class MaintenanceRules:
    """What the operator decides.

    `retention` limits artifacts by their type. A run of garbage collection that would take more than `max_objects`, or
    more than `max_percent` of what there is, is refused; `few` may go whatever their share. `interval` is the time
    from run to run, `audit_within` the time that a round through all artifacts takes; None: not by itself.
    `orphans` is where they lie, if not in the store. With `must_write_once`, storage does not start on a store that
    writes over what is there.
    """

    retention: Mapping[str, timedelta] = field(default_factory=dict)
    max_objects: int = 10_000
    max_percent: float = 25
    few: int = 100
    interval: timedelta | None = timedelta(days=1)
    audit_within: timedelta | None = timedelta(days=7)
    orphans: Path | None = None
    must_write_once: bool = False


def rules_of(settings: Settings) -> MaintenanceRules:
    """As the operator has set them."""
    return MaintenanceRules(
        retention=retention_policy(settings.retention),
        max_objects=settings.gc_max_objects,
        max_percent=settings.gc_max_percent,
        interval=timedelta(seconds=settings.gc_interval_s) or None,
        audit_within=timedelta(days=settings.audit_days) or None,
        orphans=settings.orphans_dir,
        must_write_once=settings.artifacts_write_once == "required",
    )
