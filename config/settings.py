"""Settings of the whole fleet: the library's, and those of its services and agents."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from bus_schema.artifacts import retention_policy
from bus_schema.history import DEFAULT_CONTEXT_TOKENS, MAX_CONTEXT_TOKENS
from config.gateway_settings import GatewaySettings


class FleetSettings(GatewaySettings):
    """All that an operator can set; docs/reference/settings.md is made from the descriptions."""

    # Databases of single services, vectors, embeddings, Redis.
    s3_public_endpoint_url: str | None = Field(
        default=None,
        description="Address at which agents without credentials reach the object store, if it is another one.",
    )
    artifacts_write_once: Literal["required", "verified"] = Field(
        default="verified",
        description="How overwriting of artifacts is prevented. required: by the store itself, or storage does not "
        "start; verified: by storage alone if the store does not do it.",
    )
    storage_database_url: str | None = Field(default=None, description="SQLAlchemy URL for the storage service alone.")
    glm_database_url: str | None = Field(default=None, description="SQLAlchemy URL for the global memory alone.")
    qdrant_url: str | None = Field(
        default=None,
        description="Qdrant server that keeps the vectors of memory; default: an index in the data folder.",
    )
    qdrant_api_key: str | None = Field(default=None, repr=False, description="API key for that Qdrant server.")
    pgvector: bool = Field(
        default=False,
        description="Keep the vectors of memory in its PostgreSQL, beside the rows, with pgvector 0.8 or later.",
    )
    vectors_dir: Path | None = Field(
        default=None, description="Folder for vectors that no server keeps; default: one in the data folder."
    )
    embedding_model: str = Field(
        default="multilingual-e5-small",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_./:@+-]{0,127}$",
        description="Model that turns texts into vectors. The default needs nothing else; others come from "
        "sentence-transformers (a name, or a folder relative to the current one) or the endpoint. "
        "After a change, run: mindbus glm reindex.",
    )
    embedding_base_url: str | None = Field(
        default=None, description="OpenAI-compatible endpoint for vectors; default: the model runs locally."
    )
    embedding_api_key: str | None = Field(default=None, repr=False, description="API key for that endpoint.")
    embedding_device: str = Field(
        default="cpu", description="Device for a sentence-transformers model: cpu, cuda, cuda:1, mps."
    )
    embedding_backend: Literal["torch", "onnx", "openvino"] = Field(
        default="torch", description="Library that runs a sentence-transformers model."
    )
    embedding_dim: int | None = Field(
        default=None, ge=1, le=4096, description="Number of dimensions per vector; default: the model is asked."
    )
    cache_redis_url: str | None = Field(
        default=None,
        description="Redis for the units in working memory and nothing else, with maxmemory set and volatile-lru or "
        "volatile-lfu; default: the memory of the swm worker.",
    )
    redis_url: str | None = Field(
        default=None,
        description="Another Redis, which evicts nothing (noeviction), for locks with counters and for histories; "
        "default: a database each.",
    )

    quota_bytes: int = Field(
        default=0, ge=0, description="Maximum total size of the fleet's artifacts, in bytes; 0: no limit."
    )
    quota_tokens_per_day: int = Field(
        default=0,
        ge=0,
        description="How many model tokens the fleet may use per day (UTC), no matter who asks; 0: no limit.",
    )

    model_calls_days: int = Field(
        default=30,
        ge=0,
        le=36500,
        description="How many days model calls are kept, with prompt and answer; 0: they are not kept.",
    )
    model_calls_redact: str | None = Field(
        default=None,
        description="Regular expression for what is masked in kept calls, besides secrets, such as "
        "[\\w.+-]+@[\\w.-]+ for e-mail addresses.",
    )

    # Sizes of histories, shared memory and documents; time limits.
    max_history: int = Field(
        default=100, ge=1, le=1000, description="How many of the latest messages of a history are kept."
    )
    chat_window: int = Field(
        default=10,
        ge=1,
        le=1000,
        description="How many messages of a chat history.get returns by default; the assistant's window is counted "
        "in tokens, see MINDBUS_LLM_CONTEXT_TOKENS.",
    )
    subagent_window: int = Field(
        default=50, ge=1, le=1000, description="How many messages of its talk with the master a sub-agent is shown."
    )
    session_log_bytes: int = Field(
        default=1024**2,
        ge=0,
        description="Maximum size of a chat's log file; the latest four files are kept; 0: no such logs.",
    )
    swm_max_bytes: int = Field(
        default=256 * 1024**2, ge=1024**2, description="Maximum size of working memory without Redis."
    )
    swm_eviction: Literal["lru", "lfu"] = Field(
        default="lru",
        description="Unit evicted first when space runs out: the least recently or the least frequently used one.",
    )
    swm_indexed_keys: str = Field(
        default="type,topic,category,source,project_id",
        description="Metadata keys whose text values are indexed, so that a query need not look at every unit in "
        "working memory.",
    )
    swm_ttl_s: float = Field(
        default=604_800, gt=0, description="How long a unit stays in Redis unless somebody publishes it again."
    )
    glm_max_units: int = Field(
        default=0,
        ge=0,
        description="How many units of shared memory are kept per owner. Beyond that, units that no longer hold are "
        "deleted first, then those of the lowest priority, then those not found for the longest time; 0: all are kept.",
    )
    kps_max_bytes: int = Field(
        default=32 * 1024**2, ge=1024, description="Largest document that knowledge processing reads."
    )
    kps_timeout_s: float = Field(default=60, gt=0, description="How long it may take to read a document, in seconds.")
    recall_timeout_s: float = Field(
        default=2,
        ge=0,
        description="How long agents wait for memory before they answer or write, in seconds; 0: memory is not asked.",
    )

    # Long-term memory and its packer.
    lsm_gap_minutes: float = Field(
        default=180, gt=0, description="Length of a silence, in minutes, after which a new episode begins."
    )
    lsm_max_turns: int = Field(default=50, ge=2, le=1000, description="Maximum number of turns in an episode.")
    lsm_max_words: int = Field(
        default=1500, ge=10, description="Number of words that fill an episode: the next turn goes into a new one."
    )
    lsm_half_life_days: float = Field(
        default=14, gt=0, description="Days without access after which an episode has lost half of its recency."
    )
    lsm_half_frequency: float = Field(
        default=5, gt=0, description="Number of accesses that give an episode half of what frequency can give."
    )
    lsm_hot_above: float = Field(
        default=0.7, ge=0, le=1, description="A hot episode whose priority is above this stays hot, however old."
    )
    lsm_warm_above: float = Field(
        default=0.3, ge=0, le=1, description="A warm episode whose priority is above this stays warm, however old."
    )
    lsm_warm_after_days: float = Field(
        default=14, gt=0, description="Days without access after which a hot episode becomes warm."
    )
    lsm_cold_after_days: float = Field(
        default=90, gt=0, description="Days without access after which a warm episode becomes cold."
    )
    lsm_raw_days: float = Field(
        default=0, ge=0, description="Days after which a cold episode's raw turns move to an artifact; 0: never."
    )
    lsm_hot_tokens: int = Field(
        default=24_000, ge=100, description="Limit on hot tokens per chat; beyond it, the oldest episodes become warm."
    )
    lsm_hot_after_accesses: int = Field(default=3, ge=1, description="Accesses that make a warm episode hot again.")
    lsm_anchor_min_priority: float = Field(
        default=0.5, ge=0, le=1, description="Priority that an anchor never falls below."
    )
    lsm_index_mib: int = Field(
        default=1024, ge=1, description="Maximum total size of the indexes of long-term memory, in MiB."
    )
    lsm_gap_check_s: float = Field(
        default=300, gt=0, description="How often long-term memory checks whether it has missed a message, in seconds."
    )
    lsm_searches_days: float = Field(
        default=90, gt=0, description="Days after which a search without feedback is forgotten."
    )
    packer_interval_s: float = Field(
        default=3600,
        ge=0,
        description="Time between packer runs over all episodes that are due, in seconds; 0: only by hand.",
    )

    # Maintenance of storage.
    retention: str = Field(
        default="",
        description="Longest time that artifacts of a type are kept, such as draft=30d,critique=7d; default: for ever.",
    )
    gc_interval_s: float = Field(
        default=86400, ge=0, description="Time between garbage collections of storage; 0: only by hand."
    )
    gc_max_objects: int = Field(
        default=10_000,
        ge=0,
        description="A garbage collection that would remove more than this is refused; see storage-maintenance.",
    )
    gc_max_percent: float = Field(
        default=25, ge=0, le=100, description="The same limit in percent of what there is; applies from 100 things on."
    )
    timeline_days: float = Field(
        default=365, ge=0, description="Days after which an event leaves the timeline; 0: never."
    )
    audit_days: float = Field(
        default=7, ge=0, description="Days within which storage reads every artifact again; 0: only by hand."
    )

    # Agents.
    llm_base_url: str | None = Field(
        default=None, description="OpenAI-compatible endpoint; default: the offline model."
    )
    llm_model: str | None = Field(default=None, description="Name of the model at that endpoint.")
    llm_api_key: str | None = Field(default=None, repr=False, description="API key for that endpoint.")
    llm_concurrency: int = Field(
        default=1,
        ge=1,
        description="How many calls that endpoint serves at once. Chats start immediately; background work of a "
        "process takes the places they leave free, and is interrupted for a chat that finds none.",
    )
    llm_context_tokens: int = Field(
        default=DEFAULT_CONTEXT_TOKENS,
        ge=1024,
        le=MAX_CONTEXT_TOKENS,
        description="How many tokens the model reads and writes at once: the assistant sees as much of the chat and "
        "of memory as fits beside the instructions and the answer. Tokens are estimated, with a tenth in reserve.",
    )
    dialogue_timeout_minutes: float = Field(
        default=30, gt=0, description="Minutes of silence after which a dialogue's messages become a fragment."
    )
    dialogue_check_s: float = Field(
        default=60, gt=0, description="How often dialogues are checked for such a silence, in seconds."
    )
    dialogue_max_messages: int = Field(
        default=24, ge=2, le=1000, description="Number of messages that become a fragment without any silence."
    )
    subagents: str | None = Field(
        default=None,
        description="YAML file with the names of sub-agents that run elsewhere, and what each is good for; those "
        "installed here are already known.",
    )
    delegation_rounds: int = Field(
        default=12, ge=0, le=50, description="How often the master may turn to its sub-agents before it has to answer."
    )
    people: str | None = Field(
        default=None,
        description="Deprecated: a YAML file with people and their names; use `mindbus users add` instead.",
    )
    config_dir: Path | None = Field(
        default=None,
        description="Folder with guides, roles, cards, subagents, sim/profiles, sim/scenarios and habits.yaml to use "
        "in place of those shipped; see configuration.",
    )
    habits: str | None = Field(
        default=None, description="YAML file with quiet hours and the like, used instead of config/habits.yaml."
    )
    sim_dir: Path | None = Field(
        default=None, description="Folder with `profiles` and `scenarios` for simulations, besides those shipped."
    )

    @field_validator("retention")
    @classmethod
    def _is_policy(cls, retention: str) -> str:
        retention_policy(retention)
        return retention

    @model_validator(mode="after")
    def _has_one_place_for_vectors(self) -> Self:
        if self.pgvector and self.qdrant_url:
            raise ValueError("MINDBUS_PGVECTOR and MINDBUS_QDRANT_URL name two places for the same vectors: unset one")
        if self.pgvector and not self.database_of("glm").startswith("postgresql"):
            raise ValueError("MINDBUS_PGVECTOR needs MINDBUS_DATABASE_URL=postgresql+psycopg://…")
        return self

    @property
    def orphans_dir(self) -> Path | None:
        """The folder of orphans, beside the artifacts of the data folder; None: they lie in the store."""
        return None if self.artifacts_url else self.data_dir / "orphans"

    @property
    def vectors_folder(self) -> Path:
        """The folder of vectors that no server keeps."""
        return self.vectors_dir or self.data_dir / "vectors"

    @property
    def session_logs(self) -> Path:
        """The folder of the chats' logs."""
        return self.data_dir / "logs" / "memory_sessions"

    def database_of(self, service: str) -> str:
        """The SQLAlchemy URL of one service's own database."""
        own = {"storage": self.storage_database_url, "glm": self.glm_database_url}.get(service)
        return own or super().database_of(service)
