"""Storage over a folder and SQLite, looked at after every effect: for each, all that a crash there may leave."""

import asyncio
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

from bus_schema.uploads import PackPlace
from mindbus.bus.claims import Claims
from mindbus.bus.sender import Sender
from mindbus.bus.topology import commands_queue, rungs_of
from mindbus.files.packs import read_pack
from mindbus.files.store import FolderFiles
from mindbus.runtime.processor import Processor
from mindbus.sql.database import Database
from mindbus.sql.inbox import SqlInbox
from storage_service.blobs import ContentGeneration, content_of
from storage_service.local_blobs import LocalBlobs
from storage_service.maintenance.erasure import FORGOTTEN
from storage_service.service import open_storage
from storage_service.tables import LIVE
from tests.crashes.gates import OpenGates, Process
from tests.crashes.invariants import Artifact, Invariants
from tests.crashes.memory_broker import MemoryBroker, Message
from tests.crashes.noted_database import Commits, NotedDatabase
from tests.crashes.schedules import Broken
from tests.crashes.storages import NOWHERE, Clock, Storage
from tests.crashes.volatile_disk import Files, VolatileDisk
from workers.storage.worker import StorageWorker

T = TypeVar("T")
_ROUNDS = 20
# A pin ends, and a day of grace; what a refusal has left is nobody's then, for a day; orphans are kept for a week.
_UNTIL_QUIET = (timedelta(hours=25, minutes=1), timedelta(hours=25), timedelta(days=8))


@dataclass(frozen=True, slots=True)
class Image:
    """All that a new process finds.

    The broker has dropped or dead-lettered the messages in `late`, which were committed. After a kill, `synced`
    tells what a power cut would still leave.
    """

    files: Files
    rows: bytes
    messages: tuple[Message, ...]
    now: datetime
    invariants: Invariants
    late: tuple[Message, ...] = ()
    synced: Mapping[str, Files] | None = None

    @property
    def fingerprint(self) -> int:
        """Equal for images in which nothing differs but empty folders."""
        files = frozenset(each for each in self.files.items() if not each[0].endswith("/"))
        told = (*self.invariants.answers, *self.invariants.events.values())
        messages = tuple(map(id, self.messages)), tuple(map(id, self.late))
        return hash((files, self.rows, messages, self.now, told))


@dataclass(frozen=True, slots=True)
class Moment:
    """A point between two effects, with what a crash there leaves: by the way to die, of the files and the broker."""

    name: str
    images: dict[str, Image]


class _Noting(OpenGates):
    """The broker's effects are noted, like those of disk and database."""

    def __init__(self, world: "WatchedWorld") -> None:
        super().__init__(asyncio.get_running_loop(), lambda: None)
        self._world = world

    async def effect(self, name: str, act: Callable[[], T], failure: Callable[[], Exception] | None = None) -> T:
        """As in Gates."""
        with self._world.disk.lock:
            self._world.note(f"before {name}")
            result = act()
            self._world.note(f"after {name}")
        await asyncio.sleep(0)
        return result


