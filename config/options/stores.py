"""Settings of stores that only the fleet uses: databases of single services, vectors, embeddings, Redis."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field


class FleetStoreSettings(BaseModel):
    """Databases of single services, vectors, embeddings, Redis."""

    s3_public_endpoint_url: str | None = Field(
        default=None,
        description="The same object store as agents without credentials reach it, where that is another address.",
    )
    artifacts_write_once: Literal["required", "verified"] = Field(
        default="verified",
        description="Who sees to it that no artifact is ever written over: required, the store itself, or storage does "
        "not start; verified, storage alone where the store does not.",
    )
    storage_database_url: str | None = Field(default=None, description="The same for the storage service alone.")
    glm_database_url: str | None = Field(default=None, description="The same for the global memory alone.")
    qdrant_url: str | None = Field(
        default=None,
        description="Qdrant server that keeps the vectors of memory; default: an index in the data folder.",
    )
    qdrant_api_key: str | None = Field(default=None, repr=False, description="Key of that Qdrant server.")
    vectors_dir: Path | None = Field(
        default=None, description="Folder of the vectors where there is no Qdrant; default: one in the data folder."
    )
    embedding_model: str = Field(
        default="multilingual-e5-small",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_./:@+-]{0,127}$",
        description="Model that makes vectors of texts: this one needs nothing else, others are sentence-transformers' "
        "or the endpoint's; after a change: mindbus glm reindex.",
    )
    embedding_base_url: str | None = Field(
        default=None, description="OpenAI-compatible endpoint for vectors; default: the model runs here."
    )
    embedding_api_key: str | None = Field(default=None, repr=False, description="Key of that endpoint.")
    embedding_dim: int | None = Field(
        default=None, ge=1, le=4096, description="How many numbers a vector of the model has; default: it is asked."
    )
    cache_redis_url: str | None = Field(
        default=None,
        description="Redis for the units that agents have at hand, for these alone: with maxmemory set, volatile-lru "
        "or volatile-lfu; default: the memory of the swm worker.",
    )
    redis_url: str | None = Field(
        default=None,
        description="Another Redis for locks with counters, for histories, which evicts nothing (noeviction); default: "
        "a database each.",
    )
