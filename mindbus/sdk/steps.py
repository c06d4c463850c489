"""Artifacts of one attempt of a process step."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from bus_schema.artifacts import AIContext, Manifest
from bus_schema.ids import derived
from bus_schema.process import ExecuteStep, StepCompleted, StepPendingStorage
from mindbus.logs import logger
from mindbus.sdk.artifacts import Artifacts
from mindbus.sdk.errors import ArtifactConflict, ArtifactNotFound, StorageAway
from mindbus.sdk.step_values import values_of
from mindbus.sdk.transfers import Put, read_whole

T = TypeVar("T")


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
    """Inputs and output of one attempt; every call waits for storage, the deadline is the caller's."""

    artifacts: Artifacts
    order: ExecuteStep

    @property
    def artifact_id(self) -> str:
        """Derived from run, step and attempt, so that an attempt has one artifact however often it is delivered."""
        digits = derived(self.order.run_id, self.order.step_id, self.order.attempt, "artifact").replace("-", "")
        return f"art_{digits}"

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
            await self.artifacts.wait_for_storage()
