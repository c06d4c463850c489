"""Tables of storage."""

from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    ForeignKey,
    Index,
    Integer,
    String,
    Text,
    UniqueConstraint,
    false,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from bus_schema.messages import Event
from mindbus.sql.tables import Utc, add_inbox_tables, named_metadata

MIGRATIONS = Path(__file__).parent / "migrations" / "storage"

PINNED, LIVE, DELETING, GONE = "pinned", "live", "deleting", "gone"


def _where(condition: str) -> dict[str, Any]:
    return {f"{dialect}_where": text(condition) for dialect in ("sqlite", "postgresql")}


_UNEXPIRED = _where("expired_at IS NULL")
# In these words in every query: SQLAlchemy's own for SQLite, `is_failure = 1`, would not find the index.
FAILED = "is_failure"


def _shown_to(visibility: str) -> Index:
    name = f"ix_artifact_manifests_{visibility}_position"
    return Index(name, "position", **_where(f"visibility = '{visibility}' AND expired_at IS NULL"))


class StorageBase(DeclarativeBase):
    metadata = named_metadata()


class ManifestRow(StorageBase):
    """A committed manifest, inserted once: the artifact exists because of this row.

    Only its expiry and the erasure of its owner change it; the id stays, so that it is never reused, as does its place
    in lineages. `position` counts commits, `logical_id` is the id of version 1.
    """

    __tablename__ = "artifact_manifests"
    __table_args__ = (
        UniqueConstraint("logical_id", "version"),
        # Indexes of searches, in order of commit.
        _shown_to("public"),
        _shown_to("trace"),
        Index(None, "trace_id", "visibility", "position", **_UNEXPIRED),
        Index(None, "owner", "position", **_UNEXPIRED),
        Index(None, "step_id", "position", **_UNEXPIRED),
        Index(None, "artifact_type", "position", **_UNEXPIRED),
        Index(None, "sha256", "generation"),
        Index(None, "retention_until", **_UNEXPIRED),
        Index(None, "artifact_type", "committed_at", **_UNEXPIRED),
    )
    id: Mapped[str] = mapped_column(String(80), primary_key=True)
    position: Mapped[int] = mapped_column(BigInteger, unique=True)
    logical_id: Mapped[str] = mapped_column(String(80))
    version: Mapped[int] = mapped_column(Integer)
    # Unique: a version has one successor, so a history is linear.
    supersedes: Mapped[str | None] = mapped_column(ForeignKey("artifact_manifests.id"), unique=True)
    trace_id: Mapped[str] = mapped_column(String(128))
    step_id: Mapped[str | None] = mapped_column(String(64))
    created_by: Mapped[str] = mapped_column(String(160))
    created_at: Mapped[datetime] = mapped_column(Utc)
    artifact_type: Mapped[str] = mapped_column(String(63))
    content_type: Mapped[str] = mapped_column(String(127))
    sha256: Mapped[str] = mapped_column(String(64))
    generation: Mapped[int] = mapped_column(Integer)
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    retention: Mapped[str] = mapped_column(String(16))
    retention_until: Mapped[datetime | None] = mapped_column(Utc)
    owner: Mapped[str] = mapped_column(String(96))
    visibility: Mapped[str] = mapped_column(String(16))
    context: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True).with_variant(JSONB, "postgresql"))
    committed_at: Mapped[datetime] = mapped_column(Utc)
    expired_at: Mapped[datetime | None] = mapped_column(Utc)


class InputRow(StorageBase):
    """An edge of the provenance graph: `input_id` went into `artifact_id`."""

    __tablename__ = "artifact_inputs"
    artifact_id: Mapped[str] = mapped_column(ForeignKey("artifact_manifests.id"), primary_key=True)
    input_id: Mapped[str] = mapped_column(ForeignKey("artifact_manifests.id"), primary_key=True, index=True)


