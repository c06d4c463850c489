"""Prompts of the creative roles and of the dialogue runtime's agents, from YAML."""

from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agents.configuration.validation import (
    InvalidFile,
    UnknownFile,
    YamlProblem,
    load_shipped,
    read_config_file,
    read_file,
)
from agents.models.language_model import ModelParams
from agents.models.remote_agent import RemoteAgent
from bus_schema.artifacts import ArtifactType
from bus_schema.cards import Relevance
from bus_schema.identities import ServiceName
from config.shipped import config_folder, shipped_names
from language.words import Language
from mindbus.errors import Rejected
from mindbus.registry import BrokenWorker, installed_workers


class Craft(BaseModel):
    """Instructions for one type of artifact: for writing it and for judging one's own attempt."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    write: str = Field(min_length=1, max_length=8000)
    check: str = Field(min_length=1, max_length=8000)


class UnsupportedArtifactType(Rejected, ValueError):
    """A card asks a role for something that it does not make; give the step to another role."""


class Guide(BaseModel):
    """Instructions for one kind of thinking; `prompt_version` changes with every word of them."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())
    name: ServiceName
    description: str = Field(min_length=1, max_length=500)
    prompt_version: str = Field(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$", max_length=20)
    model: ModelParams = ModelParams()
    system: str = Field(min_length=1, max_length=8000)


class Role(Guide):
    """A member of the team; `prompt_version` changes with every word that the model is told.

    One that `remembers` is shown what memory has on the matter, beside what it is given. Where `relevance` is required,
    an output that has nothing to do with its inputs is no result, unless the step of the card says otherwise. One that
    runs elsewhere, named by `a2a`, is told what a model would be told.
    """

    max_rounds: int = Field(default=2, ge=0, le=10)
    remembers: bool = False
    relevance: Relevance = "off"
    produces: dict[ArtifactType, Craft] = Field(min_length=1, max_length=20)
    a2a: RemoteAgent | None = None

    def require_craft(self, artifact_type: str) -> None:
        """Raises UnsupportedArtifactType."""
        if artifact_type not in self.produces:
            makes = ", ".join(self.produces)
            raise UnsupportedArtifactType(
                message=f"{UnsupportedArtifactType.__doc__} ({self.name} makes {makes}, not {artifact_type})"
            )

    @model_validator(mode="after")
    def _judges_where_it_thinks(self) -> Self:
        if self.a2a is not None and self.max_rounds:
            raise ValueError("with a2a, max_rounds must be 0: the agent elsewhere judges its own work")
        return self

    @model_validator(mode="after")
    def _leaves_the_headline_to_the_layout(self) -> Self:
        texts = [self.system, *(text for craft in self.produces.values() for text in (craft.write, craft.check))]
        if any("</material>" in text for text in texts):
            raise ValueError("prompts must not contain </material>: it ends the material")
        return self


class InvalidRole(InvalidFile):
    """The role cannot be played; each line says where, what is wrong, what to do."""


class UnknownRole(UnknownFile):
    """There is no such role; add a file to the folder `roles` of MINDBUS_CONFIG_DIR."""

    kind = "role"


role_names = partial(shipped_names, "roles")
# Of the roles that come with MindBus without being a prompt.
_CRAFTS_WITHOUT_FILE = {"importer": ("document",)}


def shipped_role(name: str) -> Role:
    """A role that comes with MindBus. Raises UnknownRole, InvalidRole."""
    return load_shipped("roles", name, partial(_parse_role_named, name), UnknownRole)


def crafts_of_roles() -> dict[str, tuple[str, ...]]:
    """Types of artifacts that each role makes, by its name: of files, and of workers with `produces`.

    Raises InvalidRole.
    """
    files = {name: tuple(shipped_role(name).produces) for name in role_names()}
    return _CRAFTS_WITHOUT_FILE | _crafts_of_workers() | files


@cache
def _crafts_of_workers() -> dict[str, tuple[str, ...]]:
    crafts = {}
    for name, entry in installed_workers().third_party.items():
        with suppress(BrokenWorker):
            crafts[name] = tuple(getattr(entry.load(), "produces", ()))
    return {name: made for name, made in crafts.items() if made}


def role_from_file(path: Path) -> Role:
    """A role of one's own, wherever its file is. Raises InvalidRole."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InvalidRole([YamlProblem(str(path), 1, "file", f"cannot be read: {error.strerror}")]) from error
    return _parse_role_named(path.stem, text, str(path))


def _parse_role_named(name: str, text: bytes, source: str) -> Role:
    role = parse_role(text, source)
    if role.name != name:
        raise InvalidRole([YamlProblem(source, None, ("name",), f"must be {name!r}, like the file")])
    return role


def parse_role(text: bytes, source: str) -> Role:
    """Read a role from YAML; errors name it `source`. Raises InvalidRole with every problem."""
    return read_file(text, source, Role, InvalidRole)


class InvalidGuide(InvalidFile):
    """The guide cannot be followed; each line says where, what is wrong, what to do."""


def shipped_guide(name: str, language: Language | None = None) -> Guide:
    """A guide: the operator's before the shipped one, that of the language before the general one.

    Each file is read once. Raises InvalidGuide.
    """
    return _guide(config_folder(), name, language)


@cache
def _guide(_folder: Path | None, name: str, language: Language | None) -> Guide:
    file = read_config_file("guides", name, language)
    guide = parse_guide(file.content, file.source)
    if guide.name != name:
        raise InvalidGuide([YamlProblem(file.source, None, ("name",), f"must be {name!r}, like the file")])
    return guide


def parse_guide(text: bytes, source: str) -> Guide:
    """Read a guide from YAML; errors name it `source`. Raises InvalidGuide with every problem."""
    return read_file(text, source, Guide, InvalidGuide)
