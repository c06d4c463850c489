"""The embedding space that the global memory is in, and the embedder for it."""

from dataclasses import dataclass

from sqlalchemy import select

from config.settings import FleetSettings
from memory.embedding.embedder import Embedder
from memory.embedding.errors import EmbedderFailure
from memory.embedding.selection import configured_embedder
from memory.embedding.space import EmbeddingSpace
from memory.glm.tables import SpaceRow
from mindbus.logs import logger
from mindbus.sql.database import Database

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
    """The table's only row, to be merged."""
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