class WatchedWorld:
    """Begins as an image, and is watched unless its database is given to it.

    `moments` are the points at which anything differs, `kinds` counts all effects by name.
    """

    def __init__(self, folder: Path, image: Image, kind: type[Processor], database: Database | None = None) -> None:
        self._kind, self._database, self.is_watched = kind, database, database is None
        self.root, self._rows = folder / "artifacts", folder / "storage.db"
        shutil.rmtree(folder, ignore_errors=True)
        _write(self.root, image.files)
        self._rows.write_bytes(image.rows)
        self.disk = VolatileDisk(self.root, self.note)
        self.disk.adopt(image.synced)
        self.commits = Commits(self._rows, self.disk.lock, self.note)
        self.clock, self.invariants = Clock(image.now), image.invariants.copy()
        self.broker = MemoryBroker(_Noting(self))
        self.broker.pending = list(image.messages)
        self.broker.hear = self.invariants.hear
        self.late = image.late
        self.moments: list[Moment] = []
        self.kinds: Counter[str] = Counter()
        self.most_in_outbox = 0
        self._last = 0
        self._storages: list[Storage] = []
        self.look()

    def stage(self, key: str, content: bytes) -> None:
        """Put a file there, as an agent does."""
        _write(self.root, {key: content})
        self.disk.adopt()

    def start(self) -> Storage:
        """A fresh process."""
        database = self._database or NotedDatabase(self.commits, self._rows)
        worker = StorageWorker(open_storage(database, FolderFiles(self.root, self.root.as_uri()), self.clock))
        claims = Claims(FolderFiles(NOWHERE, NOWHERE.as_uri()))
        sender = Sender("storage", "1", "svc.storage", "reply.storage.1", claims)
        processor = self._kind(worker, sender, self.broker, rungs_of("1s"), commands_queue("storage"), {})
        assert isinstance(worker.inbox, SqlInbox)
        storage = Storage(Process("1"), processor, worker.inbox, worker)
        self._storages.append(storage)
        return storage

    async def settle(self, storage: Storage) -> None:
        """Handle all messages at once, publish what an earlier process has left, do what follows a commit."""
        await storage.worker.storage.blobs.sweep_temporary(self.clock())
        for _ in range(_ROUNDS):
            pending = [self.broker.deliver(each, storage.process) for each in list(self.broker.pending)]
            await asyncio.gather(storage.relay(), *map(storage.carry, pending))
            for work in (storage.relay, storage.clean, storage.tell, storage.relay):
                await work()
            if not self.broker.pending:
                return
        raise Broken("it never ends")

    async def tidy_up(self, storage: Storage) -> None:
        """Let a day pass, then the orphans' week, each with all that a storage does then."""
        for passes in _UNTIL_QUIET:
            self.clock.now += passes
            for work in (storage.collect, storage.tell, storage.relay, storage.clean, storage.audit):
                await work()

    def note(self, name: str) -> None:
        """Look at the world before or after an effect."""
        if self.commits.look() != self._looked_at:
            self.look()
            self.most_in_outbox = max(self.most_in_outbox, *self.commits.rows("SELECT count(*) FROM outbox")[0])
        if not self.is_watched:
            return
        if name.startswith("after "):
            self.kinds[name.removeprefix("after ")] += 1
        images = dict(self._images())
        last, self._last = self._last, hash(frozenset(image.fingerprint for image in images.values()))
        if last != self._last:
            self.moments.append(Moment(name, images))

    def image(self) -> Image:
        """All that is there now."""
        files = self.disk.found()["killed"]
        return Image(files, self.commits.now, tuple(self.broker.pending), self.clock(), self.invariants.copy())

    @property
    def blobs(self) -> LocalBlobs:
        """Those of the last process."""
        return _blobs_of(self._storages[-1])

    def look(self) -> None:
        """Have the invariants look at what is committed, and at its bytes."""
        self._looked_at = self.commits.look()
        artifacts, expired = dict[str, Artifact](), set[str]()
        for artifact_id, owner, expired_at, until, sha256, *place in self.commits.rows(_ARTIFACTS):
            if expired_at is None:
                artifacts[artifact_id] = Artifact(_key_of(sha256, *place), sha256)
            # Times are in UTC, in one form, so that their texts have their order.
            if owner == FORGOTTEN or (until is not None and until <= f"{self.clock():%Y-%m-%d %H:%M:%S.%f}"):
                expired.add(artifact_id)
        self.invariants.look(artifacts, partial(bytes_at, self.root), expired)
        for content in self.commits.rows(_CONTENTS):
            if bytes_at(self.root, _key_of(*content)) is None:
                self.invariants.broken.append(f"a content is in use without bytes at {_key_of(*content)}")

    def require_unbroken(self) -> None:
        """Raises Broken."""
        if self.invariants.broken:
            raise Broken("; ".join(self.invariants.broken))

    async def close(self) -> None:
        """End all processes, as a kill does, and look no more."""
        for storage in self._storages:
            await storage.worker.storage.database.dispose()
            _end(_blobs_of(storage))
        self.commits.close()

    def _images(self) -> Iterator[tuple[str, Image]]:
        in_hand = [delivery.message for delivery in self.broker.unsettled]
        waiting = (*self.broker.pending, *in_hand)
        committed = {message_id for (message_id,) in self.commits.rows("SELECT message_id FROM inbox")}
        late = tuple(message for message in in_hand if message.properties.message_id in committed)
        known, now = self.invariants.copy(), self.clock()
        ways = self.disk.found()
        for way, files in ways.items():
            image = Image(files, self.commits.on_disk, waiting, now, known)
            if way == "killed":
                image = replace(image, rows=self.commits.now, synced=ways)
            yield way, image
            if late:
                kept = tuple(message for message in waiting if message not in late)
                yield f"{way}, dropped", replace(image, messages=kept, late=late)


_ARTIFACTS = """
SELECT id, owner, expired_at, retention_until, sha256, generation, pack, pack_offset
FROM artifact_manifests LEFT JOIN blobs USING (sha256, generation)
"""
_CONTENTS = f"SELECT sha256, generation, pack, pack_offset FROM blobs WHERE state = '{LIVE}'"


def _key_of(sha256: str, generation: int, pack: str | None, offset: int | None) -> str:
    packed = None if pack is None else PackPlace(pack=pack, offset=offset or 0)
    return ContentGeneration(sha256, generation, packed).key


def bytes_at(root: Path, key: str) -> bytes | None:
    """An object's bytes, as an agent reads them."""
    content = content_of(key)
    assert content is not None
    if content.packed is not None:
        with suppress(FileNotFoundError):
            return read_pack(root, content.packed, content.sha256, content.generation)
    with suppress(FileNotFoundError):
        return (root / content.file_key).read_bytes()
    return None


def _write(root: Path, files: Files) -> None:
    root.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        (root / path if path.endswith("/") else (root / path).parent).mkdir(parents=True, exist_ok=True)
        if not path.endswith("/"):
            (root / path).write_bytes(content)


def _blobs_of(storage: Storage) -> LocalBlobs:
    blobs = storage.worker.storage.registrar.blobs
    assert isinstance(blobs, LocalBlobs)
    return blobs


def _end(blobs: LocalBlobs) -> None:
    """Give back the threads and files that a process would take along."""
    packs = blobs._packs
    for jobs in (blobs._jobs, packs._thread):
        jobs._pool.shutdown()
    for pack in filter(None, (packs._current, *packs._unsynced)):
        pack.close()
