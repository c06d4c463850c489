"""The space that memory is in, with what embeds for it."""

from dataclasses import dataclass

from memory.embedding.configured import configured_embedder
from memory.embedding.embedder import Embedder
from memory.embedding.failures import EmbedderFailure
from memory.embedding.space import EmbeddingSpace
from memory.glm.spaces import row_of, space_in_use
from mindbus.logs import logger
from mindbus.settings import Settings
from mindbus.sql.database import Database


@dataclass(frozen=True, slots=True)
class Place:
    """Without an embedder, texts are found by their words."""

    space: EmbeddingSpace
    embedder: Embedder | None


async def place_of(database: Database, settings: Settings) -> Place:
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
        return await _settled(database, Place(space, None), known)
    if space is not None and embedder.space != space:
        logger().warning("texts are found by their words alone", reason=f"the model makes {embedder.space}")
        await embedder.close()
        return await _settled(database, Place(space, None), known)
    return await _settled(database, Place(embedder.space, embedder), known)


async def settled_space(database: Database, settings: Settings) -> EmbeddingSpace:
    """The space alone. Raises EmbedderFailure where it cannot be found out."""
    known = await space_in_use(database)
    if known is not None:
        return known
    place = await place_of(database, settings)
    if place.embedder is not None:
        await place.embedder.close()
    return place.space


def _given(settings: Settings) -> EmbeddingSpace | None:
    return None if settings.embedding_dim is None else EmbeddingSpace(settings.embedding_model, settings.embedding_dim)


async def _settled(database: Database, place: Place, known: EmbeddingSpace | None) -> Place:
    if known is None:
        async with database.transaction() as session:
            await session.merge(row_of(place.space))
    return place
