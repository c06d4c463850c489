"""What `doctor` looks at where memory is concerned."""

import asyncio
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from memory.embedding.space import EmbeddingSpace
from memory.glm.placement import space_in_use
from memory.glm.service import database_of
from memory.vectors.backends import open_vector_index
from memory.vectors.index import IndexAway
from mindbus.errors import TemporaryFailure
from mindbus.settings import Settings
from mindbus_fleet.cli.finding import Finding

_CHECK = "Vectors of glm"


async def vectors_of_glm(settings: Settings) -> Finding:
    """Whether there is an index of vectors, of the model that the settings name."""
    try:
        space = await _space(settings)
    except (SQLAlchemyError, TemporaryFailure) as trouble:
        return Finding(check=_CHECK, status="warning", detail=f"not looked for: {trouble}")
    if space is None:
        return Finding(check=_CHECK, status="ok", detail="made at the first start")
    if not await _is_there(space, settings):
        detail = "the index does not answer, or is gone: bring it back, or make it anew with `mindbus glm rebuild`"
        return Finding(check=_CHECK, status="failed", detail=detail)
    if space.model != settings.embedding_model:
        detail = f"of {space.model}, not of {settings.embedding_model}: `mindbus glm reindex` goes over to it"
        return Finding(check=_CHECK, status="warning", detail=detail)
    return Finding(check=_CHECK, status="ok", detail=f"of {space.model}, {space.dim} numbers each")


async def _space(settings: Settings) -> EmbeddingSpace | None:
    database = database_of(settings)
    try:
        if database.is_sqlite and not await asyncio.to_thread(Path(database.url.database or "").exists):
            return None
        return await space_in_use(database)
    finally:
        await database.dispose()


async def _is_there(space: EmbeddingSpace, settings: Settings) -> bool:
    index = open_vector_index(settings, "glm", space)
    try:
        return await index.exists()
    except IndexAway:
        return False
    finally:
        await index.close()
