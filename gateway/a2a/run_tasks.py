"""Runs as tasks of A2A: started by a message, answered by one where a step waits for a person."""

import re
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

from a2a.types import Artifact, Message, Part, Task, TaskState

from bus_schema.artifacts import ArtifactRef
from bus_schema.cards import BRIEF, Card, CardStep
from bus_schema.process import CancelProcess, ListProcesses
from bus_schema.replies import Code
from bus_schema.run_control import ApproveStep, RejectStep, ResumeProcess
from bus_schema.runs import Run, RunStatus, Step, StepStatus
from gateway.a2a.task_states import states_of
from gateway.a2a.wire import id_for, status_of, texts_of
from gateway.api.runs import StartRunRequest, start_run
from gateway.backend import Backend
from gateway.openai_api.models import craft_of
from mindbus.errors import Rejected
from mindbus.sdk.errors import ArtifactError, StorageAway

RUN = "run_"
_STATES = {
    RunStatus.STARTING: TaskState.TASK_STATE_SUBMITTED,
    RunStatus.RUNNING: TaskState.TASK_STATE_WORKING,
    RunStatus.PAUSED: TaskState.TASK_STATE_INPUT_REQUIRED,
    RunStatus.COMPLETED: TaskState.TASK_STATE_COMPLETED,
    RunStatus.FAILED: TaskState.TASK_STATE_FAILED,
    RunStatus.CANCELLED: TaskState.TASK_STATE_CANCELED,
}
_AFTER = r"\b[\s.,:;!—-]*"
_YES = re.compile(rf"\W*(?:approved?|yes|ok(?:ay)?|resume|да|одобр\w+|утвержд\w+|продолж\w+){_AFTER}", re.IGNORECASE)
_NO = re.compile(rf"\W*(?:reject(?:ed)?|no|нет|отклон\w+|отказ\w*){_AFTER}", re.IGNORECASE)
_ASK = "Answer with “approve” or “reject”, and a reason if you like."
_LARGEST_TEXT = 256 * 1024
_PAGE = 100
_STEP, _INSTRUCTIONS = "answer", "Do what the brief asks for."


class RunTasks:
    """The runs that an account may see."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._texts: dict[tuple[str, int], str] = {}

    async def start(self, skill: str, name: str, message: Message, params: dict[str, str]) -> str:
        """Id of the run that a message starts, of a card or of a role. Raises MindBusError, A2AError."""
        self._backend.require_budget()
        card: dict[str, Any] = {"card_name": name} if skill == "card" else {"card": _card_of(name)}
        run_id = id_for("run", self._backend.account.identity, message.message_id)
        request = StartRunRequest(briefs=texts_of(message), params=params, run_id=run_id, **card)
        return (await start_run(self._backend, request)).run_id

    async def answer(self, run_id: str, message: Message) -> None:
        """Tell a run that waits for a person what they say. Raises MindBusError, A2AError."""
        run = await self._backend.run(run_id)
        said = "\n".join(texts_of(message)).strip()
        answer, step = _YES.match(said) or _NO.match(said), _asking(run)
        if run.status is RunStatus.PAUSED and _YES.match(said):
            await self._backend.bus.request(ResumeProcess(run_id=run_id), trace=run_id)
            return
        if step is None or answer is None:
            raise Rejected(Code.INVALID, _ASK if step else f"the run {run_id} does not wait for an answer")
        kind = ApproveStep if _YES.match(said) else RejectStep
        command = kind(run_id=run_id, step_id=step.step_id, note=said[answer.end() :][:2000])
        await self._backend.bus.request(command, trace=run_id)

    async def get(self, run_id: str) -> Task:
        """The run as it is in the orchestrator's database. Raises MindBusError."""
        return await self._task(await self._backend.run(run_id))

    async def cancel(self, run_id: str) -> Task:
        """Stop the run. Raises MindBusError."""
        run = await self._backend.bus.request(CancelProcess(run_id=run_id, reason="cancelled over A2A"), trace=run_id)
        return await self._task(run)

    async def page(self, cursor: str | None, limit: int) -> tuple[list[Task], str]:
        """Runs, the newest first, with the cursor of the next page, empty after the last. Raises MindBusError."""
        page = await self._backend.bus.request(ListProcesses(cursor=cursor, limit=min(limit, _PAGE)))
        return [await self._task(run) for run in page.items], page.next_cursor or ""

    async def follow(self, run_id: str) -> AsyncGenerator[Task]:
        """The run now, then whenever something has changed, until it is over or asks something. Raises MindBusError."""
        # Whose events are shown from now on.
        await self._backend.run(run_id)
        async for task in states_of(self._backend, lambda: self.get(run_id)):
            yield task

    async def _task(self, run: Run) -> Task:
        state, words = _STATES[run.status], run.reason
        if run.status is RunStatus.RUNNING and (asking := _asking(run)):
            state, words = TaskState.TASK_STATE_INPUT_REQUIRED, f"{asking.step_id}: {asking.reason or _ASK}"
        task = Task(id=run.run_id, context_id=run.run_id)
        task.status.CopyFrom(status_of(state, _changed_at(run), words, run.run_id))
        task.metadata.update({"card": run.card_name, "steps": {each.step_id: each.status.value for each in run.steps}})
        for step in run.steps_in_order:
            if step.artifact is not None and step.status is StepStatus.COMPLETED:
                task.artifacts.append(await self._artifact(run.run_id, step, step.artifact))
        return task

    async def _artifact(self, run_id: str, step: Step, ref: ArtifactRef) -> Artifact:
        """The text of an output, or the address under which the gateway has it."""
        part = Part(url=f"/api/artifacts/{ref.artifact_id}/content", media_type=ref.content_type)
        if ref.content_type.startswith("text/") and ref.size_bytes <= _LARGEST_TEXT:
            # Where storage is away, the address says where it will be.
            with suppress(ArtifactError, StorageAway, OSError):
                part = Part(text=await self._text(run_id, ref), media_type=ref.content_type)
        return Artifact(artifact_id=ref.artifact_id, name=step.step_id, parts=[part])

    async def _text(self, run_id: str, ref: ArtifactRef) -> str:
        key = (ref.artifact_id, ref.version)
        if key not in self._texts:
            content = await self._backend.artifacts.get(ref.artifact_id, trace=run_id)
            self._texts[key] = content.decode(errors="replace")
        return self._texts[key]


def _card_of(role: str) -> Card:
    step = CardStep(id=_STEP, role=role, instructions=_INSTRUCTIONS, produces=craft_of(role), inputs=(BRIEF,))
    return Card(name=role.replace(".", "-"), steps=(step,), result=_STEP)


def _asking(run: Run) -> Step | None:
    """The first step that waits for a person."""
    return next((step for step in run.steps if step.status is StepStatus.WAITING and step.due_at is None), None)


def _changed_at(run: Run) -> Any:
    times = [time for step in run.steps for time in (step.started_at, step.finished_at) if time]
    return max([run.started_at, *times, *([run.finished_at] if run.finished_at else [])])
