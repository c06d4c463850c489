"""Maintenance of the store: garbage collection, audit, rebuild, statistics."""

from typing import Literal

from pydantic import AwareDatetime, Field

from bus_schema.artifacts import ArtifactId, ArtifactRef, ArtifactType, StepId, TraceId
from bus_schema.identities import Identity
from bus_schema.messages import Command, Event, Query, Value

ExpiryReason = Literal["own", "type", "process"]
OrphanReason = Literal["unused", "outdated", "unknown", "unregistered"]


class Example(Value):
    """A sample item with the reason why it is listed."""

    key: str
    size_bytes: int
    reason: str


class Tally(Value):
    """Count and size of a kind, with the first few items."""

    count: int = 0
    size_bytes: int = 0
    examples: tuple[Example, ...] = ()


class GarbageReport(Value):
    """Report of a garbage collection, or of its dry run.

    `expired` artifacts can no longer be read; `unused` contents no longer have an artifact, `unknown` objects never had
    one that the database knows, `unregistered` uploads never became one: these went to the orphans. `deleted` orphans
    and `claims` had outlived their time and are gone for good. `pending` things could not be moved now; a later run
    tries again, as this one did with those it `resumed`. `refusal` is why the real run would be refused; if
    `is_complete` is false, there is more than one run takes: run it again.
    """

    dry_run: bool
    expired: Tally = Tally()
    unused: Tally = Tally()
    unknown: Tally = Tally()
    unregistered: Tally = Tally()
    deleted: Tally = Tally()
    claims: Tally = Tally()
    resumed: int = 0
    pending: int = 0
    temporary: int = 0
    artifacts: int = 0
    objects: int = 0
    refusal: str | None = None
    is_complete: bool = True


class CollectGarbage(Command[GarbageReport], domain="storage", action="collect_garbage"):
    """Expire what is due, move unreferenced objects to the orphans, delete orphans after seven days.

    A run that would remove more than the settings allow is refused, with the numbers; `max_objects` allows this run to
    remove that many.
    """

    dry_run: bool = False
    max_objects: int | None = Field(default=None, ge=0)


class Trouble(Value):
    """A problem with the bytes of an artifact."""

    artifact_id: ArtifactId
    key: str
    problem: str


class AuditPage(Value):
    """Result of one page of an audit; `restored` bytes were found among the orphans or under another key."""

    checked: int
    hashed_bytes: int = 0
    total: int
    missing: tuple[Trouble, ...] = ()
    damaged: tuple[Trouble, ...] = ()
    restored: tuple[Trouble, ...] = ()
    copies_written: int = 0
    next_cursor: str | None = None


class Audit(Command[AuditPage], domain="storage", action="audit"):
    """Check a page of artifacts: bytes exist, size matches and, with `rehash`, the digest matches.

    Missing bytes are put back if they are found; no manifest is ever removed.
    """

    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=100, ge=1, le=1000)
    rehash: bool = True


class Lost(Value):
    """An artifact that could not be restored, with the reason."""

    key: str
    reason: str


class RebuildPage(Value):
    """Result of one page of a rebuild; `recovered` artifacts had bytes but no copy of their manifest."""

    dry_run: bool
    looked_at: int
    present: int = 0
    restored: int = 0
    recovered: int = 0
    lost: tuple[Lost, ...] = ()
    done: int
    total: int
    next_cursor: str | None = None


class Rebuild(Command[RebuildPage], domain="storage", action="rebuild"):
    """Restore a page of manifests that the store has and the database lacks; `deep` reads their bytes again."""

    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=500, ge=1, le=5000)
    dry_run: bool = False
    deep: bool = False


class Amount(Value):
    """Number and total size."""

    count: int = 0
    size_bytes: int = 0


class StorageStats(Value):
    """Statistics of the store; `by_state` counts contents, the others artifacts, except staging and orphans.

    `kept_days` says how many days each kind of thing is kept, None for ever.
    """

    artifacts: Amount
    expired: Amount
    by_state: dict[str, Amount]
    by_type: dict[str, Amount]
    by_owner: dict[str, Amount]
    staging: Amount
    orphans: Amount
    oldest_staged: AwareDatetime | None = None
    spent_uploads: int = 0
    removals: int = 0
    notices: int = 0
    open_traces: int = 0
    collected_at: AwareDatetime | None = None
    audited_at: AwareDatetime | None = None
    events: int = 0
    oldest_event: AwareDatetime | None = None
    kept_days: dict[str, float | None] = Field(default={})


class GetStorageStats(Query[StorageStats], domain="storage", action="stats"):
    """Read the statistics, with the largest types and owners."""


class ArtifactExpired(Event, topic="artifact", name="expired"):
    """An artifact has expired: it can no longer be read; its bytes go unless another artifact shares them."""

    artifact: ArtifactRef
    trace_id: TraceId
    step_id: StepId | None = None
    artifact_type: ArtifactType
    owner: Identity
    reason: ExpiryReason


class ArtifactOrphaned(Event, topic="artifact", name="orphaned"):
    """A file without an artifact was moved to the orphans, where it stays for seven days."""

    key: str
    orphan_key: str
    size_bytes: int
    reason: OrphanReason
