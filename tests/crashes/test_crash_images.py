"""Groups of messages, packs, erasure: a crash at every write, sync, rename, commit, publication, acknowledgement."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mindbus.bus.decode import Decoded
from mindbus.bus.inbox import Outcomes
from mindbus.bus.outcomes import Outcome
from mindbus.files.packs import PackRecord
from mindbus.runtime.processor import Processor
from mindbus.sql.database import Database
from mindbus.sql.inbox import SqlInbox
from mindbus.sql.relay import OutboxRelay
from storage_service import packs
from storage_service.blobs import content_of
from storage_service.local_blobs import LocalBlobs
from storage_service.local_folders import NEW, Folders
from storage_service.packs import PackFolder
from tests.crashes.mutants import AcksBeforeItHandles, AnswersBeforeTheCommit
from tests.crashes.schedules import Broken
from tests.crashes.watched_chapters import CHAPTERS, Chapter, Tales
from tests.crashes.watched_world import Image, Moment, WatchedWorld

LONG = [pytest.mark.proof, pytest.mark.timeout(3600)]
NAMES = [chapter.name for chapter in CHAPTERS]


@pytest.fixture(autouse=True)
def _no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is a double: to wait for the real one proves nothing."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)


def crashes(moments: list[Moment], *, is_first: bool = False) -> Iterator[tuple[str, Image]]:
    """All that a crash at any of the moments may leave, each once; before another crash, what is synced matters."""
    seen = set[tuple[int, int]]()
    for moment in moments:
        for way, image in moment.images.items():
            synced = hash(frozenset(image.synced["cut"].items())) if is_first and image.synced is not None else 0
            if (image.fingerprint, synced) not in seen:
                seen.add((image.fingerprint, synced))
                yield f"{way} {moment.name}", image


async def recover_all(tales: Tales, moments: list[Moment], *, is_long: bool = False) -> int:
    """The number of crashes that a new process has recovered from. Raises Broken."""
    found = list(crashes(moments))
    for crash, image in found:
        try:
            await tales.recover(image, is_long=is_long)
        except Broken as broken:
            raise Broken(f"{crash}: {broken}") from broken
    return len(found)


def require_kinds(chapter: Chapter, world: WatchedWorld) -> None:
    """The chapter has told of all that it is about."""
    missing = [kind for kind in chapter.kinds if not any(seen.startswith(kind) for seen in world.kinds)]
    assert not missing, f"{chapter.name} has no {missing}, only {sorted(world.kinds)}"
    if chapter.name == "group":
        manifests = [shared for name, shared in world.commits.shared.items() if "artifact_manifests" in name]
        assert max(manifests) > 2
        assert world.commits.undone == 1
        assert world.kinds["fsync packs"] < world.kinds["write packs"]
    if chapter.work is WatchedWorld.settle:
        # Whatever a message has caused is in its row of the inbox.
        assert world.most_in_outbox == 0


@pytest.mark.parametrize("is_long", [False, pytest.param(True, marks=LONG)])
async def test_no_crash_at_any_point_breaks_a_promise(
    is_long: bool, tmp_path: Path, migrated: Path, report: Callable[[str], None]
) -> None:
    tales, told = Tales(tmp_path, migrated), []
    async for chapter, world in tales.tell():
        require_kinds(chapter, world)
        count = await recover_all(tales, world.moments, is_long=is_long)
        told.append(chapter.name)
        report(
            f"{chapter.name}: {world.kinds.total()} effects of {len(world.kinds)} kinds, {len(world.moments)} points,"
            f" {count} ways to be found after a crash there, none broke a promise"
        )
    assert told == NAMES


@pytest.mark.parametrize("name", [pytest.param(name, marks=LONG) for name in NAMES])
async def test_no_second_crash_while_the_first_is_mended_breaks_a_promise(
    name: str, tmp_path: Path, migrated: Path, report: Callable[[str], None]
) -> None:
    tales, first, both = Tales(tmp_path, migrated), 0, 0
    async for chapter, world in tales.tell():
        if chapter.name != name:
            continue
        for crash, image in crashes(world.moments, is_first=True):
            try:
                both += await recover_all(tales, await tales.tell_again(chapter, image))
            except Broken as broken:
                raise Broken(f"{crash}, then {broken}") from broken
            first += 1
    assert both > first > 0
    report(f"{name}: after {first} crashes, {both:,} second ones, none broke a promise")


class MarksBeforeItPublishes(Processor):
    """A row that is marked too early is nobody's to publish when its process dies."""

    async def _settle(self, message: Decoded, outcome: Outcome) -> None:
        inbox = self.worker.inbox
        assert isinstance(inbox, SqlInbox)
        inbox.mark_published(self.worker.name, message.envelope.id)
        await inbox.outbox.write_marks()
        await super()._settle(message, outcome)


