"""Sources of what the run screen shows: services on the bus, or a recording that ships with MindBus."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

from bus_schema.artifacts import Manifest
from bus_schema.kem import Kem
from bus_schema.replies import Code
from bus_schema.run_control import GetRunGraph, RunGraph
from bus_schema.runs import Run
from bus_schema.storage import GetLineage, GetVersions, SearchArtifacts
from config.recorded_runs import RecordedRun
from gateway.api.artifacts import artifact_preview
from gateway.api.model_calls import CallPage, KeptCall, calls_of_run
from gateway.backend import Backend
from gateway.ui.sections import EXPECTED_ERRORS
from mindbus.errors import Rejected
from mindbus.sdk.kem_filters import condition, query_from
from mindbus.sdk.preview import Preview, preview

_MAX_LINES, _MAX_UNITS, _MAX_ARTIFACTS = 2000, 50, 200
# Metadata of units that were made from an artifact.
_ARTIFACT_KEY = "artifact_id"


@dataclass(frozen=True)
class ShownArtifact:
    """An artifact with its versions and all that is made of it; `address` is empty where nothing serves its bytes."""

    manifest: Manifest
    versions: Sequence[Manifest]
    preview: Preview
    made: Sequence[Manifest] = ()
    units: Sequence[Kem] = ()
    address: str = ""


class ArtifactSource(Protocol):
    """Source of artifacts. Methods raise EXPECTED_ERRORS."""

    async def artifact(self, artifact_id: str, trace: str | None) -> ShownArtifact: ...


class RunSource(ArtifactSource, Protocol):
    """Source of one run. Methods raise EXPECTED_ERRORS."""

    async def state(self) -> tuple[Run, RunGraph, Sequence[Manifest]]: ...

    async def calls(self, cursor: str | None) -> CallPage: ...


class LiveArtifacts:
    """Artifacts that storage keeps, as the account may see them."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    async def artifact(self, artifact_id: str, trace: str | None) -> ShownArtifact:
        backend = self.backend
        manifest = await backend.artifacts.manifest(artifact_id, trace=trace)
        versions = await backend.bus.request(GetVersions(artifact_id=artifact_id), trace=trace)
        shown = await artifact_preview(backend, artifact_id, _MAX_LINES, trace)
        query = GetLineage(artifact_id=manifest.id, direction="down", depth=1)
        lineage = await backend.bus.request(query, trace=trace)
        made = [each for each in lineage.nodes if each.id != manifest.id]
        address = f"/api/artifacts/{quote(manifest.id)}/content?trace={quote(manifest.trace_id)}"
        return ShownArtifact(manifest, versions.items, shown, made, await self._units_of(manifest), address)

    async def _units_of(self, manifest: Manifest) -> list[Kem]:
        """Units of memory that the account may read; memory may be away, the artifact is here all the same."""
        query = query_from(condition(_ARTIFACT_KEY, manifest.id))
        try:
            found = await self.backend.memory().search(query, limit=_MAX_UNITS)
        except EXPECTED_ERRORS:
            return []
        return [item.kem for item in found.items]


class LiveRun(LiveArtifacts):
    """A run as the orchestrator keeps it."""

    def __init__(self, backend: Backend, run_id: str) -> None:
        super().__init__(backend)
        self._run_id = run_id

    async def state(self) -> tuple[Run, RunGraph, Sequence[Manifest]]:
        bus, trace = self.backend.bus, self._run_id
        run, graph, artifacts = await asyncio.gather(
            self.backend.run(trace),
            bus.request(GetRunGraph(run_id=trace), trace=trace),
            bus.request(SearchArtifacts(trace_id=trace, limit=_MAX_ARTIFACTS), trace=trace),
        )
        return run, graph, artifacts.items

    async def calls(self, cursor: str | None) -> CallPage:
        return await calls_of_run(self._run_id, self.backend, cursor=cursor)


class RecordedSource:
    """A recorded run."""

    def __init__(self, recorded: RecordedRun) -> None:
        self._recorded = recorded

    async def state(self) -> tuple[Run, RunGraph, Sequence[Manifest]]:
        return self._recorded.run, self._recorded.graph, self._recorded.artifacts

    async def calls(self, _cursor: str | None) -> CallPage:
        kept = [KeptCall(call_id=each.id, step_id=each.step_id, call=call) for each, call in self._recorded.calls]
        return CallPage(items=kept)

    async def artifact(self, artifact_id: str, _trace: str | None) -> ShownArtifact:
        manifest = self._recorded.manifest(artifact_id)
        if manifest is None:
            raise Rejected(Code.NOT_FOUND, f"the recording has no artifact {artifact_id}")
        edges = self._recorded.lineage.edges
        made_ids = {edge.target for edge in edges if edge.source == artifact_id}
        made = [each for each in self._recorded.artifacts if each.id in made_ids]
        shown = preview(manifest, self._recorded.content(manifest), _MAX_LINES)
        return ShownArtifact(manifest, [manifest], shown, made)
