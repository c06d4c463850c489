"""Conversion between units and rows."""

from collections.abc import Iterable
from typing import Any

from bus_schema.artifacts import ArtifactRef
from bus_schema.embeddings import Embedding
from bus_schema.kem import Kem, KemBody, KemSource
from bus_schema.kem_match import facets
from language.words import stems
from memory.glm.tables import KemRow
from memory.rights import readers_of


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
        embeddings=None if vector is None else Embedding.kept(str(row.model), vector),
        source=None if row.source is None else KemSource.model_validate(row.source),
        created_at=row.created_at,
        updated_at=row.updated_at,
        version=row.version,
    )


def reader_rows(row: KemRow) -> list[dict[str, Any]]:
    """A row per reader."""
    return [{"kem_id": row.id, "reader": reader} for reader in readers_of(row)]


def facet_rows(row: KemRow) -> list[dict[str, Any]]:
    """A row per facet of the metadata."""
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