async def _nothing(*_arguments: object) -> None:
    """Nothing is done, or found."""


async def _no_outcomes(*_arguments: object) -> Outcomes:
    return {}


def _replace_without_sync(blobs: LocalBlobs, key: str, content: bytes) -> None:
    with blobs._part() as (temporary, part), blobs.folders.holding(key, make=True) as (folders, name):
        with os.fdopen(os.open(part, NEW, 0o640, dir_fd=temporary), "wb") as target:
            target.write(content)
        os.rename(part, name, src_dir_fd=temporary, dst_dir_fd=folders[-1])
        blobs.folders.sync(key, folders)


def _erase_without_sync(pack: int, record: PackRecord) -> None:
    os.pwrite(pack, b"MBP0", record.offset)
    os.pwrite(pack, bytes(record.end - record.offset - 4), record.offset + 4)


async def _delete_without_sync(blobs: LocalBlobs, key: str) -> None:
    if (content := content_of(key)) is not None:
        blobs._packs.erase(content)
    (blobs.root / key).unlink(missing_ok=True)


def _sync_nothing(*_arguments: object) -> None:
    """As if it had been synced."""


# For each mutant, what is wrong in it alone.
MUTANTS: dict[str, type[Processor] | tuple[object, str, object]] = {
    "answers before the commit": AnswersBeforeTheCommit,
    "acknowledges before it handles": AcksBeforeItHandles,
    "marks before it publishes": MarksBeforeItPublishes,
    "forgets what it has handled": (SqlInbox, "outcomes_of", _no_outcomes),
    "waits for the message to come again": (OutboxRelay, "_republish", _nothing),
    "commits without waiting for the disk": (Database.__init__, "__defaults__", ({"synchronous": "NORMAL"},)),
    "syncs no pack": (PackFolder, "_sync", _sync_nothing),
    "syncs no name": (Folders, "sync", _sync_nothing),
    "copies a manifest without a sync": (LocalBlobs, "_replace", _replace_without_sync),
    "erases without a sync": (packs, "erase_record", _erase_without_sync),
    "erases no torn record": (packs, "is_whole", lambda _pack, _record: True),
    "deletes without a sync": (LocalBlobs, "delete", _delete_without_sync),
}


# The others show in the first.
_FOUND_IN = dict.fromkeys(("erases without a sync", "erases no torn record", "deletes without a sync"), "forget")


@pytest.mark.parametrize("mutant", [pytest.param(mutant, marks=LONG) for mutant in MUTANTS])
async def test_a_wrong_storage_is_found_out(
    mutant: str, tmp_path: Path, migrated: Path, monkeypatch: pytest.MonkeyPatch, report: Callable[[str], None]
) -> None:
    wrong = MUTANTS[mutant]
    if isinstance(wrong, tuple):
        monkeypatch.setattr(*wrong)
    tales = Tales(tmp_path, migrated, Processor if isinstance(wrong, tuple) else wrong)

    async def tell() -> None:
        async for chapter, world in tales.tell():
            if chapter.name == _FOUND_IN.get(mutant, chapter.name):
                await recover_all(tales, world.moments)

    with pytest.raises(Broken) as found:
        await tell()
    report(f"{mutant}: {str(found.value)[:200]}")
