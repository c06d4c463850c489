"""Artifacts in any order of registration, repetition, correction, cleaning and restarts: what always holds of them."""

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bus_schema.artifacts import Manifest
from bus_schema.replies import Code
from bus_schema.storage_maintenance import CollectGarbage
from mindbus.errors import Rejected
from mindbus.files.store import open_folder
from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade
from storage_service.tables import MIGRATIONS
from tests.clocks import Clock
from tests.maintenance_kit import OPERATOR
from tests.storage_kit import Depot

T = TypeVar("T")
CONTENTS = st.sampled_from([b"", b"findings", b"better findings", b"x" * 70_000])
PAUSES = st.sampled_from([timedelta(seconds=1), timedelta(hours=25), timedelta(days=40)])


@cache
def empty() -> bytes:
    """A database as a first start leaves it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "storage.db"
        asyncio.run(migrated(Database(f"sqlite+aiosqlite:///{file}", "storage")))
        return file.read_bytes()


async def migrated(database: Database) -> None:
    await upgrade(database, MIGRATIONS)
    await database.truncate_log()
    await database.dispose()


class StoreLife(RuleBasedStateMachine):
    """The model: what was registered, with its bytes, and which artifact corrects which."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp())
        (self.folder / "storage.db").write_bytes(empty())
        # The age of a file is by the store's clock, which no test can set.
        self.clock = Clock(datetime.now(UTC))
        self.kept: dict[str, tuple[Manifest, Manifest, bytes]] = {}
        self.corrected: set[str] = set()
        self.open()

    def open(self) -> None:
        database = Database(f"sqlite+aiosqlite:///{self.folder / 'storage.db'}", "storage")
        files = open_folder((self.folder / "artifacts").as_uri())
        self.depot = Depot(self.folder, database, files, clock=self.clock)

    def run(self, work: Awaitable[T]) -> T:
        return self.loop.run_until_complete(work)

    def keep(self, declared: Manifest, content: bytes) -> None:
        registration = self.run(self.depot.register(declared))
        assert (registration.artifact_id, registration.outcome) == (declared.id, "registered")
        self.kept[declared.id] = declared, self.run(self.depot.get(declared.id)), content

    def refusal(self, declared: Manifest) -> Code:
        with pytest.raises(Rejected) as refused:
            self.run(self.depot.register(declared))
        return refused.value.code

    @rule(content=CONTENTS)
    def register(self, content: bytes) -> None:
        self.keep(self.depot.manifest(content), content)

    @precondition(lambda self: self.kept)
    @rule(data=st.data(), is_staged_anew=st.booleans())
    def register_again(self, data: st.DataObject, is_staged_anew: bool) -> None:
        declared, _, content = self.kept[data.draw(st.sampled_from(sorted(self.kept)))]
        if is_staged_anew:
            declared = declared.model_copy(update={"uri": self.depot.stage(content)})
        registration = self.run(self.depot.register(declared))
        assert registration.outcome != "registered", "the same artifact is there once"
        assert (registration.artifact_id, registration.version) == (declared.id, declared.version)

    @precondition(lambda self: self.kept)
    @rule(data=st.data())
    def take_an_id_for_other_bytes(self, data: st.DataObject) -> None:
        taken = data.draw(st.sampled_from(sorted(self.kept)))
        other = self.kept[taken][2] + b"!"
        assert self.refusal(self.depot.manifest(other, id=taken)) is Code.CONFLICT

    @precondition(lambda self: self.kept)
    @rule(data=st.data(), content=CONTENTS, skipped=st.integers(0, 1))
    def correct(self, data: st.DataObject, content: bytes, skipped: int) -> None:
        before = data.draw(st.sampled_from(sorted(self.kept)))
        version = self.kept[before][0].version + 1 + skipped
        correction = self.depot.manifest(content, supersedes=before, version=version)
        if skipped:
            assert self.refusal(correction) in {Code.INVALID, Code.CONFLICT}
        elif before in self.corrected:
            assert self.refusal(correction) is Code.CONFLICT, "history does not fork"
        else:
            self.keep(correction, content)
            self.corrected.add(before)

    @rule(content=CONTENTS, is_wrong=st.sampled_from(["size", "checksum"]))
    def stage_what_does_not_fit(self, content: bytes, is_wrong: str) -> None:
        wrong = {"size_bytes": len(content) + 1} if is_wrong == "size" else {"checksum": f"sha256:{'0' * 64}"}
        assert not self.refusal(self.depot.manifest(content, **wrong)).retryable

    @rule()
    def clean(self) -> None:
        self.run(self.depot.worker.maintenance.clean())

    @rule(is_dry=st.booleans())
    def collect_garbage(self, is_dry: bool) -> None:
        self.run(self.depot.handle(CollectGarbage(dry_run=is_dry), OPERATOR))

    @rule(pause=PAUSES)
    def let_time_pass(self, pause: timedelta) -> None:
        self.clock.now += pause

    @rule()
    def restart(self) -> None:
        self.run(self.depot.database.dispose())
        self.open()

    @invariant()
    def holds(self) -> None:
        for artifact_id, (_, manifest, content) in self.kept.items():
            assert self.run(self.depot.get(artifact_id)) == manifest, "a manifest never changes"
            assert self.depot.content_of(manifest) == content, "its bytes are there as they were"
        assert self.run(self.depot.rows("artifact_manifests")) == len(self.kept)

    def teardown(self) -> None:
        self.run(self.depot.database.dispose())
        self.loop.close()
        shutil.rmtree(self.folder)


class StoreLifeAtLength(StoreLife):
    pass


StoreLife.TestCase.settings = settings(max_examples=8, stateful_step_count=15)
StoreLifeAtLength.TestCase.settings = settings(max_examples=200, stateful_step_count=50)
TestStoreLife = StoreLife.TestCase
TestStoreLifeAtLength = pytest.mark.proof(StoreLifeAtLength.TestCase)
