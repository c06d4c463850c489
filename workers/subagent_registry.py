"""Which sub-agents the master may turn to: those installed here, then those that a file names."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from agents.configuration.prompts import shipped_guide
from agents.configuration.validation import InvalidFile, read_file
from bus_schema.history import SubagentName
from bus_schema.subagent import SERVICE_PREFIX
from mindbus.settings import Settings

_SHIPPED = ("analytic",)


class SubagentsFile(BaseModel):
    """Sub-agents that run elsewhere, each with what it is good for."""

    model_config = ConfigDict(extra="forbid")
    subagents: dict[SubagentName, str] = Field(min_length=1)


class InvalidSubagentsFile(InvalidFile):
    """The file of sub-agents cannot be used; each line says where, what is wrong, what to do."""


def known_subagents(settings: Settings, makers: Mapping[str, object]) -> dict[str, str]:
    """Each by its name, with what it is good for. Raises InvalidSubagentsFile, OSError."""
    known = {
        name.removeprefix(SERVICE_PREFIX): str(getattr(maker, "description", ""))
        for name, maker in makers.items()
        if name.startswith(SERVICE_PREFIX)
    }
    # Their libraries take a while to import, which whoever only speaks of them need not wait for.
    known |= {name: shipped_guide(name).description for name in _SHIPPED if name in known}
    if settings.subagents is not None:
        file = Path(settings.subagents)
        known |= read_file(file.read_bytes(), str(file), SubagentsFile, InvalidSubagentsFile).subagents
    return known
