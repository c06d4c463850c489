"""Large data waits in the file store, digest-checked."""

import os
from pathlib import Path

import pytest
from pydantic import BaseModel

from mindbus import Command, Settings, Worker, connect, on_command
from mindbus.bus.claims import ClaimLost, Claims, ClaimTooLarge
from mindbus.files.keys import InvalidKey
from mindbus.files.store import FileStore, StoreNotSupported, open_folder
from mindbus.testing import running


@pytest.fixture
def files(tmp_path: Path) -> FileStore:
    return open_folder(tmp_path.as_uri())


async def test_what_was_deposited_is_redeemed(files: FileStore) -> None:
    claims = Claims(files)
    data = {"text": "Большой текст " * 1000, "number": 1.5, "nothing": None}

    assert await claims.redeem(await claims.deposit(data)) == data


async def test_a_claim_is_on_disk_under_its_name_before_a_message_points_to_it(
    tmp_path: Path, files: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}"))))

    key = await Claims(files).deposit({"a": 1})

    claim = tmp_path / key
    made = [folder for folder in claim.parents if folder.is_relative_to(tmp_path) and folder != claim.parent]
    *folders, content, last = synced
    # The bytes, then that the folder has them; that each new folder is there.
    assert (content.parent, content.suffix, last) == (claim.parent, ".part", claim.parent)
    assert set(folders) == set(made)


async def test_the_same_data_is_one_claim(files: FileStore) -> None:
    claims = Claims(files)

    assert await claims.deposit({"a": 1}) == await claims.deposit({"a": 1})


async def test_other_bytes_under_a_claim_are_found_out(files: FileStore) -> None:
    claims = Claims(files)
    key = await claims.deposit({"a": 1})
    files.put(key, b'{"a": 2}')

    with pytest.raises(ClaimLost, match="not what its digest says"):
        await claims.redeem(key)


async def test_a_claim_has_a_limit(files: FileStore) -> None:
    with pytest.raises(ClaimTooLarge, match="register it as an artifact"):
        await Claims(files).deposit({"text": "x" * (64 * 1024 * 1024)})


@pytest.mark.parametrize(
    "key", ["../x", "/etc/passwd", "a//b", "a/../b", "", "a/", ".hidden", "a\0b", "file:///x", "~root"]
)
def test_a_key_is_a_relative_path_of_plain_names(files: FileStore, key: str) -> None:
    with pytest.raises(InvalidKey):
        files.open_read(key)


@pytest.mark.parametrize("url", ["github://a:b@/", "ftp://host/x", "file://host/x", "relative/path", "memory://x"])
def test_a_store_that_is_not_supported_is_refused(url: str) -> None:
    with pytest.raises(StoreNotSupported):
        open_folder(url)


class Echoed(BaseModel):
    """The text again."""

    text: str


class Echo(Command[Echoed], domain="claims_test", action="echo"):
    """Return a text."""

    text: str


class Keeper(Worker):
    name = "claims_test"
    direct_files = True

    @on_command
    async def echo(self, command: Echo) -> Echoed:
        return Echoed(text=command.text)


async def test_a_worker_with_direct_files_needs_no_signed_addresses(tmp_path: Path) -> None:
    settings = Settings(amqp_url=f"memory://{tmp_path}", data_dir=tmp_path)
    signed = settings.model_copy(update={"artifacts_access": "presigned"})

    async with running(lambda _context: Keeper(), settings=signed), connect(settings=settings) as bus:
        echoed = await bus.request(Echo(text="x" * 100_000), timeout_s=5)

    assert len(echoed.text) == 100_000
