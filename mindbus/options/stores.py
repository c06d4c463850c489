"""Settings of where state lies."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field


class StoreSettings(BaseModel):
    """Where files, rows, vectors lie."""

    data_dir: Path = Field(default=Path(".data"), description="Folder of all local state.")
    amqp_url: str | None = Field(default=None, description="RabbitMQ to use; without it `up` starts a private node.")
    management_url: str | None = Field(
        default=None,
        description="Management API of that RabbitMQ, with credentials; guessed where it is usual.",
    )
    artifacts_url: str | None = Field(
        default=None,
        description="Where artifacts and claims lie: file:///folder or s3://bucket/prefix; default: a folder in the "
        "data folder.",
    )
    s3_endpoint_url: str | None = Field(
        default=None, description="Object store to use for s3:// URLs; default: what AWS_ENDPOINT_URL says, or AWS."
    )
    s3_access_key: str | None = Field(
        default=None, repr=False, description="Access key of that object store; default: what AWS_* or its files say."
    )
    s3_secret_key: str | None = Field(default=None, repr=False, description="The secret of that access key.")
    s3_public_endpoint_url: str | None = Field(
        default=None,
        description="The same object store as agents without credentials reach it, where that is another address.",
    )
    artifacts_access: Literal["auto", "direct", "presigned"] = Field(
        default="auto",
        description="How bytes get to the file store and back: direct, or by addresses that storage signs; auto: "
        "direct to a folder, direct to an object store if there are credentials for it, else presigned.",
    )
    artifacts_write_once: Literal["required", "verified"] = Field(
        default="verified",
        description="Who sees to it that no artifact is ever written over: required, the store itself, or storage does "
        "not start; verified, storage alone where the store does not.",
    )
    s3_region: str | None = Field(default=None, description="Region of the bucket; default: what AWS_REGION says.")
    s3_part_bytes: int = Field(
        default=16 * 1024**2,
        ge=5 * 1024**2,
        le=1024**3,
        description="Larger files are sent to an object store in parts of this size.",
    )
    s3_concurrency: int = Field(default=3, ge=1, le=32, description="How many parts of one file are sent at once.")
    database_url: str | None = Field(
        default=None,
        description="SQLAlchemy URL that all services share, a schema each; default: SQLite files.",
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
