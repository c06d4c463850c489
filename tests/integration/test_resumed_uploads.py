"""A large artifact on its way into an object store goes on where it was, whatever interrupted it."""

import asyncio
import hashlib
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from config.settings import FleetSettings
from mindbus import connect
from mindbus.files.s3_store import WHOLE_BYTES
from mindbus.files.store import open_files
from mindbus.sdk.access import DirectAccess
from mindbus.sdk.artifacts import Artifacts
from mindbus.sdk.registration import StoragePolicy
from mindbus.testing.wait import until
from tests.metered_link import MeteredLink, metered_link
from tests.sdk_kit import TRACE, FakeStorage, Naps
from tests.seaweed import Place

MIB = 1024 * 1024
PART_BYTES = 5 * MIB
AT_ONCE = 2
SIZE_BYTES = WHOLE_BYTES + 8 * MIB
# In the middle of a part.
INTERRUPTED_AFTER_BYTES = 37 * MIB
# Headers, besides what was on the way but not yet there.
SLACK_BYTES = 4 * MIB
LONG_S = 90

PROGRAM = """
import asyncio, sys
from pathlib import Path

from tests.integration.test_resumed_uploads import put
from tests.seaweed import Place
from mindbus.files.s3_bucket import S3Account

link, endpoint, access_key, secret_key, region, url, folder = sys.argv[1:]
place = Place(S3Account(endpoint, access_key, secret_key, region), url)
asyncio.run(put(place, link, Path(folder)))
"""


@pytest.fixture
async def link(s3_place: Place) -> AsyncIterator[MeteredLink]:
    async with metered_link(str(s3_place.account.endpoint_url)) as made:
        yield made


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "запись.bin"
    path.write_bytes(os.urandom(SIZE_BYTES))
    return path


@asynccontextmanager
async def agent(place: Place, link_url: str, folder: Path) -> AsyncIterator[tuple[Artifacts, FakeStorage]]:
    """One that reaches the store over the link alone."""
    more = {"amqp_url": f"memory://{folder}", "data_dir": folder / "data"}
    parts = {"s3_part_bytes": PART_BYTES, "s3_concurrency": AT_ONCE, "s3_endpoint_url": link_url}
    settings: FleetSettings = place.settings(**more, **parts)
    storage = FakeStorage(place.files())
    access = DirectAccess(await asyncio.to_thread(open_files, settings))
    policy = StoragePolicy(sleep=Naps(), attempts=1)
    async with (
        connect("agent.researcher", settings=settings) as bus,
        Artifacts(bus, access, settings.data_dir, policy=policy, storage=storage) as artifacts,
    ):
        yield artifacts, storage


async def put(place: Place, link_url: str, folder: Path) -> None:
    """What the process does that is killed."""
    async with agent(place, link_url, folder) as (artifacts, _storage):
        await artifacts.put(folder / "запись.bin", artifact_type="recording", trace=TRACE, artifact_id="art_1")


async def test_what_a_killed_process_has_sent_is_not_sent_again(
    s3_place: Place, link: MeteredLink, source: Path
) -> None:
    account = s3_place.account
    told = [link.url, account.endpoint_url, account.access_key, account.secret_key, account.region, s3_place.url]
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, *map(str, told), str(source.parent))
    link.after(INTERRUPTED_AFTER_BYTES, process.kill)
    await process.wait()

    await _goes_on(s3_place, link, source)


async def test_what_was_sent_before_the_network_went_is_not_sent_again(
    s3_place: Place, link: MeteredLink, source: Path
) -> None:
    link.after(INTERRUPTED_AFTER_BYTES, link.cut)
    async with agent(s3_place, link.url, source.parent) as (artifacts, _storage):
        made = await artifacts.put(source, artifact_type="recording", trace=TRACE, artifact_id="art_1")
    assert made.is_pending
    link.mend()

    await _goes_on(s3_place, link, source)


async def test_bytes_of_which_nobody_knows_how_many_there_are_arrive_as_well(
    s3_place: Place, link: MeteredLink, source: Path
) -> None:
    async def stream() -> AsyncIterator[bytes]:
        with source.open("rb") as file:
            while piece := file.read(3 * MIB + 1):
                yield piece

    async with agent(s3_place, link.url, source.parent) as (artifacts, storage):
        made = await artifacts.put(stream(), artifact_type="recording", trace=TRACE)

    assert storage.manifests[made.ref.artifact_id].sha256 == _sha256_of(source)
    assert link.sent_bytes < SIZE_BYTES + SLACK_BYTES


async def _goes_on(place: Place, link: MeteredLink, source: Path) -> None:
    """The next life sends what is missing: in all, no more is sent twice than was under way."""
    assert INTERRUPTED_AFTER_BYTES <= link.sent_bytes < SIZE_BYTES
    async with agent(place, link.url, source.parent) as (artifacts, storage):
        await until(lambda: storage.manifests, LONG_S)
        assert _sha256_of(source) == storage.manifests["art_1"].sha256
        twice = link.sent_bytes - SIZE_BYTES
        print(f"sent twice: {twice / MIB:.1f} MiB of {SIZE_BYTES / MIB:.0f}")
        assert twice < AT_ONCE * PART_BYTES + SLACK_BYTES
        assert await artifacts.get("art_1", start=-5) == _last_of(source, 5)


def _sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _last_of(path: Path, count: int) -> bytes:
    return path.read_bytes()[-count:]