class BlobRow(StorageBase):
    """One content, by digest: the row is the lock on its bytes, its generation part of their key.

    The row outlives the bytes, so that no generation is used twice: a process that resumes late with an old key can
    harm nothing that a manifest points at. Without a pack, the bytes are a file of their own.
    """

    __tablename__ = "blobs"
    __table_args__ = (CheckConstraint(f"state IN ('{PINNED}', '{LIVE}', '{DELETING}', '{GONE}')", name="state"),)
    sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    generation: Mapped[int] = mapped_column(Integer)
    state: Mapped[str] = mapped_column(String(16))
    size_bytes: Mapped[int | None] = mapped_column(BigInteger)
    pinned_until: Mapped[datetime | None] = mapped_column(Utc, index=True)
    condemned_at: Mapped[datetime | None] = mapped_column(Utc)
    pack: Mapped[str | None] = mapped_column(String(80))
    pack_offset: Mapped[int | None] = mapped_column(BigInteger)


class TraceRow(StorageBase):
    """A trace: its artifacts are kept while it runs, then as long as its retention says."""

    __tablename__ = "traces"
    trace_id: Mapped[str] = mapped_column(String(128), primary_key=True)
    retention: Mapped[str | None] = mapped_column(String(16))
    closed_at: Mapped[datetime | None] = mapped_column(Utc)
    kept_until: Mapped[datetime | None] = mapped_column(Utc, index=True)


class TraceMemberRow(StorageBase):
    """An owner that takes part in a trace; a trace with any such row has a member list."""

    __tablename__ = "trace_members"
    trace_id: Mapped[str] = mapped_column(String(128), primary_key=True)
    member: Mapped[str] = mapped_column(String(96), primary_key=True, index=True)


class SpentUploadRow(StorageBase):
    """A staged file whose artifact is committed, to be removed."""

    __tablename__ = "spent_uploads"
    upload_key: Mapped[str] = mapped_column(String(256), primary_key=True)
    artifact_id: Mapped[str] = mapped_column(String(80))
    spent_at: Mapped[datetime] = mapped_column(Utc)


class SequenceRow(StorageBase):
    """A counter in order of commit: its row stays locked until the transaction that incremented it ends."""

    __tablename__ = "counters"
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[int] = mapped_column(BigInteger)


class CreationRangeRow(StorageBase):
    """Earliest and latest time of creation of the artifacts of one range of positions."""

    __tablename__ = "creation_spans"
    stretch: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    earliest: Mapped[datetime] = mapped_column(Utc)
    latest: Mapped[datetime] = mapped_column(Utc)


inbox_tables = add_inbox_tables(StorageBase.metadata)


JSON_VALUE = JSON(none_as_null=True).with_variant(JSONB, "postgresql")


class DialogueRow(StorageBase):
    """One user's dialogue: its row is the lock under which messages get their positions.

    The messages after `fragmented_position` are its buffer.
    """

    __tablename__ = "dialogues"
    user_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    last_position: Mapped[int] = mapped_column(BigInteger)
    fragmented_position: Mapped[int] = mapped_column(BigInteger)
    last_activity: Mapped[datetime] = mapped_column(Utc, index=True)


class DialogueMessageRow(StorageBase):
    """A message, at its position in the dialogue."""

    __tablename__ = "dialogue_messages"
    __table_args__ = (UniqueConstraint("message_id"), Index(None, "user_id", "time"))
    user_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    position: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    message_id: Mapped[str] = mapped_column(String(80))
    role: Mapped[str] = mapped_column(String(16))
    kind: Mapped[str] = mapped_column(String(16))
    content: Mapped[str | None] = mapped_column(Text)
    ref: Mapped[dict[str, Any] | None] = mapped_column(JSON_VALUE)
    time: Mapped[datetime] = mapped_column(Utc)
    kem_ids: Mapped[list[str] | None] = mapped_column(JSON_VALUE)
    episodes: Mapped[list[dict[str, Any]] | None] = mapped_column(JSON_VALUE)
    memory: Mapped[str | None] = mapped_column(String(8))
    attachments: Mapped[list[dict[str, Any]] | None] = mapped_column(JSON_VALUE)
    model_use: Mapped[dict[str, Any] | None] = mapped_column(JSON_VALUE)
    search_id: Mapped[str | None] = mapped_column(String(69))
    rating: Mapped[str | None] = mapped_column(String(16))


