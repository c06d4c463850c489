"""Questions to the dialogue as tasks of A2A: the task is the user's message, its artifact the answer."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta
from typing import cast

from a2a.types import Message, Role, Task, TaskArtifactUpdateEvent, TaskState, TaskStatusUpdateEvent

from bus_schema.conversations import GetMessage, GetMessages
from bus_schema.dialogue import (
    Answered,
    CancelAnswer,
    DialogueMessage,
    Invoke,
    MessageKind,
    answer_id_of,
    conversation_trace,
)
from bus_schema.replies import Code, restarts
from gateway.a2a.wire import id_for, message_of, status_of, text_artifact, texts_of
from gateway.api.dialogues import answer_within_s, until_kept
from gateway.backend import Backend
from mindbus.errors import Rejected, ReplyError

ANSWER = "answer"
MESSAGE = "msg_"
_NO_ANSWER = "There is no answer; send the message again under another id."
DialogueEvent = Task | TaskStatusUpdateEvent | TaskArtifactUpdateEvent


class DialogueTasks:
    """The questions of whoever is signed in, a person."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @property
    def user_id(self) -> str:
        """Raises Rejected for an agent, which has no dialogue."""
        if (user_id := self._backend.account.user_id) is None:
            raise Rejected(Code.INVALID, f"{self._backend.account.identity} is not a person and has no dialogue")
        return user_id

    def id_of(self, message: Message) -> str:
        """Id of the task that a client's message begins. Raises Rejected."""
        return id_for("msg", f"user.{self.user_id}", message.message_id)

    async def start(self, message: Message) -> str:
        """Have it answered, whatever becomes of this gateway; the id of the task. Raises MindBusError, A2AError."""
        task_id, text = self.id_of(message), "\n\n".join(texts_of(message))
        command = Invoke(user_id=self.user_id, message=text, message_id=task_id)
        deadline = self._backend.clock() + timedelta(seconds=answer_within_s(self._backend))
        with self._backend.asking(self.user_id) as bus:
            await bus.send(command, trace=conversation_trace(self.user_id), deadline=deadline)
            await until_kept(self._backend, self.user_id, task_id)
        return task_id

    async def answer(self, message: Message) -> Task:
        """The task with its answer; it goes on whatever becomes of this gateway. Raises MindBusError, A2AError."""
        task = self._begun(message)
        text, within_s = "\n\n".join(texts_of(message)), answer_within_s(self._backend)
        command = Invoke(user_id=self.user_id, message=text, message_id=task.id)
        with self._backend.asking(self.user_id) as bus:
            answered = await bus.request(command, trace=task.context_id, timeout_s=within_s)
        task.artifacts.append(text_artifact(ANSWER, ANSWER, answered.response))
        task.status.CopyFrom(status_of(TaskState.TASK_STATE_COMPLETED, self._backend.clock()))
        return task

    async def get(self, task_id: str) -> Task:
        """The task as storage has it. Raises MindBusError."""
        said = await self._message(task_id)
        if not _is_question(said):
            raise Rejected(Code.NOT_FOUND, f"there is no task {task_id}")
        return self._task(said, await self._answer(task_id))

    async def follow(self, task_id: str) -> AsyncGenerator[DialogueEvent]:
        """The task now, then the answer piece by piece as far as it is still to come. Raises MindBusError."""
        task = await self.get(task_id)
        yield task
        if task.status.state != TaskState.TASK_STATE_WORKING:
            return
        said = await self._message(task_id)
        # The same message under the same id is not heard twice: it is answered as it was, or will be.
        async for event in self._answered(task, said.content or ""):
            yield event

    async def stream(self, message: Message) -> AsyncGenerator[DialogueEvent]:
        """Have a message answered, piece by piece. Raises MindBusError, A2AError."""
        with self._backend.asking(self.user_id):
            task = self._begun(message)
            yield task
            async for event in self._answered(task, "\n\n".join(texts_of(message))):
                yield event

    def _begun(self, message: Message) -> Task:
        task_id, text = self.id_of(message), "\n\n".join(texts_of(message))
        task = Task(id=task_id, context_id=conversation_trace(self.user_id))
        task.history.append(message_of(text, task_id, task, Role.ROLE_USER))
        task.status.CopyFrom(status_of(TaskState.TASK_STATE_WORKING, self._backend.clock()))
        return task

    async def _answered(self, task: Task, text: str) -> AsyncGenerator[DialogueEvent]:
        command = Invoke(user_id=self.user_id, message=text, message_id=task.id, stream=True, outlives_asker=True)
        trace, within_s = conversation_trace(self.user_id), answer_within_s(self._backend)
        pieces = cast(
            "AsyncGenerator[str | Answered]", self._backend.bus.stream(command, trace=trace, timeout_s=within_s)
        )
        has_begun = False
        async with aclosing(pieces):
            async for piece in pieces:
                if isinstance(piece, str):
                    yield self._piece(task, piece, append=has_begun and not restarts(piece))
                    has_begun = True
        done = await self.get(task.id)
        for artifact in done.artifacts:
            yield TaskArtifactUpdateEvent(
                task_id=task.id, context_id=task.context_id, artifact=artifact, append=False, last_chunk=True
            )
        yield TaskStatusUpdateEvent(task_id=task.id, context_id=task.context_id, status=done.status)

    async def cancel(self, task_id: str) -> Task:
        """Have the model called no more; what has come of the answer is kept. Raises MindBusError."""
        task = await self.get(task_id)
        trace = conversation_trace(self.user_id)
        done = await self._backend.bus.request(CancelAnswer(user_id=self.user_id, message_id=task_id), trace=trace)
        if not done.cancelled:
            raise Rejected(Code.CONFLICT, f"the task {task_id} is over")
        task.status.CopyFrom(status_of(TaskState.TASK_STATE_CANCELED, self._backend.clock()))
        return task

    async def page(self, cursor: str | None, limit: int) -> tuple[list[Task], str]:
        """Questions, the newest first, with the cursor of the next page, empty after the last. Raises MindBusError."""
        query = GetMessages(user_id=self.user_id, cursor=cursor, limit=min(limit, 100), order="newest")
        page = await self._backend.bus.request(query, trace=conversation_trace(self.user_id))
        answers = {each.message_id: each for each in page.items}
        tasks = [
            self._task(each, answers.get(answer_id_of(each.message_id)) or await self._answer(each.message_id))
            for each in page.items
            if _is_question(each)
        ]
        return tasks, page.next_cursor or ""

    def _task(self, said: DialogueMessage, answer: DialogueMessage | None) -> Task:
        task = Task(id=said.message_id, context_id=conversation_trace(self.user_id))
        task.history.append(message_of(said.content or "", said.message_id, task, Role.ROLE_USER))
        is_late = self._backend.clock() - said.time > timedelta(seconds=answer_within_s(self._backend))
        if answer is not None:
            task.artifacts.append(text_artifact(ANSWER, ANSWER, answer.content or ""))
            task.status.CopyFrom(status_of(TaskState.TASK_STATE_COMPLETED, answer.time))
        elif is_late:
            task.status.CopyFrom(status_of(TaskState.TASK_STATE_FAILED, said.time, _NO_ANSWER, task.id))
        else:
            task.status.CopyFrom(status_of(TaskState.TASK_STATE_WORKING, said.time))
        return task

    def _piece(self, task: Task, piece: str, *, append: bool) -> TaskArtifactUpdateEvent:
        artifact = text_artifact(ANSWER, ANSWER, piece)
        return TaskArtifactUpdateEvent(task_id=task.id, context_id=task.context_id, artifact=artifact, append=append)

    async def _answer(self, task_id: str) -> DialogueMessage | None:
        try:
            return await self._message(answer_id_of(task_id))
        except ReplyError as error:
            if error.code is Code.NOT_FOUND:
                return None
            raise

    async def _message(self, message_id: str) -> DialogueMessage:
        query = GetMessage(user_id=self.user_id, message_id=message_id)
        return await self._backend.bus.request(query, trace=conversation_trace(self.user_id))


def _is_question(message: DialogueMessage) -> bool:
    """Whether the user has said it, which hidden instructions are not."""
    return message.role == "user" and message.kind is not MessageKind.HIDDEN
