"""Users over HTTP: who people are, where their clock stands, in which language they speak."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from bus_schema.identities import UserId
from bus_schema.users import (
    MAX_NAMES,
    MAX_PROJECTS,
    GetUser,
    LanguageCode,
    ListUsers,
    PersonName,
    ProjectName,
    PutUser,
    User,
    UserPage,
    UserRecord,
    Zone,
)
from gateway.backend import BackendDependency, Cursor

router = APIRouter(tags=["users"])


class UserFields(BaseModel):
    """Fields of a user; all of them are overwritten."""

    model_config = ConfigDict(extra="forbid")
    name: PersonName
    names: tuple[PersonName, ...] = Field(default=(), max_length=MAX_NAMES)
    role: str = Field(default="", max_length=200, pattern=r"^[^\n\r<>]*$")
    zone: Zone | None = None
    language: LanguageCode | None = None
    projects: tuple[ProjectName, ...] = Field(default=(), max_length=MAX_PROJECTS)
    expected_version: int | None = Field(default=None, ge=0)


@router.get("/users")
async def users(
    backend: BackendDependency,
    project: ProjectName | None = None,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> UserPage:
    """Users by id; if you are not an operator, only you and those who share a project with you."""
    return await backend.bus.request(ListUsers(project=project, cursor=cursor, limit=limit))


@router.get("/users/{user}")
async def user(user: UserId, backend: BackendDependency) -> UserRecord:
    """A user."""
    return await backend.bus.request(GetUser(user_id=user))


@router.put("/users/{user}")
async def put(user: UserId, fields: UserFields, backend: BackendDependency) -> UserRecord:
    """Store a user, replacing any former state. For operators.

    With `expected_version`, it is a conflict if the user has changed since you read it; 0 expects a new user.
    """
    command = PutUser(
        user=User(user_id=user, **fields.model_dump(exclude={"expected_version"})),
        expected_version=fields.expected_version,
    )
    return await backend.bus.request(command)
