"""Requests of A2A, whichever way they come, answered from what the bus keeps: the gateway itself knows no task."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.request_handler import RequestHandler, validate_request_params
from a2a.types import (
    AgentCard,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskPushNotificationConfig,
    TaskStatusUpdateEvent,
)
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError, UnsupportedOperationError
from google.protobuf.json_format import MessageToDict

from bus_schema.dialogue import conversation_trace
from config.shipped import shipped_names, subagent_names
from gateway.a2a.cards import DIALOGUE, extended_card
from gateway.a2a.delegation_tasks import DelegationTasks
from gateway.a2a.dialogue_tasks import DialogueTasks
from gateway.a2a.push_configs import PushConfigs
from gateway.a2a.run_tasks import RUN, RunTasks
from gateway.a2a.tasks import tasks_of
from gateway.a2a.wire import OVER, answering, streaming
from gateway.backend import Backend

StreamedEvent = Message | Task | TaskStatusUpdateEvent | TaskArtifactUpdateEvent
_PAGE = 50
BACKEND, URL = "backend", "url"


class A2AHandler(RequestHandler):
    """Acts as the account whose token came with the request; of tasks of others it says that there are none."""

    def __init__(self, push: PushConfigs) -> None:
        self._push = push

    @validate_request_params
    @answering
    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task:
        return await tasks_of(_backend(context), params.id).get(params.id)

    @validate_request_params
    @answering
    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """Runs, or with the context of the dialogue its questions; the newest first."""
        backend, size = _backend(context), params.page_size or _PAGE
        kind = DialogueTasks if params.context_id.startswith("conv_") else RunTasks
        if kind is DialogueTasks and params.context_id != conversation_trace(backend.account.user_id or ""):
            return ListTasksResponse(page_size=size)
        tasks, cursor = await kind(backend).page(params.page_token or None, size)
        wanted = [task for task in tasks if _is_wanted(task, params)]
        return ListTasksResponse(tasks=wanted, next_page_token=cursor, page_size=size, total_size=len(wanted))

    @validate_request_params
    @answering
    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task:
        return await tasks_of(_backend(context), params.id).cancel(params.id)

    @validate_request_params
    @answering
    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task | Message:
        """Start or continue a task, and wait for its end or its question, unless the client does not want to."""
        backend, message = _backend(context), params.message
        skill = _skill_of(params)
        waits = not params.configuration.return_immediately
        if skill == DIALOGUE and not message.task_id and waits:
            talk = DialogueTasks(backend)
            await self._watch(backend, talk.id_of(message), params)
            return await talk.answer(message)
        task_id = await self._begun(backend, params)
        tasks = tasks_of(backend, task_id)
        await self._watch(backend, task_id, params)
        if not waits:
            return await tasks.get(task_id)
        async with aclosing(tasks.follow(task_id)) as events:
            async for _event in events:
                pass
        return await tasks.get(task_id)

    @validate_request_params
    @streaming
    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[StreamedEvent]:
        """The task, then what becomes of it, to its end or its question."""
        backend, message = _backend(context), params.message
        if _skill_of(params) == DIALOGUE and not message.task_id:
            talk = DialogueTasks(backend)
            await self._watch(backend, talk.id_of(message), params)
            async for event in talk.stream(message):
                yield event
            return
        task_id = await self._begun(backend, params)
        await self._watch(backend, task_id, params)
        tasks = tasks_of(backend, task_id)
        assert not isinstance(tasks, DialogueTasks)
        async for event in _changes(tasks, task_id):
            yield event

    @validate_request_params
    @streaming
    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[StreamedEvent]:
        """As of a message that has just started the task; also after this gateway, or all else, was started anew."""
        tasks = tasks_of(_backend(context), params.id)
        if (await tasks.get(params.id)).status.state in OVER:
            raise UnsupportedOperationError(f"the task {params.id} is over; get it instead")
        events = tasks.follow(params.id) if isinstance(tasks, DialogueTasks) else _changes(tasks, params.id)
        async for event in events:
            yield event

    @validate_request_params
    @answering
    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        await tasks_of(_backend(context), params.task_id).get(params.task_id)
        return await self._push.add(_backend(context).account, params)

    @validate_request_params
    @answering
    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        found = [each for each in self._push.of_task(_backend(context).account, params.task_id) if each.id == params.id]
        if not found:
            raise TaskNotFoundError(f"the task {params.task_id} has no push notification {params.id!r}")
        return found[0]

    @validate_request_params
    @answering
    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        configs = self._push.of_task(_backend(context).account, params.task_id)
        return ListTaskPushNotificationConfigsResponse(configs=configs)

    @validate_request_params
    @answering
    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        self._push.remove(_backend(context).account, params.task_id, params.id)

    @answering
    async def on_get_extended_agent_card(
        self, params: GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> AgentCard:
        return await extended_card(_backend(context), context.state[URL])

    async def _begun(self, backend: Backend, params: SendMessageRequest) -> str:
        """Id of the task that the message begins or goes on with."""
        message = params.message
        if message.task_id.startswith(RUN):
            await RunTasks(backend).answer(message.task_id, message)
            return message.task_id
        if message.task_id:
            raise InvalidParamsError("a question is answered once; send the next one without a task_id")
        skill, _, name = _skill_of(params).partition("/")
        if skill == DIALOGUE:
            return await DialogueTasks(backend).start(message)
        if skill == "subagent" and name in subagent_names():
            return await DelegationTasks(backend).start(name, message)
        if skill == "card" or (skill == "role" and name in shipped_names("roles")):
            return await RunTasks(backend).start(skill, name, message, _params_of(params))
        raise InvalidParamsError(f"there is no skill {_skill_of(params)!r}; the extended agent card lists them")

    async def _watch(self, backend: Backend, task_id: str, params: SendMessageRequest) -> None:
        if params.configuration.HasField("task_push_notification_config"):
            config = params.configuration.task_push_notification_config
            config.task_id = task_id
            await self._push.add(backend.account, config)


def _backend(context: ServerCallContext) -> Backend:
    backend: Backend = context.state[BACKEND]
    return backend


def _is_wanted(task: Task, params: ListTasksRequest) -> bool:
    after = params.status_timestamp_after.ToNanoseconds() if params.HasField("status_timestamp_after") else 0
    return (
        params.status in (0, task.status.state)
        and params.context_id in ("", task.context_id)
        and task.status.timestamp.ToNanoseconds() >= after
    )


def _metadata(params: SendMessageRequest) -> dict[str, Any]:
    """Of the request, and of its message, whose words come first."""
    return {**MessageToDict(params.metadata), **MessageToDict(params.message.metadata)}


def _skill_of(params: SendMessageRequest) -> str:
    return str(_metadata(params).get("skill") or DIALOGUE)


def _params_of(params: SendMessageRequest) -> dict[str, str]:
    given = _metadata(params).get("params")
    return {str(name): str(value) for name, value in given.items()} if isinstance(given, dict) else {}


async def _changes(tasks: RunTasks | DelegationTasks, task_id: str) -> AsyncGenerator[StreamedEvent]:
    """The task, then its new artifacts and its statuses."""
    known: Task | None = None
    async with aclosing(tasks.follow(task_id)) as states:
        async for task in states:
            if known is None:
                yield task
            else:
                for event in _differences(known, task):
                    yield event
            known = task


def _differences(before: Task, after: Task) -> list[StreamedEvent]:
    known = {artifact.artifact_id for artifact in before.artifacts}
    task_id, context_id = after.id, after.context_id
    made = [
        TaskArtifactUpdateEvent(task_id=task_id, context_id=context_id, artifact=artifact, last_chunk=True)
        for artifact in after.artifacts
        if artifact.artifact_id not in known
    ]
    changed = TaskStatusUpdateEvent(
        task_id=task_id, context_id=context_id, status=after.status, metadata=after.metadata
    )
    return [*made, changed]
