"""A group of messages, an erasure, a collection: told once, with all that may be found after a crash at any point."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bus_schema.data import DeleteUser
from bus_schema.delegation import OPERATOR_ROLE
from bus_schema.storage_maintenance import Rebuild
from mindbus.files.packs import MAX_PACKED_BYTES
from mindbus.files.store import FolderFiles
from mindbus.runtime.processor import Processor
from mindbus.sql.database import Database
from storage_service.maintenance.erasure import FORGOTTEN
from storage_service.maintenance.manifest_copies import ManifestCopy, NotACopy, copy_key
from storage_service.service import open_storage
from tests.crashes.invariants import Invariants
from tests.crashes.schedules import Broken
from tests.crashes.storages import OPERATOR, Storage
from tests.crashes.uploads import Upload, a_batch, a_message, an_upload
from tests.crashes.watched_world import Image, Moment, WatchedWorld

RESEARCHER, CRITIC, VISITOR = "agent.researcher.1", "agent.critic.1", "user.visitor"
LARGE = b"large findings " * (MAX_PACKED_BYTES // 15 + 1)
OF_VISITOR = [
    an_upload("art_v", VISITOR, "msg_v", "0", b"the visitor's own words"),
    an_upload("art_w", VISITOR, "msg_w", "1", b"the visitor's " + LARGE),
]
GROUP = [
    an_upload("art_a", RESEARCHER, "msg_a", "2", b"findings"),
    a_batch(
        "msg_b",
        an_upload("art_b", RESEARCHER, "msg_b", "3", b"more findings"),
        an_upload("art_c", RESEARCHER, "msg_b", "4", b"findings for a day", "1d"),
    ),
    # The id is taken by another of the group: its savepoint is undone when it has written already.
    an_upload("art_a", RESEARCHER, "msg_d", "5", b"other findings"),
    an_upload("art_e", CRITIC, "msg_e", "6", b"findings"),
    an_upload("art_l", CRITIC, "msg_l", "7", LARGE),
]
_FORGET_ID = "msg_forget"
_FORGET = a_message(DeleteUser(user_id="visitor"), _FORGET_ID, "user.local", OPERATOR_ROLE)

Work = Callable[[WatchedWorld, Storage], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Chapter:
    """What one process does; `kinds` are how its effects begin: without any of them, nothing would be proved."""

    name: str
    work: Work
    kinds: tuple[str, ...]
    uploads: tuple[Upload, ...] = ()
    forgets: bool = False


_REGISTERING = (
    *("create packs", "fsync folder packs", "write packs", "fsync packs"),
    *("create objects/.tmp", "fsync objects/.tmp", "link objects", "fsync folder objects", "unlink objects/.tmp"),
    *("commit of blobs", "commit of artifact_manifests", "publish event", "publish reply", "ack", "commit of inbox"),
    *("mkdir manifests", "rename manifests", "fsync folder manifests", "unlink staging", "commit of spent_uploads"),
)
_FORGETTING = (
    *("commit of agent_data", "publish reply", "ack", "commit of inbox"),
    *("unlink manifests", "fsync folder manifests", "unlink objects", "fsync folder objects", "rmdir objects"),
    *("write packs", "fsync packs", "commit of removals", "commit of blobs, removals"),
)
_COLLECTING = (
    *("commit of artifact_manifests, notices", "commit of blobs, removals", "commit of blobs, notices, removals"),
    *("fsync objects/.tmp", "rename orphans", "fsync folder orphans", "write packs", "fsync packs", "unlink packs"),
    *("rename manifests", "commit of notices, outbox", "publish event", "commit of outbox", "unlink orphans"),
)
CHAPTERS = (
    Chapter("alone", WatchedWorld.settle, ("mkdir packs", *_REGISTERING), tuple(OF_VISITOR)),
    Chapter("group", WatchedWorld.settle, _REGISTERING, tuple(GROUP)),
    Chapter("forget", WatchedWorld.settle, _FORGETTING, forgets=True),
    Chapter("collect", WatchedWorld.tidy_up, _COLLECTING),
)
# Of the visitor, once forgotten: words, identity, artifacts.
_FORGOTTEN = (b"the visitor's", b"user.visitor", b"art_v", b"art_w")
# Nobody cuts the power of a world that is not watched.
_QUICK = {"journal_mode": "WAL", "foreign_keys": "ON", "synchronous": "OFF"}


class Tales:
    """The chapters one after the other, each told by a process of its own, and what comes of its crashes."""

    def __init__(self, folder: Path, migrated: Path, kind: type[Processor] = Processor) -> None:
        self._folder, self._kind = folder, kind
        self._empty = (migrated / "storage.db").read_bytes()
        # To open another for each crash would be to have every statement compiled again.
        self._quick = Database(f"sqlite+aiosqlite:///{folder}/recovered/storage.db", "storage", _QUICK)
        self._rebuilt = Database(f"sqlite+aiosqlite:///{folder}/rebuilt.db", "storage", _QUICK)

    async def tell(self) -> AsyncIterator[tuple[Chapter, WatchedWorld]]:
        """Tell each chapter to its end. Raises Broken."""
        image = Image({}, self._empty, (), datetime.now(UTC), Invariants(is_alone=True))
        for chapter in CHAPTERS:
            world = WatchedWorld(self._folder / chapter.name, image, self._kind)
            try:
                _ask(world, chapter)
                with world.disk.watched():
                    await chapter.work(world, world.start())
                world.require_unbroken()
                image = world.image()
            finally:
                await world.close()
            yield chapter, world

    async def tell_again(self, chapter: Chapter, image: Image) -> list[Moment]:
        """Have a new process find it and go on with the chapter, watched in turn. Raises Broken."""
        world = WatchedWorld(self._folder / "again", image, self._kind)
        try:
            with world.disk.watched():
                await world.settle(storage := world.start())
                if chapter.work is not WatchedWorld.settle:
                    await chapter.work(world, storage)
            world.require_unbroken()
        finally:
            await world.close()
        return world.moments

    async def recover(self, image: Image, *, is_long: bool = True) -> None:
        """Have a new process find it. Raises Broken."""
        world = WatchedWorld(self._folder / "recovered", image, self._kind, self._quick)
        try:
            storage = world.start()
            await world.settle(storage)
            self._require_settled(world)
            if image.late:
                world.broker.pending += image.late
                await world.settle(storage)
                self._require_settled(world)
            await storage.audit()
            if is_long:
                await world.tidy_up(storage)
                await self._require_quiet(world)
        finally:
            await world.close()

    def _require_settled(self, world: WatchedWorld) -> None:
        """Whoever waits for an answer has it; nothing is left to do; whoever is forgotten is."""
        world.look()
        broken = world.invariants.broken
        if unanswered := world.invariants.asked.keys() - world.invariants.answers.keys():
            broken.append(f"never answered: {sorted(unanswered)}")
        for what, query in _LEFT.items():
            if left := world.commits.rows(query):
                broken.append(f"{what} are left over: {left}")
        if _FORGET_ID in world.invariants.asked:
            for file in filter(Path.is_file, world.root.rglob("*")):
                if told := [word for word in _FORGOTTEN if word in file.read_bytes()]:
                    broken.append(f"{file.relative_to(world.root)} still says {told}")
        broken += filter(None, (_trouble_with_copy(world, each) for each in world.invariants.artifacts))
        world.require_unbroken()

    async def _require_quiet(self, world: WatchedWorld) -> None:
        """Nothing is left over in the store; a lost database is rebuilt from it whole."""
        world.look()
        found = {folder: [each.key async for each in world.blobs.listing(folder)] for folder in _FOLDERS}
        objects = found.pop("objects/sha256") + found.pop("packs")
        world.invariants.require_quiet(found | {"dead letters": world.broker.dead}, objects)
        world.require_unbroken()
        file = self._folder / "rebuilt.db"
        file.write_bytes(self._empty)
        rebuilt = open_storage(self._rebuilt, FolderFiles(world.root, world.root.as_uri()), world.clock)
        rebuilt.maintenance.blobs = world.blobs
        page = await rebuilt.maintenance.rebuild(Rebuild(limit=5000, deep=True), OPERATOR)
        await self._rebuilt.dispose()
        with closing(sqlite3.connect(file)) as connection:
            rows = connection.execute(_PLACES).fetchall()
        if page.lost or rows != world.commits.rows(_PLACES):
            raise Broken(f"rebuilt: {page}, {rows}")


def _trouble_with_copy(world: WatchedWorld, artifact_id: str) -> str:
    """Why the copy of a manifest says otherwise than its row, or nothing."""
    try:
        copied = ManifestCopy.from_bytes((world.root / copy_key(artifact_id)).read_bytes())
    except (FileNotFoundError, NotACopy) as error:
        return f"{artifact_id} has no copy of its manifest: {error!r}"
    place = copied.content.key
    return "" if place == world.invariants.artifacts[artifact_id].object_key else f"the copy leads to {place}"


_PLACES = f"""
SELECT id, sha256, generation, pack, pack_offset
FROM artifact_manifests LEFT JOIN blobs USING (sha256, generation)
WHERE owner != '{FORGOTTEN}' AND expired_at IS NULL ORDER BY id
"""
_LEFT = {
    "messages to be published": "SELECT message_id FROM inbox WHERE NOT published",
    "rows of the outbox": "SELECT seq FROM outbox",
    "spent uploads": "SELECT upload_key FROM spent_uploads",
    "untold events": "SELECT * FROM notices",
}
_FOLDERS = ("staging", "objects/.tmp", "orphans", "objects/sha256", "packs")


def _ask(world: WatchedWorld, chapter: Chapter) -> None:
    for upload in chapter.uploads:
        for part in upload.parts:
            world.stage(part.key, part.content)
        world.invariants.asked[upload.message_id] = upload
        world.broker.pending.append(upload.message)
    if chapter.forgets:
        world.invariants.asked[_FORGET_ID] = None
        world.broker.pending.append(_FORGET)
