"""Placement of the global memory: its embedding space, the embedder for it and the vector index."""

import hashlib
from dataclasses import dataclass

from sqlalchemy import select

from config.settings import FleetSettings
from memory.embedding.embedder import Embedder, EmbedderFailure, EmbeddingSpace
from memory.embedding.selection import configured_embedder
from memory.glm.tables import SpaceRow
from memory.vectors.index import VectorIndex
from mindbus.logs import logger
from mindbus.sql.database import Database


def open_vector_index(settings: FleetSettings, service: str, space: EmbeddingSpace) -> VectorIndex:
    """Qdrant if there is a URL, else a file; not opened yet.

    Each model has an index of its own, so that memory can migrate to another model while it goes on answering.
    """
    # Imported here: only one is used, and each takes time to import.
    if settings.qdrant_url is None:
        from memory.vectors.embedded import EmbeddedIndex

        digest = hashlib.sha256(space.model.encode()).hexdigest()[:12]
        return EmbeddedIndex(settings.vectors_folder / f"{service}-{digest}.vectors", space)
    from qdrant_client import AsyncQdrantClient

    from memory.vectors.qdrant import QdrantIndex

    client = AsyncQdrantClient(url=settings.qdrant_url, api_key=settings.qdrant_api_key, check_compatibility=False)
    return QdrantIndex(client, space, name=f"mindbus-{service}")


_ONLY = 1


@dataclass(frozen=True, slots=True)
class Placement:
    """Space and embedder; without an embedder, texts are found by their words alone."""

    space: EmbeddingSpace
    embedder: Embedder | None


async def space_in_use(database: Database) -> EmbeddingSpace | None:
    """Space as the database has it; None before the first start. Raises DatabaseAway."""
    async with database.reading() as session:
        row = await session.scalar(select(SpaceRow))
    return None if row is None else EmbeddingSpace(row.model, row.dim)


def space_row(space: EmbeddingSpace) -> SpaceRow:
    return SpaceRow(number=_ONLY, model=space.model, dim=space.dim)


async def placement_of(database: Database, settings: FleetSettings) -> Placement:
    """The space in use, by default that of the settings, which is recorded; it stays until `mindbus glm reindex`.

    Raises EmbedderFailure if no space is in use yet and the embedder cannot tell its own.
    """
    known = await space_in_use(database)
    if known is not None and known.model != settings.embedding_model:
        logger().warning("memory is of another model: mindbus glm reindex", model=known.model)
    dim = settings.embedding_dim
    space = known or (None if dim is None else EmbeddingSpace(settings.embedding_model, dim))
    placement = await _placement(space, settings)
    if known is None:
        async with database.transaction() as session:
            await session.merge(space_row(placement.space))
    return placement


async def recorded_space(database: Database, settings: FleetSettings) -> EmbeddingSpace:
    """The space alone. Raises EmbedderFailure where it cannot be found out."""
    if (known := await space_in_use(database)) is not None:
        return known
    placement = await placement_of(database, settings)
    if placement.embedder is not None:
        await placement.embedder.close()
    return placement.space


async def _placement(space: EmbeddingSpace | None, settings: FleetSettings) -> Placement:
    try:
        embedder = await configured_embedder(settings, space)
    except EmbedderFailure as error:
        if space is None:
            raise
        logger().warning("texts are found by their words alone", reason=str(error))
        return Placement(space, None)
    if space is not None and embedder.space != space:
        logger().warning("texts are found by their words alone", reason=f"the model makes {embedder.space}")
        await embedder.close()
        return Placement(space, None)
    return Placement(embedder.space, embedder)
