"""Artifacts over a real file store, a real buffer, a storage that does as it is told."""

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bus_schema.artifacts import Manifest
from bus_schema.fleet import Heartbeat
from bus_schema.replies import Code
from bus_schema.storage import Registration
from bus_schema.uploads import FoundManifest
from config.settings import FleetSettings
from mindbus import Client, connect
from mindbus.files.store import FileStore, open_folder
from mindbus.sdk.access import DirectAccess, FolderAccess
from mindbus.sdk.artifacts import Artifacts
from mindbus.sdk.buffer import BufferLimits
from mindbus.sdk.errors import (
    ArtifactConflict,
    ArtifactNotFound,
    ArtifactRejected,
    StagedCopyLost,
    StorageAway,
    StorageFailed,
)
from mindbus.sdk.registration import StoragePolicy
from mindbus.sdk.storage_link import RegistrationFailure

TRACE = "run_1"


class FakeStorage:
    """Storage as the SDK sees it: looks at the staged bytes, idempotent by id with checksum."""

    def __init__(self, files: FileStore) -> None:
        self.files = files
        self.manifests: dict[str, Manifest] = {}
        self.is_away = False
        self.asked: list[str] = []
        self.batches: list[list[str]] = []
        self.stumbles_over: set[str] = set()
        self.refuses: set[str] = set()
        self.breaks_over: set[str] = set()
        self.loses_staged = 0

    async def register(self, manifest: Manifest) -> Registration:
        self.asked.append(manifest.id)
        if self.is_away:
            raise StorageAway("nobody there")
        if manifest.id in self.stumbles_over:
            raise StorageFailed("a bug")
        if manifest.id in self.refuses:
            raise ArtifactRejected(Code.INVALID, "no")
        if manifest.id in self.breaks_over:
            raise LookupError("foreseen by nobody")
        if known := self.manifests.get(manifest.id):
            if known.checksum != manifest.checksum:
                raise ArtifactConflict("taken", known.ref)
            return self._registration(manifest, "already_exists")
        if missing := {*filter(None, [manifest.supersedes])} - self.manifests.keys():
            raise ArtifactRejected(Code.NOT_FOUND, f"no such version: {missing}")
        self._publish(manifest)
        return self._registration(manifest, "registered")

    async def register_all(self, manifests: Sequence[Manifest]) -> list[Registration | RegistrationFailure]:
        self.batches.append([manifest.id for manifest in manifests])
        if self.is_away:
            raise StorageAway("nobody there")
        answers: list[Registration | RegistrationFailure] = []
        for manifest in manifests:
            try:
                answers.append(await self.register(manifest))
            except (StorageAway, StagedCopyLost, ArtifactRejected) as error:
                answers.append(error)
        return answers

    async def manifest(self, artifact_id: str, trace: str | None) -> Manifest:
        if self.is_away:
            raise StorageAway("nobody there")
        try:
            return self.manifests[artifact_id]
        except KeyError:
            raise ArtifactNotFound(artifact_id) from None

    async def located(self, artifact_id: str, trace: str | None) -> FoundManifest:
        return FoundManifest(**dict(await self.manifest(artifact_id, trace)))

    async def manifests_of(self, artifact_ids: Sequence[str], trace: str | None) -> tuple[Manifest, ...]:
        if self.is_away:
            raise StorageAway("nobody there")
        return tuple(self.manifests[each] for each in artifact_ids if each in self.manifests)

    def _publish(self, manifest: Manifest) -> None:
        staged = manifest.uri.removeprefix(f"{self.files.url}/")
        if self.loses_staged:
            self.loses_staged -= 1
            self.files.delete(staged)
        try:
            content = self.files.open_read(staged).read()
        except FileNotFoundError:
            raise StagedCopyLost(staged) from None
        digest = hashlib.sha256(content).hexdigest()
        if digest != manifest.sha256:
            raise StagedCopyLost("other bytes")
        key = f"objects/sha256/{digest[:2]}/{digest[2:4]}/{digest}/1"
        self.files.put(key, content)
        self.manifests[manifest.id] = manifest.model_copy(update={"uri": key, "status": "completed"})

    def _registration(self, manifest: Manifest, outcome: Any) -> Registration:
        return Registration(artifact_id=manifest.id, version=manifest.version, sha256=manifest.sha256, outcome=outcome)


class PartingStorage(FakeStorage):
    """Carries the order out, but its answer is lost; then it is away."""

    async def register(self, manifest: Manifest) -> Registration:
        await super().register(manifest)
        self.is_away = True
        raise StorageAway("no answer")


@dataclass
class Naps:
    """Sleeping that takes no time, but is remembered."""

    taken_s: list[float] = field(default_factory=list)

    async def __call__(self, seconds: float) -> None:
        self.taken_s.append(seconds)


@dataclass
class Bench:
    """One machine with a bus of its own; `moves` where its file store is on the disk of its buffer."""

    folder: Path
    limits: BufferLimits = field(default_factory=BufferLimits)
    naps: Naps = field(default_factory=Naps)
    moves: bool = False

    def __post_init__(self) -> None:
        self.files = open_folder((self.folder / "artifacts").as_uri())
        self.storage = FakeStorage(self.files)
        self.settings = FleetSettings(amqp_url=f"memory://{self.folder}", data_dir=self.folder)

    @property
    def buffer(self) -> Path:
        return self.folder / "buffer" / "agent.researcher"

    @asynccontextmanager
    async def artifacts(self) -> AsyncIterator[Artifacts]:
        async with self.bus() as bus:
            policy = StoragePolicy(limits=self.limits, sleep=self.naps)
            access = FolderAccess(self.files, self.folder / "artifacts") if self.moves else DirectAccess(self.files)
            async with Artifacts(bus, access, self.folder, policy=policy, storage=self.storage) as artifacts:
                yield artifacts

    def bus(self, identity: str = "agent.researcher") -> Client:
        return connect(identity, settings=self.settings)

    async def beat(self) -> None:
        """Storage shows a sign of life."""
        async with self.bus("svc.storage") as bus:
            await bus.publish(Heartbeat(service="storage", instance="1", ready=True, version="0"))

    def waiting(self) -> list[str]:
        """The ids that lie in the buffer."""
        return sorted(path.stem for path in self.buffer.glob("*/*.json") if path.parent.name != "failed")

    def set_aside(self) -> list[str]:
        return sorted(path.stem for path in self.buffer.glob("failed/*.json"))

    def leftovers(self) -> list[str]:
        """Whatever lies about in the buffer besides whole entries."""
        found = [path for path in self.buffer.rglob("*") if path.is_file() and path.name != ".lock"]
        whole = {path.with_suffix(".bytes") for path in found if path.suffix == ".json"}
        return [str(path) for path in found if path.suffix != ".json" and path not in whole]
