"""What one attempt of a step reads, what it makes."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from bus_schema.artifacts import AIContext, Manifest
from bus_schema.ids import derived
from bus_schema.process import ExecuteStep, StepCompleted, StepPendingStorage
from mindbus.logs import logger
from mindbus.sdk.artifacts import Artifacts, Put
from mindbus.sdk.failures import ArtifactConflict, StorageAway

T = TypeVar("T")


@dataclass(frozen=True)
class StepArtifacts:
    """An agent's hands for the time of one attempt; without storage they wait, the deadline is the caller's."""

    artifacts: Artifacts
    order: ExecuteStep

    @property
    def artifact_id(self) -> str:
        """The same for every delivery of the attempt, so that it has one artifact however often it is made."""
        digits = derived(self.order.run_id, self.order.step_id, self.order.attempt, "artifact").replace("-", "")
        return f"art_{digits}"

    async def made_before(self) -> Put | None:
        """The attempt's artifact, if an earlier delivery of the order came that far. Raises ArtifactRefused."""
        try:
            return await self._patiently(self._find)
        except ArtifactConflict as conflict:
            return await self._adopted(conflict)

    async def read(self, artifact_id: str, max_bytes: int) -> tuple[Manifest, bytes]:
        """An input. Raises ArtifactNotFound, ArtifactUnreadable."""
        trace = self.order.run_id
        manifest = await self._patiently(lambda: self.artifacts.manifest(artifact_id, trace=trace))
        content = await self._patiently(lambda: self.artifacts.get(artifact_id, trace=trace, max_bytes=max_bytes))
        return manifest, content

    async def put(self, content: bytes, content_type: str, context: AIContext) -> Put:
        """The attempt's artifact, from here on safe. Raises BufferFull, ArtifactRefused."""
        try:
            return await self.artifacts.put(
                content,
                artifact_type=self.order.produces,
                artifact_id=self.artifact_id,
                content_type=content_type,
                trace=self.order.run_id,
                step=self.order.step_id,
                context=context,
            )
        except ArtifactConflict as conflict:
            return await self._adopted(conflict)

    def ending(self, made: Put) -> StepCompleted | StepPendingStorage:
        """What to tell of it; when a pending one is registered, storage tells the orchestrator."""
        ending = StepPendingStorage if made.is_pending else StepCompleted
        return ending(
            run_id=self.order.run_id,
            step_id=self.order.step_id,
            attempt=self.order.attempt,
            artifact=made.ref,
            context=made.manifest.context or AIContext(),
        )

    async def _find(self) -> Put | None:
        return await self.artifacts.find(self.artifact_id, trace=self.order.run_id, step=self.order.step_id)

    async def _adopted(self, conflict: ArtifactConflict) -> Put:
        """Another instance was faster with this very attempt: its artifact is as good as ours."""
        if conflict.existing is None:
            raise conflict
        manifest = await self._patiently(lambda: self.artifacts.manifest(self.artifact_id, trace=self.order.run_id))
        return Put(manifest, "already_exists")

    async def _patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await ask()
            except StorageAway as away:
                logger().warning("waiting for storage", run=self.order.run_id, step=self.order.step_id, why=str(away))
            await self.artifacts.wait_for_storage()
