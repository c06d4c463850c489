"""Any command over HTTP: which there are, what they take, send one."""

from contextlib import nullcontext
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, JsonValue

from bus_schema.artifacts import TraceId
from bus_schema.catalogue import ASK_MODELS, commands_by_name, summary_of
from bus_schema.ids import derived
from bus_schema.messages import Command
from bus_schema.replies import Code
from gateway.backend import BackendDependency, IdempotencyKey
from mindbus.errors import Rejected

router = APIRouter(tags=["commands"])

CommandName = Annotated[str, Path(pattern=r"^[a-z_]+\.[a-z_]+$", description="Such as `storage.get_artifact`.")]


class CommandSummary(BaseModel):
    """A command's name, and what it does."""

    model_config = ConfigDict(frozen=True)
    name: str
    summary: str


@router.get("/commands")
async def list_all() -> list[CommandSummary]:
    """Commands that the bus knows; each says by itself who may send it."""
    return [CommandSummary(name=name, summary=summary_of(kind)) for name, kind in commands_by_name().items()]


@router.get("/commands/{name}")
async def schema(name: CommandName) -> dict[str, Any]:
    """JSON Schema of a command's fields."""
    return _command(name).model_json_schema()


@router.post("/commands/{name}")
async def send(
    name: CommandName,
    fields: dict[str, JsonValue],
    backend: BackendDependency,
    trace: Annotated[TraceId | None, Query()] = None,
    key: IdempotencyKey = None,
) -> dict[str, Any]:
    """Send a command as the signed-in account, and wait for its result."""
    command = _command(name).model_validate(fields)
    message_id = derived(backend.bus.owner, "idempotency key", name, key) if key else None
    with backend.asking() if isinstance(command, ASK_MODELS) else nullcontext(backend.bus) as bus:
        result: BaseModel = await bus.request(command, trace=trace, message_id=message_id)
    return result.model_dump(mode="json")


def _command(name: str) -> type[Command[Any]]:
    try:
        return commands_by_name()[name]
    except KeyError:
        raise Rejected(Code.NOT_FOUND, f"there is no command {name!r}; GET /api/commands lists them") from None
