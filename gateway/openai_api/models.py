"""Models that a client can choose: the dialogue, each role, each sub-agent."""

from typing import Literal

import yaml
from fastapi import APIRouter
from pydantic import BaseModel

from bus_schema.replies import Code
from config.shipped import shipped_file, shipped_names, subagent_names
from mindbus.errors import Rejected

router = APIRouter()

DIALOGUE = "dialogue"
ROLE, SUBAGENT = "role/", "subagent/"


class OfferedModel(BaseModel):
    """A model that can be chosen."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "mindbus"


class ModelList(BaseModel):
    """All models that can be chosen."""

    object: Literal["list"] = "list"
    data: list[OfferedModel]


@router.get("/models")
async def models() -> ModelList:
    """The dialogue with its memory, each role of cards, each sub-agent."""
    return ModelList(data=[OfferedModel(id=name) for name in model_names()])


@router.get("/models/{name:path}")
async def model(name: str) -> OfferedModel:
    """One of the models."""
    require_model(name)
    return OfferedModel(id=name)


def model_names() -> list[str]:
    """Ids, the dialogue first."""
    roles = (f"{ROLE}{name}" for name in shipped_names("roles"))
    return [DIALOGUE, *roles, *(f"{SUBAGENT}{name}" for name in sorted(subagent_names()))]


def craft_of(role: str) -> str:
    """Type of what a role makes, the first in its file."""
    return str(next(iter(yaml.safe_load(shipped_file("roles", role))["produces"])))


def require_model(name: str) -> None:
    """Raises Rejected where there is no such model."""
    if name not in (known := model_names()):
        raise Rejected(Code.NOT_FOUND, f"there is no model {name!r}; there are {', '.join(known)}")