class FragmentRow(StorageBase):
    """A range of messages of a dialogue that has become a fragment."""

    __tablename__ = "dialogue_fragments"
    __table_args__ = (UniqueConstraint("user_id", "first_position"),)
    fragment_id: Mapped[str] = mapped_column(String(80), primary_key=True)
    user_id: Mapped[str] = mapped_column(String(64))
    first_position: Mapped[int] = mapped_column(BigInteger)
    last_position: Mapped[int] = mapped_column(BigInteger)
    started_at: Mapped[datetime] = mapped_column(Utc)
    ended_at: Mapped[datetime] = mapped_column(Utc)
    reason: Mapped[str] = mapped_column(String(16))
    ref: Mapped[dict[str, Any] | None] = mapped_column(JSON_VALUE)


class TimelineRow(StorageBase):
    """An event of the bus; `sequence` is the order in which the timeline received it."""

    __tablename__ = "timeline"
    __table_args__ = (
        UniqueConstraint("event_id"),
        Index(None, "user_id", "sequence"),
        Index(None, "trace_id", "sequence"),
        Index(None, "topic", "sequence"),
        # All that is counted, so that no envelope is read for it.
        Index("ix_timeline_buckets", "time", "service", "topic", "is_failure", "user_id", "trace_id", "sequence"),
        Index("ix_timeline_failures", "sequence", **_where(FAILED)),
    )
    sequence: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    # SQLite enforces no length, so its column is that of the first release: a table of events is not copied for it.
    event_id: Mapped[str] = mapped_column(String(128).with_variant(String(80), "sqlite"))
    name: Mapped[str] = mapped_column(String(128))
    topic: Mapped[str] = mapped_column(String(64))
    time: Mapped[datetime] = mapped_column(Utc)
    user_id: Mapped[str | None] = mapped_column(String(64))
    trace_id: Mapped[str | None] = mapped_column(String(128))
    service: Mapped[str] = mapped_column(String(64), server_default=text("''"))
    is_failure: Mapped[bool] = mapped_column(Boolean, server_default=false())
    envelope: Mapped[dict[str, Any]] = mapped_column(JSON_VALUE)


class AgentDatumRow(StorageBase):
    """A value that an agent keeps between messages."""

    __tablename__ = "agent_data"
    agent: Mapped[str] = mapped_column(String(64), primary_key=True)
    namespace: Mapped[str] = mapped_column(String(64), primary_key=True)
    key: Mapped[str] = mapped_column(String(256), primary_key=True)
    value: Mapped[Any] = mapped_column(JSON_VALUE)
    version: Mapped[int] = mapped_column(BigInteger)
    updated_at: Mapped[datetime] = mapped_column(Utc)


class RemovalRow(StorageBase):
    """A file to be moved to the orphans, or deleted where `target` is empty."""

    __tablename__ = "removals"
    key: Mapped[str] = mapped_column(Text, primary_key=True)
    target: Mapped[str] = mapped_column(Text)
    reason: Mapped[str] = mapped_column(String(16))
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str | None] = mapped_column(String(64))
    generation: Mapped[int | None] = mapped_column(Integer)
    decided_at: Mapped[datetime] = mapped_column(Utc)


class NotificationRow(StorageBase):
    """An event whose cause is committed, until it is published."""

    __tablename__ = "notices"
    # SQLite would reuse deleted numbers.
    __table_args__ = ({"sqlite_autoincrement": True},)
    seq: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    type: Mapped[str] = mapped_column(String(128))
    trace_id: Mapped[str | None] = mapped_column(String(128))
    step_id: Mapped[str | None] = mapped_column(String(64))
    data: Mapped[dict[str, Any]] = mapped_column(JSON)

    @classmethod
    def of(cls, event: Event, trace_id: str | None = None, step_id: str | None = None) -> "NotificationRow":
        """The row of an event, to be inserted together with its cause."""
        return cls(type=event.wire.type, trace_id=trace_id, step_id=step_id, data=event.model_dump(mode="json"))


class ProgressRow(StorageBase):
    """Progress of a recurring task, with its time."""

    __tablename__ = "care_marks"
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[str] = mapped_column(String(256))
    noted_at: Mapped[datetime] = mapped_column(Utc)
