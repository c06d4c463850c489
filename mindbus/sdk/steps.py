"""Outputs of process steps: artifacts of an attempt, values that cards ask about, texts that a person puts in place."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeVar

from bus_schema.artifacts import AIContext, Manifest
from bus_schema.cards import MOST_ITEMS
from bus_schema.ids import derived
from bus_schema.process import ExecuteStep, GetProcess, StepCompleted, StepPendingStorage
from bus_schema.replies import Code
from bus_schema.run_control import ReplaceOutput
from bus_schema.runs import Run, Step
from mindbus.bus.client import Client
from mindbus.errors import Rejected
from mindbus.logs import logger
from mindbus.sdk.artifacts import Artifacts
from mindbus.sdk.errors import ArtifactConflict, ArtifactNotFound, StorageAway
from mindbus.sdk.transfers import Put, PutOptions, read_whole

T = TypeVar("T")


def artifact_id_of(run_id: str, step_id: str, attempt: int) -> str:
    """The id of an attempt's artifact."""
    return f"art_{derived(run_id, step_id, attempt, 'artifact').replace('-', '')}"


@dataclass(frozen=True)
class StepManifests:
    """Manifests of an attempt: of its artifact, if it was made before, and of its inputs by id."""

    made: Put | None = None
    inputs: Mapping[str, Manifest] = field(default_factory=dict)

    def require(self, artifact_id: str) -> Manifest:
        """The manifest of an input. Raises ArtifactNotFound."""
        if artifact_id not in self.inputs:
            raise ArtifactNotFound(f"{ArtifactNotFound.__doc__} ({artifact_id})")
        return self.inputs[artifact_id]


