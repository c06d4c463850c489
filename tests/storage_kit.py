"""A storage worker over real files, a real database, a clock that stands still."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from bus_schema.artifacts import Manifest
from bus_schema.envelope import Envelope, Kind
from bus_schema.identities import owner_of
from bus_schema.ids import mint
from bus_schema.messages import Command
from bus_schema.storage import GetArtifact, RegisterArtifact, Registration, SetTraceMembers
from mindbus.files.keys import OBJECTS
from mindbus.files.packs import read_pack
from mindbus.files.store import FileStore
from mindbus.sql.database import Database
from mindbus.testing import deliver
from storage_service.blobs import content_of
from storage_service.local_folders import Folders
from storage_service.maintenance.survey import MaintenanceRules
from storage_service.packs import PackFolder
from storage_service.service import StorageService, open_storage
from storage_service.tables import StorageBase
from tests.clocks import NOON, Clock
from workers.storage.worker import StorageWorker

RESEARCHER = "agent.researcher.1"
CRITIC = "agent.critic.1"
ORCHESTRATOR = "svc.orchestrator"
TRACE = "run_1"
# For a test to which it does not matter where the bytes are, but which needs many of them.
ON_BOTH_DATABASES = pytest.mark.parametrize(
    "backends",
    [
        pytest.param(("sqlite_database_of", "local_files"), id="sqlite"),
        pytest.param(("postgres_database_of", "local_files"), id="postgres", marks=pytest.mark.backends),
    ],
    indirect=True,
)
# For a test that looks into folders.
ON_FILES = pytest.mark.parametrize("backends", [("sqlite_database_of", "local_files")], ids=["files"], indirect=True)


def packed_keys(root: Path) -> list[str]:
    """The keys of all objects in the packs of a store on disk."""
    return [found.key for found in PackFolder(Folders(root)).listing()]


@dataclass
class Depot:
    """Stages files as an agent does, hands messages to the worker as the runtime does."""

    folder: Path
    database: Database
    files: FileStore
    clock: Clock = field(default_factory=Clock)
    max_artifact_bytes: int = 64 * 1024 * 1024
    rules: MaintenanceRules = field(default_factory=MaintenanceRules)
    arrange: Callable[[StorageService], StorageService] = field(default=lambda storage: storage)

    def __post_init__(self) -> None:
        storage = open_storage(self.database, self.files, self.clock, self.max_artifact_bytes, rules=self.rules)
        self.storage = self.arrange(storage)
        self.worker = StorageWorker(self.storage)

    def upload_key(self, owner: str = "agent.researcher") -> str:
        return f"staging/{self.clock():%Y/%m/%d}/{owner.replace('.', '_')}/{os.urandom(16).hex()}"

    def stage(self, content: bytes, owner: str = "agent.researcher") -> str:
        """The address of freshly staged bytes."""
        key = self.upload_key(owner)
        self.files.put(key, content)
        return self.files.uri(key)

    def manifest(self, content: bytes = b"findings", by: str = RESEARCHER, **changes: Any) -> Manifest:
        """A staged artifact's manifest, right in every field but those that are given otherwise."""
        fields: dict[str, Any] = {
            "id": mint("art"),
            "trace_id": TRACE,
            "created_by": by,
            "created_at": self.clock(),
            "artifact_type": "research_report",
            "content_type": "text/markdown",
            "size_bytes": len(content),
            "checksum": f"sha256:{hashlib.sha256(content).hexdigest()}",
            "owner": owner_of(by),
        }
        if "uri" not in changes:
            fields["uri"] = self.stage(content, owner_of(by))
        return Manifest.model_validate(fields | changes)

    async def handle(
        self, message: Command[Any], by: str = RESEARCHER, trace: str | None = None, message_id: str | None = None
    ) -> Any:
        """The result, once its transaction is committed; what the handler raises, once that is rolled back."""
        delivered = await deliver(
            self.worker, message, by=by, trace=trace, message_id=message_id or mint("msg"), time=self.clock()
        )
        return delivered.result

    async def register(self, manifest: Manifest, by: str | None = None, trace: str | None = None) -> Registration:
        registration = await self.handle(RegisterArtifact(manifest=manifest), by or manifest.created_by, trace)
        assert isinstance(registration, Registration)
        return registration

    async def put(self, content: bytes = b"findings", **changes: Any) -> str:
        """The id of a registered artifact."""
        return (await self.register(self.manifest(content, **changes))).artifact_id

    async def get(self, artifact_id: str, by: str = RESEARCHER, trace: str | None = None) -> Manifest:
        manifest = await self.handle(GetArtifact(artifact_id=artifact_id), by, trace)
        assert isinstance(manifest, Manifest)
        return manifest

    async def set_members(self, *members: str, trace: str = TRACE) -> None:
        await self.handle(SetTraceMembers(trace_id=trace, members=members), ORCHESTRATOR)

    async def rows(self, table: str) -> int:
        async with self.database.reading() as session:
            count = await session.scalar(select(func.count()).select_from(StorageBase.metadata.tables[table]))
        return count or 0

    def object_files(self) -> list[str]:
        """What is published, in a pack or as a file: by the keys that manifests name."""
        contents = [content_of(key) for key in self.places()]
        return sorted(content.file_key for content in contents if content)

    def places(self) -> list[str]:
        """The keys of what is published where it is."""
        root = self.files.local_root
        return sorted([*self._keys_under(OBJECTS), *([] if root is None else packed_keys(root))])

    def staged_files(self) -> list[str]:
        return self._keys_under("staging")

    def temporary_files(self) -> list[str]:
        return self._keys_under("objects/.tmp")

    def place_of(self, manifest: Manifest) -> str:
        """The key of an artifact's bytes where they are; they may have been packed more than once."""
        contents = {key: content_of(key) for key in self.places()}
        return next((key for key, content in contents.items() if content and content.file_key == manifest.uri), "")

    def content_of(self, manifest: Manifest) -> bytes:
        content, root = content_of(self.place_of(manifest) or manifest.uri), self.files.local_root
        if root is not None and content is not None and content.packed is not None:
            return read_pack(root, content.packed, content.sha256, content.generation)
        with self.files.open_read(manifest.uri) as published:
            return published.read()

    def _keys_under(self, prefix: str) -> list[str]:
        found = self.files.fs.find(f"{self.files.root}/{prefix}", detail=True)
        # An object store may tell of a folder in which there is nothing any more.
        files = [path for path, told in found.items() if told["type"] == "file"]
        return sorted(path.removeprefix(f"{self.files.root}/") for path in files)


OpenDepot = Callable[..., Depot]


def an_envelope(
    message: Command[Any], by: str, trace: str | None = None, message_id: str | None = None, time: datetime = NOON
) -> Envelope:
    message_id = message_id or mint("msg")
    return Envelope(
        id=message_id,
        source="/mb/test/1",
        type=message.wire.type,
        time=time,
        correlationid=message_id,
        mbkind=Kind.COMMAND,
        mbrequester=by,
        mbtraceid=trace,
        data=message.model_dump(mode="json"),
    )
