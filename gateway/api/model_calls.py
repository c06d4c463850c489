"""Calls of models over HTTP: those of a run, and those behind an answer of the assistant."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from bus_schema.artifacts import ArtifactId, Manifest, StepId
from bus_schema.dialogue import DialogueMessageId, conversation_trace
from bus_schema.identities import UserId, user_of
from bus_schema.model_calls import MODEL_CALL, ModelCall
from bus_schema.runs import RunId
from bus_schema.storage import SearchArtifacts
from gateway.backend import Backend, BackendDependency
from gateway.visibility import NotYours
from mindbus.tasks import gather_limited

router = APIRouter(tags=["runs"])

_AT_ONCE = 8
Cursor = Annotated[str | None, Query(max_length=256)]
Limit = Annotated[int, Query(ge=1, le=100)]


class KeptCall(BaseModel):
    """A call kept as an artifact."""

    call_id: ArtifactId
    step_id: StepId | None
    call: ModelCall


class CallPage(BaseModel):
    """Calls in the order they were made."""

    items: list[KeptCall]
    next_cursor: str | None = None


@router.get("/runs/{run_id}/calls")
async def calls_of_run(
    run_id: RunId, backend: BackendDependency, step: StepId | None = None, cursor: Cursor = None, limit: Limit = 50
) -> CallPage:
    """Model calls of a run: one of your own or, for operators, anybody's."""
    run = await backend.run(run_id)
    user_id = user_of(run.started_by)
    if user_id is None:
        raise NotYours
    query = SearchArtifacts(trace_id=run_id, step_id=step, artifact_type=MODEL_CALL, cursor=cursor, limit=limit)
    return await kept_calls(backend, user_id, query)


@router.get("/dialogues/{user_id}/messages/{message_id}/calls")
async def calls_of_message(
    user_id: UserId, message_id: DialogueMessageId, backend: BackendDependency, cursor: Cursor = None, limit: Limit = 50
) -> CallPage:
    """Model calls behind a message of the assistant, including those of its sub-agents."""
    trace = conversation_trace(user_id)
    query = SearchArtifacts(trace_id=trace, step_id=message_id, artifact_type=MODEL_CALL, cursor=cursor, limit=limit)
    return await kept_calls(backend, user_id, query)


async def kept_calls(backend: Backend, user_id: str, query: SearchArtifacts) -> CallPage:
    """Calls that were made for a user. Raises NotYours, ReplyError, BusUnavailable, ArtifactUnreadable."""
    page = await backend.acting_as(user_id).request(query, trace=query.trace_id)
    artifacts = backend.artifacts_of(user_id)

    async def read(kept: Manifest) -> KeptCall:
        content = await artifacts.get(kept.id, trace=query.trace_id)
        return KeptCall(call_id=kept.id, step_id=kept.step_id, call=ModelCall.model_validate_json(content))

    items = await gather_limited([partial(read, each) for each in page.items], _AT_ONCE)
    return CallPage(items=items, next_cursor=page.next_cursor)
