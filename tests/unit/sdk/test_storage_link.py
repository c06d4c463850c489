"""Requests to a storage that is slow: whoever asks for a registration again and again waits until it is answered."""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from bus_schema.messages import Command
from bus_schema.replies import Code
from bus_schema.storage import RegisterArtifact, RegisterArtifacts, Registration, RegistrationItem, RegistrationReport
from mindbus import Client
from mindbus.errors import NoReply, ReplyError
from mindbus.sdk.errors import ArtifactRejected, StorageAway
from mindbus.sdk.storage_link import StorageClient
from tests.crashes.test_doubles import a_manifest


@dataclass
class SlowStorage:
    """The bus, with a storage behind it that takes so long for each answer, or refuses everything at once."""

    takes_s: float
    refuses: bool = False
    waited_s: list[float] = field(default_factory=list)

    async def request(self, command: Command[Any], *, timeout_s: float, **_options: object) -> object:
        self.waited_s.append(timeout_s)
        if self.refuses:
            raise ReplyError(Code.INVALID, "no", {})
        if timeout_s < self.takes_s:
            raise NoReply(command.wire.type, timeout_s)
        if isinstance(command, RegisterArtifacts):
            return RegistrationReport(items=tuple(_item(each.id) for each in command.manifests))
        assert isinstance(command, RegisterArtifact)
        return Registration(artifact_id=command.manifest.id, version=1, sha256="0" * 64, outcome="registered")


def _item(artifact_id: str) -> RegistrationItem:
    return RegistrationItem(artifact_id=artifact_id, status="registered", version=1, sha256="0" * 64)


def over(storage: SlowStorage) -> StorageClient:
    return StorageClient(cast("Client", storage))


async def test_what_is_never_answered_in_time_is_waited_for_twice_as_long_each_time() -> None:
    storage = SlowStorage(takes_s=40)
    client, manifest = over(storage), a_manifest(size_bytes=0)
    for _ in range(5):
        with pytest.raises(StorageAway):
            await client.register(manifest)

    assert (await client.register(manifest)).outcome == "registered"
    assert storage.waited_s == pytest.approx([6, 6, 6, 12, 24, 48])


async def test_the_longest_wait_has_an_end_and_others_are_asked_for_as_before() -> None:
    storage = SlowStorage(takes_s=1000)
    client, manifest, other = (
        over(storage),
        a_manifest(size_bytes=0),
        a_manifest("art_2", size_bytes=0, uri="file:///2"),
    )
    for _ in range(8):
        with pytest.raises(StorageAway):
            await client.register(manifest)
    with pytest.raises(StorageAway):
        await client.register(other)

    assert storage.waited_s[-3:] == pytest.approx([48, 48, 6])


async def test_after_an_answer_the_next_is_expected_soon_again() -> None:
    storage = SlowStorage(takes_s=40)
    client, manifests = over(storage), [a_manifest(f"art_{n}", size_bytes=0, uri=f"file:///{n}") for n in range(2)]
    for _ in range(5):
        with pytest.raises(StorageAway):
            await client.register_all(manifests)
    await client.register_all(manifests)
    storage.takes_s = 1
    await client.register(manifests[0])

    assert storage.waited_s[-2:] == pytest.approx([48.8, 6])


async def test_a_refusal_is_an_answer() -> None:
    storage = SlowStorage(takes_s=0, refuses=True)
    client, manifest = over(storage), a_manifest(size_bytes=0)
    for _ in range(5):
        with pytest.raises(ArtifactRejected):
            await client.register(manifest)

    assert storage.waited_s == pytest.approx([6] * 5)
