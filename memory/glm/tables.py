"""Tables of the global memory (spec 000 §4.1.1), and the conversion between rows and KEMs."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from pydantic import JsonValue
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from bus_schema.artifacts import ArtifactRef
from bus_schema.embeddings import Embedding
from bus_schema.kem import Kem, KemBody, KemSource
from bus_schema.kem_match import facets
from language.words import stems
from mindbus.sql.tables import Utc, add_inbox_tables, named_metadata

MIGRATIONS = Path(__file__).parents[1] / "migrations" / "glm"
# Spec 000 §4.1.1: a power cut may lose the last transactions, a crash of the process loses none.
PRAGMAS: dict[str, str | int] = {
    "journal_mode": "WAL",
    "synchronous": "NORMAL",
    "foreign_keys": "ON",
    "busy_timeout": 7500,
}

# Units without an embedding.
_LACKS_VECTOR = sa.text("model IS NULL AND content IS NOT NULL")
_EXPIRES = sa.text("expires_at IS NOT NULL")
_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_JSON = sa.JSON(none_as_null=True).with_variant(JSONB, "postgresql")


class GlmBase(DeclarativeBase):
    metadata = named_metadata()


class KemRow(GlmBase):
    """Unit with its vector: the vector index can be rebuilt from these rows at any time."""

    __tablename__ = "kems"
    __table_args__ = (
        sa.Index(None, "created_at", "id"),
        sa.Index(None, "updated_at", "id"),
        sa.Index(None, "owner"),
        sa.Index("ix_kems_expiring", "expires_at", sqlite_where=_EXPIRES, postgresql_where=_EXPIRES),
        sa.Index("ix_kems_wanting", "id", sqlite_where=_LACKS_VECTOR, postgresql_where=_LACKS_VECTOR),
    )
    id: Mapped[str] = mapped_column(sa.String(128), primary_key=True)
    owner: Mapped[str] = mapped_column(sa.String(96))
    visibility: Mapped[str] = mapped_column(sa.String(16))
    readers: Mapped[list[str]] = mapped_column(_JSON)
    writers: Mapped[list[str]] = mapped_column(_JSON)
    content_type: Mapped[str] = mapped_column(sa.String(127))
    content: Mapped[bytes | None] = mapped_column(sa.LargeBinary)
    ref: Mapped[dict[str, Any] | None] = mapped_column(_JSON)
    # The name `metadata` is taken on a mapped class.
    facts: Mapped[dict[str, JsonValue]] = mapped_column("metadata", _JSON)
    source: Mapped[dict[str, Any] | None] = mapped_column(_JSON)
    model: Mapped[str | None] = mapped_column(sa.String(128))
    vector: Mapped[bytes | None] = mapped_column(sa.LargeBinary)
    created_at: Mapped[datetime] = mapped_column(Utc)
    updated_at: Mapped[datetime] = mapped_column(Utc)
    version: Mapped[int] = mapped_column(sa.BigInteger)
    valid_from: Mapped[datetime | None] = mapped_column(Utc)
    valid_to: Mapped[datetime | None] = mapped_column(Utc)
    supersedes: Mapped[list[str] | None] = mapped_column(_JSON)
    superseded_by: Mapped[str | None] = mapped_column(sa.String(128))
    expires_at: Mapped[datetime | None] = mapped_column(Utc)
    end_learnt_at: Mapped[datetime | None] = mapped_column(Utc)


class ReaderRow(GlmBase):
    """Reader, other than the owner, of a unit that is not public."""

    __tablename__ = "kem_readers"
    __table_args__ = (sa.Index(None, "reader", "kem_id"),)
    kem_id: Mapped[str] = mapped_column(sa.ForeignKey("kems.id", ondelete="CASCADE"), primary_key=True)
    reader: Mapped[str] = mapped_column(sa.String(96), primary_key=True)


class FacetRow(GlmBase):
    """Value in the metadata of a unit, in the column of its type."""

    __tablename__ = "kem_facets"
    __table_args__ = (sa.Index(None, "key", "text", "kem_id"), sa.Index(None, "key", "number", "kem_id"))
    kem_id: Mapped[str] = mapped_column(sa.ForeignKey("kems.id", ondelete="CASCADE"), primary_key=True)
    ordinal: Mapped[int] = mapped_column(sa.Integer, primary_key=True, autoincrement=False)
    key: Mapped[str] = mapped_column(sa.String(64))
    text: Mapped[str | None] = mapped_column(sa.String(256))
    number: Mapped[float | None] = mapped_column(sa.Double)
    flag: Mapped[bool | None] = mapped_column(sa.Boolean)


class VectorWriteRow(GlmBase):
    """Outbox of the vector index: a unit has changed; what is to be written is read from its row."""

    __tablename__ = "vector_writes"
    # Without AUTOINCREMENT SQLite reuses numbers, and a change during a write could pass for the one written.
    __table_args__ = ({"sqlite_autoincrement": True},)
    seq: Mapped[int] = mapped_column(_NUMBER, primary_key=True, autoincrement=True)
    kem_id: Mapped[str] = mapped_column(sa.String(128))


class TextRow(GlmBase):
    """Stems of the content of a unit, in order; each database has a full-text index over these rows."""

    __tablename__ = "kem_texts"
    __table_args__ = (sa.Index(None, "kem_id", unique=True), {"sqlite_autoincrement": True})
    seq: Mapped[int] = mapped_column(_NUMBER, primary_key=True, autoincrement=True)
    kem_id: Mapped[str] = mapped_column(sa.ForeignKey("kems.id", ondelete="CASCADE"))
    stems: Mapped[str] = mapped_column(sa.Text)


class FoundRow(GlmBase):
    """When a search has last found a unit; written where not all units are kept."""

    __tablename__ = "kem_found"
    kem_id: Mapped[str] = mapped_column(sa.String(128), sa.ForeignKey("kems.id", ondelete="CASCADE"), primary_key=True)
    found_at: Mapped[datetime] = mapped_column(Utc)


class NextVectorRow(GlmBase):
    """Vector of the next model for a unit, used at the end of the migration unless the unit has changed."""

    __tablename__ = "kem_next_vectors"
    kem_id: Mapped[str] = mapped_column(sa.ForeignKey("kems.id", ondelete="CASCADE"), primary_key=True)
    version: Mapped[int] = mapped_column(sa.BigInteger)
    model: Mapped[str] = mapped_column(sa.String(128))
    vector: Mapped[bytes | None] = mapped_column(sa.LargeBinary)


class SpaceRow(GlmBase):
    """The embedding space in use: one row."""

    __tablename__ = "spaces"
    number: Mapped[int] = mapped_column(sa.Integer, primary_key=True, autoincrement=False)
    model: Mapped[str] = mapped_column(sa.String(128))
    dim: Mapped[int] = mapped_column(sa.Integer)


inbox_tables = add_inbox_tables(GlmBase.metadata)


def body_columns(kem: KemBody) -> dict[str, Any]:
    """Columns of a draft or unit, without id, owner, times and version."""
    vector = kem.embeddings
    return {
        "visibility": kem.visibility,
        "readers": list(kem.readers),
        "writers": list(kem.writers),
        "content_type": kem.content_type,
        "content": None if kem.content is None else kem.content.encode(),
        "ref": None if kem.ref is None else kem.ref.model_dump(mode="json"),
        "facts": kem.metadata,
        "source": None if kem.source is None else kem.source.model_dump(mode="json"),
        "model": None if vector is None else vector.model,
        "vector": None if vector is None else vector.raw,
        "valid_from": kem.valid_from,
        "valid_to": kem.valid_to,
        "supersedes": list(kem.supersedes) or None,
        "expires_at": kem.expires_at,
    }


def as_kem(row: KemRow, *, has_vector: bool = True) -> Kem:
    """The unit of a row, unvalidated since it was validated when stored; optionally without its vector."""
    vector = row.vector if has_vector else None
    return Kem.model_construct(
        id=row.id,
        owner=row.owner,
        visibility=row.visibility,  # type: ignore[arg-type]  # a plain word in the row
        readers=tuple(row.readers),
        writers=tuple(row.writers),
        content_type=row.content_type,
        content=None if row.content is None else row.content.decode(),
        ref=None if row.ref is None else ArtifactRef.model_validate(row.ref),
        metadata=row.facts,
        embeddings=None if vector is None else Embedding.from_bytes(str(row.model), vector),
        source=None if row.source is None else KemSource.model_validate(row.source),
        created_at=row.created_at,
        updated_at=row.updated_at,
        version=row.version,
        valid_from=row.valid_from,
        valid_to=row.valid_to,
        supersedes=tuple(row.supersedes or ()),
        superseded_by=row.superseded_by,
        expires_at=row.expires_at,
        end_learnt_at=row.end_learnt_at,
    )


def facet_rows(row: KemRow) -> list[dict[str, Any]]:
    """Rows of what filters look at in the metadata of a unit."""
    return [
        {
            "kem_id": row.id,
            "ordinal": ordinal,
            "key": key,
            "text": value if isinstance(value, str) else None,
            "number": value if not isinstance(value, bool | str) else None,
            "flag": value if isinstance(value, bool) else None,
        }
        for ordinal, (key, value) in enumerate(facets(row.facts))
    ]


def text_rows(rows: Iterable[KemRow]) -> list[dict[str, Any]]:
    """A row of stems per unit that has words; slow for many long texts, so run it in a thread."""
    texts = ((row.id, " ".join(stems(row.content.decode()))) for row in rows if row.content is not None)
    return [{"kem_id": kem_id, "stems": text} for kem_id, text in texts if text]
