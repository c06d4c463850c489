"""What `doctor` looks at where memory is concerned."""

from urllib.parse import urlsplit

from memory.vectors.index import IndexAway
from memory.vectors.opening import index_of, space_of
from mindbus.cli.finding import Finding
from mindbus.settings import Settings


async def vectors_of_glm(settings: Settings) -> Finding:
    """Whether there is an index of vectors, wherever the settings have it."""
    check = "Vectors of glm"
    if settings.qdrant_url is None:
        place = str(settings.vectors_folder)
    else:
        place = f"Qdrant at {urlsplit(settings.qdrant_url).hostname}"
    index = index_of(settings, "glm", space_of(settings))
    try:
        is_there = await index.exists()
    except IndexAway as away:
        return Finding(check=check, status="failed", detail=f"{place}: {away}")
    finally:
        await index.close()
    return Finding(check=check, status="ok", detail=place if is_there else f"{place}: made at the first start")
