"""Retention periods and limits of maintenance."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from bus_schema.artifacts import retention_policy
from config.settings import FleetSettings

# A younger file may still become part of an artifact.
GRACE = timedelta(hours=24)
ORPHANS_KEPT = timedelta(days=7)
# As long as a dead letter that points at the claim may be kept.
CLAIMS_KEPT = timedelta(days=30)
# Partial files: far longer than a copy takes, so that no running copy of another instance is removed.
TEMPORARY_KEPT = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class MaintenanceRules:
    """Settings of the operator.

    `retention` is by artifact type. A garbage collection of more than `max_objects` objects, or more than `max_percent`
    of all, is rejected; up to `few` objects are always collected. `interval` is the time between runs, `audit_within`
    the time for an audit of all artifacts; None: never by itself. `orphans` is a folder outside the store. With
    `must_write_once`, storage does not start on a store that overwrites objects.
    """

    retention: Mapping[str, timedelta] = field(default_factory=dict)
    max_objects: int = 10_000
    max_percent: float = 25
    few: int = 100
    interval: timedelta | None = timedelta(days=1)
    audit_within: timedelta | None = timedelta(days=7)
    orphans: Path | None = None
    must_write_once: bool = False


def rules_of(settings: FleetSettings) -> MaintenanceRules:
    return MaintenanceRules(
        retention=retention_policy(settings.retention),
        max_objects=settings.gc_max_objects,
        max_percent=settings.gc_max_percent,
        interval=timedelta(seconds=settings.gc_interval_s) or None,
        audit_within=timedelta(days=settings.audit_days) or None,
        orphans=settings.orphans_dir,
        must_write_once=settings.artifacts_write_once == "required",
    )
