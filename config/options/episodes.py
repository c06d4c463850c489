"""Settings of long-term memory."""

from pydantic import BaseModel, Field


class EpisodeSettings(BaseModel):
    """What an episode is, how long it stays as it was said."""

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
