"""The space that memory is in, as the database knows it."""

from dataclasses import dataclass

from sqlalchemy import select

from memory.embedding.embedder import Embedder
from memory.embedding.errors import EmbedderFailure
from memory.embedding.selection import configured_embedder
from memory.embedding.space import EmbeddingSpace
from memory.glm.tables import SpaceRow
from mindbus.logs import logger
from mindbus.settings import Settings
from mindbus.sql.database import Database

_ONLY = 1


async def space_in_use(database: Database) -> EmbeddingSpace | None:
    """Where memory has gone over to; none if it never has, so that the settings say it. Raises DatabaseAway."""
    async with database.reading() as session:
        row = await session.scalar(select(SpaceRow))
    return None if row is None else EmbeddingSpace(row.model, row.dim)


def row_of(space: EmbeddingSpace) -> SpaceRow:
    """To be merged: there is one."""
    return SpaceRow(number=_ONLY, model=space.model, dim=space.dim)


@dataclass(frozen=True, slots=True)
class Placement:
    """Without an embedder, texts are found by their words."""

    space: EmbeddingSpace
    embedder: Embedder | None


async def placement_of(database: Database, settings: Settings) -> Placement:
    """The settings say where memory begins; from then on it stays there until it is told to go over to another model.

    Raises EmbedderFailure where memory has no space yet, so that none can be found out.
    """
    known = await space_in_use(database)
    if known is not None and known.model != settings.embedding_model:
        logger().warning("memory is of another model: mindbus glm reindex", model=known.model)
    space = known or _given(settings)
    try:
        embedder = await configured_embedder(settings, space)
    except EmbedderFailure as failure:
        if space is None:
            raise
        logger().warning("texts are found by their words alone", reason=str(failure))
        return await _settled(database, Placement(space, None), known)
    if space is not None and embedder.space != space:
        logger().warning("texts are found by their words alone", reason=f"the model makes {embedder.space}")
        await embedder.close()
        return await _settled(database, Placement(space, None), known)
    return await _settled(database, Placement(embedder.space, embedder), known)


async def settled_space(database: Database, settings: Settings) -> EmbeddingSpace:
    """The space alone. Raises EmbedderFailure where it cannot be found out."""
    known = await space_in_use(database)
    if known is not None:
        return known
    place = await placement_of(database, settings)
    if place.embedder is not None:
        await place.embedder.close()
    return place.space


def _given(settings: Settings) -> EmbeddingSpace | None:
    return None if settings.embedding_dim is None else EmbeddingSpace(settings.embedding_model, settings.embedding_dim)


async def _settled(database: Database, place: Placement, known: EmbeddingSpace | None) -> Placement:
    if known is None:
        async with database.transaction() as session:
            await session.merge(row_of(place.space))
    return place
