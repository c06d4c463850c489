"""What a writer thinks of their own attempt."""

from pydantic import BaseModel, ConfigDict, Field


class Verdict(BaseModel):
    """The answer to a self-critique: satisfied, or what to change."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    satisfied: bool
    remarks: list[str] = Field(max_length=8)
