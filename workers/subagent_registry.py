"""Registry of the sub-agents that the master may call: installed ones, then those of a file."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from agents.configuration.prompts import shipped_guide
from agents.configuration.validation import InvalidFile, read_file
from bus_schema.history import SubagentName
from bus_schema.subagent import SERVICE_PREFIX
from config.settings import FleetSettings
from mindbus.registry import WorkerRegistry


class SubagentsFile(BaseModel):
    """Sub-agents that run elsewhere, each with what it is good for."""

    model_config = ConfigDict(extra="forbid")
    subagents: dict[SubagentName, str] = Field(min_length=1)


class InvalidSubagentsFile(InvalidFile):
    """The file of sub-agents cannot be used; each line says where, what is wrong, what to do."""


def known_subagents(settings: FleetSettings, workers: WorkerRegistry) -> dict[str, str]:
    """Descriptions by name. Raises InvalidSubagentsFile, OSError."""
    installed = {
        name.removeprefix(SERVICE_PREFIX): entry
        for name, entry in workers.entries.items()
        if name.startswith(SERVICE_PREFIX)
    }
    # MindBus's own are described by their guides, so that their libraries need not be imported.
    known = {
        name: shipped_guide(name).description if entry.is_own else str(getattr(entry.load(), "description", ""))
        for name, entry in installed.items()
    }
    if settings.subagents is not None:
        file = Path(settings.subagents)
        known |= read_file(file.read_bytes(), str(file), SubagentsFile, InvalidSubagentsFile).subagents
    return known
