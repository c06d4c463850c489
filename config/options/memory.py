"""Settings of what memory has at hand."""

from typing import Literal

from pydantic import BaseModel, Field


class MemorySettings(BaseModel):
    """How much is at hand: of histories, of units, of documents."""

    max_history: int = Field(
        default=100, ge=1, le=1000, description="How many messages of a history are kept, the latest."
    )
    chat_window: int = Field(
        default=10, ge=1, le=1000, description="How many messages of its talk with the user the master is shown."
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
    kps_max_bytes: int = Field(
        default=32 * 1024**2, ge=1024, description="Largest document that knowledge processing reads."
    )
    kps_timeout_s: float = Field(default=60, gt=0, description="How long it may take to read one, in seconds.")
    recall_timeout_s: float = Field(
        default=2,
        ge=0,
        description="How long whoever answers or writes waits for what memory finds, in seconds; 0: it is not asked.",
    )
