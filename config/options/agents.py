"""Settings of those who think."""

from pathlib import Path

from pydantic import BaseModel, Field


class AgentSettings(BaseModel):
    """Whom agents ask, whom they know, how long they wait."""

    llm_base_url: str | None = Field(
        default=None, description="OpenAI-compatible endpoint; default: the offline model."
    )
    llm_model: str | None = Field(default=None, description="Name of the model at that endpoint.")
    llm_api_key: str | None = Field(default=None, repr=False, description="Key of that endpoint.")
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
        default=None, description="Who is who: a YAML file with people and their names, for the agents that hear them."
    )
    habits: str | None = Field(
        default=None, description="Quiet hours and such: a YAML file in the place of config/habits.yaml."
    )
    sim_dir: Path | None = Field(
        default=None, description="Folder with `profiles` and `scenarios` for simulations, besides those shipped."
    )
