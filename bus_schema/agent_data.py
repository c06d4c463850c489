"""Commands for storage: key-value data that agents keep."""

from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, Field, JsonValue, StringConstraints
from pydantic_core import to_json

from bus_schema.identities import ServiceName
from bus_schema.messages import Command, Page, Query, Value

MAX_VALUE_BYTES = 256 * 1024

Namespace = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,62}$")]
DataKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:@/-]{0,255}$")]


def _of_bearable_size(value: JsonValue) -> JsonValue:
    size = len(to_json(value))
    if size > MAX_VALUE_BYTES:
        raise ValueError(f"takes {size} bytes as JSON, {MAX_VALUE_BYTES} at most; spread it over several keys")
    return value


class Version(Value):
    """The current version of a value; 0 means that there is none."""

    version: int


class PutAgentData(Command[Version], domain="storage", action="put_agent_data"):
    """Store a value under a key of the agent; null deletes it.

    With `expected_version`, it is a conflict if the value has changed since it was read; 0 expects that none exists.
    """

    agent: ServiceName
    namespace: Namespace
    key: DataKey
    value: Annotated[JsonValue, AfterValidator(_of_bearable_size)]
    expected_version: int | None = Field(default=None, ge=0)


class AgentDatum(Value):
    """One value with its version."""

    key: DataKey
    value: JsonValue
    version: int = Field(ge=1)
    updated_at: AwareDatetime


class AgentDataPage(Page[AgentDatum]):
    """Values in key order with the cursor of the next page; empty for a key that does not exist."""


class GetAgentData(Query[AgentDataPage], domain="storage", action="get_agent_data"):
    """Read one value of an agent, or page through a namespace."""

    agent: ServiceName
    namespace: Namespace
    key: DataKey | None = None
    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=50, ge=1, le=200)
