"""Sub-agents from YAML files: name, description, prompt, tools, parameters of the model."""

from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from agents.configuration.prompts import Guide
from agents.configuration.validation import InvalidFile, YamlProblem, read_config_file, read_file
from agents.models.language_model import ModelParams
from agents.models.remote_agent import RemoteAgent
from bus_schema.subagent import service_of
from config.shipped import SUBAGENT_NAME, config_folder
from language.words import Language

ToolName = Literal["search_memory", "read_artifact", "compute"]


def _each_once(tools: tuple[ToolName, ...]) -> tuple[ToolName, ...]:
    if len(set(tools)) < len(tools):
        raise ValueError("names a tool twice; keep one of them")
    return tools


class SubagentFile(BaseModel):
    """A sub-agent without code: `prompt` is its system message, `mcp` names servers of `mcp.yaml`.

    One that runs elsewhere is named by `a2a` instead.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())
    name: Annotated[str, StringConstraints(pattern=rf"^{SUBAGENT_NAME}$")]
    description: str = Field(min_length=1, max_length=500)
    prompt: str = Field(default="", max_length=8000)
    prompt_version: str = Field(default="1.0.0", pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$", max_length=20)
    tools: Annotated[tuple[ToolName, ...], AfterValidator(_each_once)] = ()
    mcp: tuple[str, ...] = Field(default=(), max_length=20)
    model: ModelParams = ModelParams()
    a2a: RemoteAgent | None = None

    @model_validator(mode="after")
    def _thinks_in_one_place(self) -> Self:
        if bool(self.prompt.strip()) == (self.a2a is not None):
            raise ValueError("needs either a prompt or a2a")
        if self.a2a and (self.tools or self.mcp):
            raise ValueError("has its tools where it runs: leave out tools and mcp")
        return self

    @property
    def guide(self) -> Guide:
        """The guide of its tool loop."""
        return Guide(
            name=service_of(self.name),
            description=self.description,
            prompt_version=self.prompt_version,
            model=self.model,
            system=self.prompt or self.description,
        )


class InvalidSubagent(InvalidFile):
    """The sub-agent cannot be run; each line says where, what is wrong, what to do."""


def open_subagent(name: str, language: Language | None = None) -> SubagentFile:
    """The sub-agent of a file in `subagents`, that of the language before the general one; each file is read once.

    Raises InvalidSubagent; FileNotFoundError where there is none.
    """
    return _subagent(config_folder(), name, language)


def parse_subagent(text: bytes, source: str) -> SubagentFile:
    """Read a sub-agent from YAML; errors name it `source`. Raises InvalidSubagent with every problem."""
    return read_file(text, source, SubagentFile, InvalidSubagent)


@cache
def _subagent(_folder: Path | None, name: str, language: Language | None) -> SubagentFile:
    file = read_config_file("subagents", name, language)
    subagent = parse_subagent(file.content, file.source)
    if subagent.name != name:
        raise InvalidSubagent([YamlProblem(file.source, None, ("name",), f"must be {name!r}, like the file")])
    return subagent
