"""What a language model is told when it thinks for an agent of the dialogue runtime, from YAML."""

from functools import cache
from importlib import resources

from pydantic import BaseModel, ConfigDict, Field

from agents.models.language_model import ModelParams
from agents.yaml_problems import BadFile, read_file
from bus_schema.identities import ServiceName


class Guide(BaseModel):
    """Instructions for one kind of thinking; `prompt_version` changes with every word of them."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())
    name: ServiceName
    description: str = Field(min_length=1, max_length=500)
    prompt_version: str = Field(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$", max_length=20)
    model: ModelParams = ModelParams()
    system: str = Field(min_length=1, max_length=8000)


class BadGuide(BadFile):
    """The guide cannot be followed; each line says where, what is wrong, what to do."""


@cache
def shipped_guide(name: str) -> Guide:
    """A guide that comes with MindBus. Raises BadGuide."""
    source = f"config/guides/{name}.yaml"
    return parse_guide((resources.files("config") / "guides" / f"{name}.yaml").read_bytes(), source)


def parse_guide(text: bytes, source: str) -> Guide:
    """Read a guide from YAML; `source` is what its errors call it. Raises BadGuide with every problem found."""
    return read_file(text, source, Guide, BadGuide)
