"""Whatever an object store answers: a clear error or a later success, nothing lost, in the end no orphan."""

import asyncio
import random
import re
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

from mindbus.sql.database import Database
from tests.object_proxy import Asked, Fault, meddling
from tests.seaweed import ObjectServer
from tests.troubled_life import WAYS, Life, Trouble

AT_ONCE = 12
# As often as it is asked again before whoever wanted it hears of the trouble.
OFTEN = 6


class Lives:
    """Many artifacts side by side, each in a place of its own."""

    def __init__(self, folder: Path, migrated: Path, server: ObjectServer) -> None:
        self._folder, self._migrated, self._server = folder, migrated, server
        self._by_prefix: dict[str, Life] = {}
        self.through = ""

    def fault_of(self, asked: Asked) -> Fault | None:
        found = re.search(r"test-[0-9a-f]{12}", asked.target)
        return self._by_prefix[found[0]].fault_of(asked) if found else None

    async def live(self, way: str, trouble: Trouble | None = None) -> Life:
        """One of them, to its end."""
        folder = self._folder / f"{len(self._by_prefix)}"
        folder.mkdir()
        shutil.copy(self._migrated / "storage.db", folder)
        database = Database(f"sqlite+aiosqlite:///{folder / 'storage.db'}", "storage")
        life = Life(folder, database, self._server.place(), WAYS[way], trouble)
        self._by_prefix[life.prefix] = life
        try:
            await life.live(self.through)
        except BaseException as broken:
            broken.add_note(f"{way}: {trouble}")
            raise
        finally:
            await database.dispose()
        return life

    async def live_all(self, troubles: Sequence[tuple[str, Trouble]]) -> list[Life]:
        """Some at a time."""
        free = asyncio.Semaphore(AT_ONCE)

        async def one(way: str, trouble: Trouble) -> Life:
            async with free:
                return await self.live(way, trouble)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(way, trouble)) for way, trouble in troubles]
        return [task.result() for task in tasks]


CONDITIONAL = {"put_object", "copy_object", "complete_multipart_upload"}
# Alike for all, whichever way they came in; looked for alike in every one of these parts.
ALIKE = {"large", "large, in parts", "large, nothing guaranteed"}
LATER = {"collecting", "expiring", "deleting"}


def every_trouble(rehearsed: dict[str, Life]) -> Iterable[tuple[str, Trouble]]:
    """At every kind of request in every part of a life, once as well as often."""
    for way, life in rehearsed.items():
        for moment in dict.fromkeys(life.moments):
            is_known = moment.operation.startswith("list") and moment.part in {"expiring", "deleting"}
            if is_known or (way in ALIKE and moment.part in LATER):
                continue
            for fault in Fault:
                if fault is not Fault.CONFLICT or moment.operation in CONDITIONAL:
                    yield from ((way, Trouble(moment, fault, times)) for times in (1, OFTEN))


def one_of_each(troubles: Iterable[tuple[str, Trouble]]) -> list[tuple[str, Trouble]]:
    """Every kind of request with every fault, wherever it comes first."""
    return list({(trouble.moment.operation, trouble.fault): (way, trouble) for way, trouble in troubles}.values())


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=[pytest.mark.proof, pytest.mark.timeout(2400)])])
async def test_an_artifact_outlives_every_trouble(
    object_server: ObjectServer,
    migrated: Path,
    tmp_path: Path,
    every: bool,
    request: pytest.FixtureRequest,
    report: Callable[[str], None],
) -> None:
    seed = request.config.getoption("--seed") or secrets.randbits(32)
    began = time.monotonic()
    lives = Lives(tmp_path, migrated, object_server)
    async with meddling(str(object_server.account.endpoint_url), lives.fault_of) as lives.through:
        rehearsed = {way: await lives.live(way) for way in WAYS}
        troubles = list(every_trouble(rehearsed))
        random.Random(seed).shuffle(troubles)
        ended = await lives.live_all(troubles if every else one_of_each(troubles))

    assert not any(life.errors for life in rehearsed.values())
    assert all(life.troubled for life in ended)
    report(
        f"{len(ended)} of {len(troubles)} troubles, --seed {seed}: {sum(life.troubled for life in ended)} requests"
        f" went wrong, of which {sum(map(bool, (life.errors for life in ended)))} lives were told:"
        f" {dict(sum((life.errors for life in ended), Counter[str]()))}; {time.monotonic() - began:.0f} s"
    )