@dataclass(frozen=True)
class StepArtifacts:
    """Inputs and output of one attempt; every call waits for storage, in which time the caller's limit stands still."""

    artifacts: Artifacts
    order: ExecuteStep
    limit: asyncio.Timeout | None = None

    @property
    def artifact_id(self) -> str:
        """Derived from run, step and attempt, so that an attempt has one artifact however often it is delivered."""
        return artifact_id_of(self.order.run_id, self.order.step_id, self.order.attempt)

    async def find(self) -> "StepManifests":
        """The attempt's artifact, if an earlier delivery has put it; else the manifests of its inputs, at once.

        Raises ArtifactRejected.
        """
        try:
            return await self._retry(self._find)
        except ArtifactConflict as conflict:
            return StepManifests(await self._adopt(conflict))

    async def read(self, manifest: Manifest, max_bytes: int) -> bytes:
        """Bytes of an input. Raises ArtifactUnreadable, ArtifactTooLong."""

        async def read() -> bytes:
            async with self.artifacts.open_found(manifest, trace=self.order.run_id) as reader:
                return await read_whole(reader, max_bytes)

        return await self._retry(read)

    async def put(self, content: bytes, content_type: str, context: AIContext) -> Put:
        """Put the attempt's artifact, a new version of the one before. Raises BufferFull, ArtifactRejected."""
        before = self.order.supersedes
        if self.order.values:
            values = values_of(content.decode(errors="replace"), self.order.values)
            context = context.model_copy(update={"values": {**values, **context.values}})
        # An attempt that no longer counts may have put its version all the same.
        newest = None if before is None else await self.artifacts.newest(before, trace=self.order.run_id)
        try:
            return await self.artifacts.put(
                content,
                artifact_type=self.order.produces,
                artifact_id=self.artifact_id,
                content_type=content_type,
                trace=self.order.run_id,
                step=self.order.step_id,
                supersedes=newest,
                context=context,
            )
        except ArtifactConflict as conflict:
            return await self._adopt(conflict)

    def ending(self, put: Put) -> StepCompleted | StepPendingStorage:
        """The event to publish; storage tells the orchestrator when a pending artifact is registered."""
        ending = StepPendingStorage if put.is_pending else StepCompleted
        return ending(
            run_id=self.order.run_id,
            step_id=self.order.step_id,
            attempt=self.order.attempt,
            artifact=put.ref,
            context=put.manifest.context or AIContext(),
        )

    def kept(self) -> StepPendingStorage | None:
        """The event of an attempt that ends while its artifact is in the buffer: another would make a second one."""
        put = self.artifacts.waiting(self.artifact_id)
        if put is None:
            return None
        pending = self.ending(put)
        assert isinstance(pending, StepPendingStorage)
        return pending

    async def _find(self) -> "StepManifests":
        made = await self.artifacts.find_buffered(self.artifact_id)
        if made is not None:
            return StepManifests(made)
        inputs = dict.fromkeys(each.artifact.artifact_id for each in self.order.inputs)
        found = await self.artifacts.manifests([self.artifact_id, *inputs], trace=self.order.run_id)
        return StepManifests(self.artifacts.as_put(found.pop(self.artifact_id, None)), found)

    async def _adopt(self, conflict: ArtifactConflict) -> Put:
        """The artifact of another instance that was faster with this attempt."""
        if conflict.existing is None:
            raise conflict
        manifest = await self._retry(lambda: self.artifacts.manifest(self.artifact_id, trace=self.order.run_id))
        return Put(manifest, "already_exists")

    async def _retry(self, ask: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await ask()
            except StorageAway as error:
                logger().warning("waiting for storage", run=self.order.run_id, step=self.order.step_id, why=str(error))
            await self._wait_for_storage()

    async def _wait_for_storage(self) -> None:
        due = None if self.limit is None else self.limit.when()
        if self.limit is None or due is None:
            await self.artifacts.wait_for_storage()
            return
        began = monotonic()
        self.limit.reschedule(None)
        try:
            await self.artifacts.wait_for_storage()
        finally:
            self.limit.reschedule(due + monotonic() - began)


# Of a step that has no output whose type it could have.
_TYPE = "edited"


async def replace_output(bus: Client, artifacts: Artifacts, run_id: str, step_id: str, text: str) -> Run:
    """Register a text as the next version of a step's output, and have the run go on from it.

    Raises Rejected where the run has no such step, StorageAway, ArtifactRejected, ReplyError.
    """
    run = await bus.request(GetProcess(run_id=run_id), trace=run_id)
    step = next((step for step in run.steps if step.step_id == step_id), None)
    if step is None:
        ids = ", ".join(step.step_id for step in run.steps)
        raise Rejected(Code.INVALID, f"{run_id} has no step {step_id!r}; it has {ids}")
    put = await artifacts.put(text.encode(), **await _about(artifacts, run_id, step, text))
    if put.is_pending:
        raise StorageAway
    return await bus.request(ReplaceOutput(run_id=run_id, step_id=step_id, artifact=put.ref), trace=run_id)


async def _about(artifacts: Artifacts, run_id: str, step: Step, text: str) -> PutOptions:
    # What a person has written is good as it is, whatever the card asks about it.
    values = {"satisfied": True, **values_of(text, ("answer", "items"))}
    about: PutOptions = {
        "artifact_type": _TYPE,
        "trace": run_id,
        "step": step.step_id,
        "content_type": "text/markdown",
        "context": AIContext(values=values),
    }
    if step.artifact is not None:
        newest = await artifacts.newest(step.artifact, trace=run_id)
        manifest = await artifacts.manifest(newest.artifact_id, trace=run_id)
        about |= {"artifact_type": manifest.artifact_type, "supersedes": newest}
    return about


Values = dict[str, bool | str | tuple[str, ...]]

_LONGEST_ITEM, _LONGEST_ANSWER = 2000, 200
_ITEM = re.compile(r"^ {0,3}(?:[-*+•]|\d{1,3}[.)])\s+(\S.*)$")
_FENCE = re.compile(r"^```\w*\s*\n(.*?)\n```\s*$", re.DOTALL)
_DECORATION = "#*_`>\"'«»“” \t.!:"


def values_of(text: str, asked: Collection[str]) -> Values:
    """Of what is asked, the `answer` and the `items` of a text; an item may go over several lines."""
    values: Values = {}
    if "answer" in asked:
        values["answer"] = answer_of(text)
    if "items" in asked:
        values["items"] = items_of(text)
    return values


def answer_of(text: str) -> str:
    """The first line that says something, without decoration."""
    lines = (line.strip(_DECORATION) for line in text.splitlines())
    return next(filter(None, lines), "")[:_LONGEST_ANSWER]


def items_of(text: str) -> tuple[str, ...]:
    """Items of a JSON list, or of the Markdown list in a text; one too many tells that there are more."""
    fenced = _FENCE.match(text.strip())
    items = _json_items(fenced[1] if fenced else text)
    if items is None:
        items = _markdown_items(text)
    return tuple(item[:_LONGEST_ITEM] for item in items[: MOST_ITEMS + 1])


def _json_items(text: str) -> list[str] | None:
    try:
        found: Any = json.loads(text)
    except ValueError:
        return None
    if not isinstance(found, list):
        return None
    return [each.strip() if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in found if each]


def _markdown_items(text: str) -> list[str]:
    items: list[str] = []
    is_open = False
    for line in text.splitlines():
        if match := _ITEM.match(line):
            items.append(match[1].strip())
            is_open = True
        elif line.startswith((" ", "\t")) and line.strip() and is_open:
            items[-1] += f"\n{line.strip()}"
        elif line.strip():
            is_open = False
    return items
