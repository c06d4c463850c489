"""A producer that dies anywhere on an artifact's way to storage loses nothing, registers nothing twice."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bus_schema.artifacts import Manifest
from bus_schema.storage import Registration
from mindbus.files.store import FolderFiles
from mindbus.testing.wait import until
from tests.sdk_kit import TRACE, Bench, FakeStorage


class Crashed(BaseException):
    """The process is gone."""


class BrittleFiles(FolderFiles):
    """Dies at an upload: before it, in the middle of it, after it."""

    moment: str = ""

    def upload(self, key: str, source: Path, tell: Callable[[int], None] | None = None) -> None:
        if self.moment == "before staging":
            raise Crashed
        if self.moment == "while staging":
            self.put(key, source.read_bytes()[:2])
            raise Crashed
        super().upload(key, source, tell)
        if self.moment == "after staging":
            raise Crashed


class BrittleStorage(FakeStorage):
    """Its asker dies as it asks, or before it hears the answer."""

    moment: str = ""

    async def register(self, manifest: Manifest) -> Registration:
        if self.moment == "before registering":
            raise Crashed
        registration = await super().register(manifest)
        if self.moment == "after registering":
            raise Crashed
        return registration


@pytest.mark.parametrize(
    ("moment", "moves"),
    [
        ("before staging", False),
        ("while staging", False),
        ("after staging", False),
        ("before registering", False),
        ("after registering", False),
        ("before registering", True),
        ("after registering", True),
    ],
)
async def test_what_was_put_is_registered_once_whenever_its_producer_dies(
    bench: Bench, moment: str, moves: bool
) -> None:
    bench.moves = moves
    files = BrittleFiles(Path(bench.files.root), bench.files.url)
    storage = BrittleStorage(bench.files)
    bench.files, bench.storage = files, storage
    files.moment = storage.moment = moment
    with pytest.raises(Crashed):
        async with bench.artifacts() as artifacts:
            await artifacts.put(b"paid for", artifact_type="draft", trace=TRACE, artifact_id="art_1")
    assert bench.waiting() == ["art_1"]
    files.moment = storage.moment = ""

    async with bench.artifacts() as heir:
        # A sync may take seconds while others write much.
        await until(lambda: not bench.waiting() and not bench.leftovers(), 30)

        assert await heir.get("art_1") == b"paid for"
    assert bench.leftovers() == []
    assert bench.set_aside() == []
