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
    pgvector: bool = Field(
        default=False,
        description="Keep the vectors of memory in its PostgreSQL, beside the rows, by pgvector 0.8 or later.",
    )
    vectors_dir: Path | None = Field(
        default=None, description="Folder of the vectors where no server keeps them; default: one in the data folder."
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
    embedding_device: str = Field(
        default="cpu", description="Device of a model of sentence-transformers: cpu, cuda, cuda:1, mps."
    )
    embedding_backend: Literal["torch", "onnx", "openvino"] = Field(
        default="torch", description="Library that computes a model of sentence-transformers."
    )
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

    quota_bytes: int = Field(
        default=0, ge=0, description="How many bytes the artifacts of the fleet may weigh together; 0: any number."
    )
    quota_tokens_per_day: int = Field(
        default=0,
        ge=0,
        description="How many tokens of models the fleet may use on a day (UTC), whoever asks; 0: any number.",
    )

    model_calls_days: int = Field(
        default=30,
        ge=0,
        le=36500,
        description="How many days calls of models are kept, with prompt and answer; 0: none.",
    )
    model_calls_redact: str | None = Field(
        default=None,
        description="Regular expression of what is masked in calls that are kept, besides secrets; such as "
        "[\\w.+-]+@[\\w.-]+ for addresses.",
    )

    # Sizes of histories, shared memory and documents; time limits.
    max_history: int = Field(
        default=100, ge=1, le=1000, description="How many messages of a history are kept, the latest."
    )
    chat_window: int = Field(
        default=10,
        ge=1,
        le=1000,
        description="How many messages of a chat history.get returns where it is not told; the window of the assistant "
        "is by tokens, see MINDBUS_LLM_CONTEXT_TOKENS.",
    )
    subagent_window: int = Field(
        default=50, ge=1, le=1000, description="How many messages of its talk with the master a sub-agent is shown."
    )
    session_log_bytes: int = Field(
        default=1024**2,
        ge=0,
        description="How large a file of a chat's log becomes, of which the latest four are kept; 0: no such logs.",
    )
    swm_max_bytes: int = Field(
        default=256 * 1024**2, ge=1024**2, description="How much the units at hand may take where there is no Redis."
    )
    swm_eviction: Literal["lru", "lfu"] = Field(
        default="lru",
        description="Which unit goes first where there is no room: the one used longest ago, least often.",
    )
    swm_indexed_keys: str = Field(
        default="type,topic,category,source,project_id",
        description="Keys of metadata by whose texts units at hand are found without looking at all of them.",
    )
    swm_ttl_s: float = Field(
        default=604_800, gt=0, description="How long a unit that nobody publishes again stays at hand in Redis."
    )
    glm_max_units: int = Field(
        default=0,
        ge=0,
        description="How many units of shared memory are kept of each owner; beyond, those that do not hold any more "
        "are deleted first, then those of the lowest priority, then those not found for the longest time; 0: all.",
    )
    kps_max_bytes: int = Field(
        default=32 * 1024**2, ge=1024, description="Largest document that knowledge processing reads."
    )
    kps_timeout_s: float = Field(default=60, gt=0, description="How long it may take to read one, in seconds.")
    recall_timeout_s: float = Field(
        default=2,
        ge=0,
        description="How long whoever answers or writes waits for what memory finds, in seconds; 0: it is not asked.",
    )

    # Long-term memory and its packer.
    lsm_gap_minutes: float = Field(
        default=180, gt=0, description="After how long a silence whatever is said is another episode, in minutes."
    )
    lsm_max_turns: int = Field(default=50, ge=2, le=1000, description="How many turns an episode has at most.")
    lsm_max_words: int = Field(
        default=1500, ge=10, description="So many words make an episode full: the next turn goes into another."
    )
    lsm_half_life_days: float = Field(
        default=14, gt=0, description="In how many days without access an episode loses half of its recency."
    )
    lsm_half_frequency: float = Field(
        default=5, gt=0, description="So many accesses give an episode half of what frequency can give."
    )
    lsm_hot_above: float = Field(
        default=0.7, ge=0, le=1, description="A hot episode whose priority is above this stays hot, however old."
    )
    lsm_warm_above: float = Field(
        default=0.3, ge=0, le=1, description="A warm episode whose priority is above this stays warm, however old."
    )
    lsm_warm_after_days: float = Field(
        default=14, gt=0, description="After how many days without access a hot episode goes warm."
    )
    lsm_cold_after_days: float = Field(
        default=90, gt=0, description="After how many days without access a warm episode goes cold."
    )
    lsm_hot_tokens: int = Field(
        default=24_000, ge=100, description="How many tokens of one chat are hot; beyond, its oldest episodes go warm."
    )
    lsm_hot_after_accesses: int = Field(default=3, ge=1, description="So many accesses make a warm episode hot again.")
    lsm_anchor_min_priority: float = Field(
        default=0.5, ge=0, le=1, description="Priority that an anchor never falls below."
    )
    lsm_index_mib: int = Field(
        default=1024, ge=1, description="How much the indexes of long-term memory weigh together, in MiB."
    )
    lsm_gap_check_s: float = Field(
        default=300, gt=0, description="How often long-term memory looks whether it has missed a message, in seconds."
    )
    lsm_searches_days: float = Field(
        default=90, gt=0, description="After how many days a search without feedback is forgotten."
    )
    packer_interval_s: float = Field(
        default=3600,
        ge=0,
        description="Time from one run of the packer over all episodes that have come of age to the next, in seconds; "
        "0: by hand alone.",
    )

    # Maintenance of storage.
    retention: str = Field(
        default="",
        description="How long artifacts of a type are kept at most, such as draft=30d,critique=7d; default: for ever.",
    )
    gc_interval_s: float = Field(
        default=86400, ge=0, description="Time from one garbage collection of storage to the next; 0: by hand alone."
    )
    gc_max_objects: int = Field(
        default=10_000,
        ge=0,
        description="A garbage collection that would take more is refused; see storage-maintenance.",
    )
    gc_max_percent: float = Field(
        default=25, ge=0, le=100, description="The same in percent of what there is, from 100 things on."
    )
    timeline_days: float = Field(
        default=365, ge=0, description="After how many days an event leaves the timeline; 0: never."
    )
    audit_days: float = Field(
        default=7, ge=0, description="In how many days storage reads every artifact anew; 0: by hand alone."
    )

    # Agents.
    llm_base_url: str | None = Field(
        default=None, description="OpenAI-compatible endpoint; default: the offline model."
    )
    llm_model: str | None = Field(default=None, description="Name of the model at that endpoint.")
    llm_api_key: str | None = Field(default=None, repr=False, description="Key of that endpoint.")
    llm_concurrency: int = Field(
        default=1,
        ge=1,
        description="How many calls that endpoint serves at once. Chats begin at once; background work of a process "
        "takes the places that they leave, and is interrupted for a chat that finds none.",
    )
    llm_context_tokens: int = Field(
        default=DEFAULT_CONTEXT_TOKENS,
        ge=1024,
        le=MAX_CONTEXT_TOKENS,
        description="How many tokens the model reads and writes at once: the assistant is shown as much of the talk "
        "and of memory as fits beside instructions and answer. Tokens are estimated, with a tenth in reserve.",
    )
    dialogue_timeout_minutes: float = Field(
        default=30, gt=0, description="After how long a silence a dialogue's messages become a fragment, in minutes."
    )
    dialogue_check_s: float = Field(
        default=60, gt=0, description="How often the dialogues are looked through for such a silence, in seconds."
    )
    dialogue_max_messages: int = Field(
        default=24, ge=2, le=1000, description="So many messages become a fragment without any silence."
    )
    subagents: str | None = Field(
        default=None,
        description="Sub-agents that run elsewhere: a YAML file with their names, each with what it is good for; those "
        "that are installed here are known.",
    )
    delegation_rounds: int = Field(
        default=12, ge=0, le=50, description="How often the master may turn to its sub-agents before it has to answer."
    )
    people: str | None = Field(
        default=None,
        description="Deprecated: a YAML file with people and their names, use `mindbus users add` instead.",
    )
    config_dir: Path | None = Field(
        default=None,
        description="Folder with guides, roles, cards, subagents, sim/profiles, sim/scenarios, habits.yaml in place "
        "of those shipped; see configuration.",
    )
    habits: str | None = Field(
        default=None, description="Quiet hours and such: a YAML file in the place of config/habits.yaml."
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
