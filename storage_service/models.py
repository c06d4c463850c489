"""The tables of storage."""

from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Index,
    Integer,
    String,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from mindbus.sql.tables import Utc, add_inbox_tables, named_metadata

MIGRATIONS = Path(__file__).parent / "migrations" / "storage"

PINNED, LIVE, DELETING, GONE = "pinned", "live", "deleting", "gone"


def _where(condition: str) -> dict[str, Any]:
    return {f"{dialect}_where": text(condition) for dialect in ("sqlite", "postgresql")}


_UNEXPIRED = _where("expired_at IS NULL")


def _shown_to(visibility: str) -> Index:
    name = f"ix_artifact_manifests_{visibility}_position"
    return Index(name, "position", **_where(f"visibility = '{visibility}' AND expired_at IS NULL"))


class Base(DeclarativeBase):
    """All of storage's tables."""

    metadata = named_metadata()


class ManifestRow(Base):
    """A committed manifest: the artifact exists because of this row; it is inserted once, then changed never.

    Only that it expires, or that its maker is forgotten, is written into it: it keeps its id, so that nothing else ever
    gets it, as well as its place in lineages. `position` counts commits, `logical_id` is the id of version 1.
    """

    __tablename__ = "artifact_manifests"
    __table_args__ = (
        UniqueConstraint("logical_id", "version"),
        # What a search goes along, in order of commit.
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
    # Unique: a thing has one next version, so its history is a line.
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


class InputRow(Base):
    """An edge of the provenance graph: `input_id` went into `artifact_id`."""

    __tablename__ = "artifact_inputs"
    artifact_id: Mapped[str] = mapped_column(ForeignKey("artifact_manifests.id"), primary_key=True)
    input_id: Mapped[str] = mapped_column(ForeignKey("artifact_manifests.id"), primary_key=True, index=True)


class BlobRow(Base):
    """One content, by digest: the row is the lock on its bytes, its generation part of their key.

    The row outlives the bytes, so that no generation is ever used twice: whoever wakes late with an old key can
    harm nothing that a manifest points at.
    """

    __tablename__ = "blobs"
    __table_args__ = (CheckConstraint(f"state IN ('{PINNED}', '{LIVE}', '{DELETING}', '{GONE}')", name="state"),)
    sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    generation: Mapped[int] = mapped_column(Integer)
    state: Mapped[str] = mapped_column(String(16))
    size_bytes: Mapped[int | None] = mapped_column(BigInteger)
    pinned_until: Mapped[datetime | None] = mapped_column(Utc, index=True)
    condemned_at: Mapped[datetime | None] = mapped_column(Utc)


class TraceRow(Base):
    """A trace that somebody opened: what it made is kept while it runs, then as long as its retention says."""

    __tablename__ = "traces"
    trace_id: Mapped[str] = mapped_column(String(128), primary_key=True)
    retention: Mapped[str | None] = mapped_column(String(16))
    closed_at: Mapped[datetime | None] = mapped_column(Utc)
    kept_until: Mapped[datetime | None] = mapped_column(Utc, index=True)


class TraceMemberRow(Base):
    """An owner that takes part in a trace; a trace with any such row has a list."""

    __tablename__ = "trace_members"
    trace_id: Mapped[str] = mapped_column(String(128), primary_key=True)
    member: Mapped[str] = mapped_column(String(96), primary_key=True, index=True)


class SpentUploadRow(Base):
    """A staged file whose artifact is committed: it only waits to be removed."""

    __tablename__ = "spent_uploads"
    upload_key: Mapped[str] = mapped_column(String(256), primary_key=True)
    artifact_id: Mapped[str] = mapped_column(String(80))
    spent_at: Mapped[datetime] = mapped_column(Utc)


class CounterRow(Base):
    """A number that grows in order of commit: its row stays locked until the transaction that drew from it ends."""

    __tablename__ = "counters"
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[int] = mapped_column(BigInteger)


class SpanRow(Base):
    """When the artifacts of one stretch of commits were made, the earliest as well as the latest of them."""

    __tablename__ = "creation_spans"
    stretch: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    earliest: Mapped[datetime] = mapped_column(Utc)
    latest: Mapped[datetime] = mapped_column(Utc)


inbox_tables = add_inbox_tables(Base.metadata)
