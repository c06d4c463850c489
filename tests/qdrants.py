"""A Qdrant server for tests, where MINDBUS_TEST_QDRANT_URL=http://host:port names one."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

from qdrant_client import AsyncQdrantClient

URL = os.environ.get("MINDBUS_TEST_QDRANT_URL")


def client() -> AsyncQdrantClient:
    """Of the server; MINDBUS_TEST_QDRANT_API_KEY is its key, if it wants one."""
    return AsyncQdrantClient(url=URL, api_key=os.environ.get("MINDBUS_TEST_QDRANT_API_KEY"), check_compatibility=False)


@asynccontextmanager
async def own_name() -> AsyncIterator[str]:
    """With which the collections of one test begin; none is left behind."""
    name = f"mindbus-test-{uuid4().hex}"
    yield name
    server = client()
    for collection in (await server.get_collections()).collections:
        if collection.name.startswith(name):
            await server.delete_collection(collection.name)
    await server.close()
