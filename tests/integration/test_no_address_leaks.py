"""What storage signs is between it and the asker: no log, no table, no file, no event ever holds it."""

import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bus_schema.storage import GetArtifact
from config.settings import FleetSettings
from mindbus import ReplyError, connect
from mindbus.bus.deadletters import DeadLetters
from mindbus.logs import configure_logs
from mindbus.sdk.artifacts import open_artifacts
from mindbus.testing.wait import until
from tests.fleets import fleet_of, settings_for
from tests.greetings import Greet, Greeter
from tests.installed import FLEET
from tests.management import Management
from tests.raw_amqp import an_envelope, raw_publisher
from tests.seaweed import Place
from tests.taps import Body, every_body

SIGNATURE = b"X-Amz-Signature"
# The only ones who may be told: the askers themselves, on their own queues.
REPLIES = "mb.reply"


@pytest.fixture
def all_logs(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Every library tells all it has to tell."""
    caplog.set_level(logging.DEBUG)
    for name in ("httpx", "httpcore", "botocore", "aiobotocore", "s3fs", "aio_pika", "aiormq", "sqlalchemy"):
        caplog.set_level(logging.DEBUG, name)
    configure_logs("DEBUG", "json")
    yield caplog
    configure_logs("INFO", "console")


@pytest.fixture
async def bodies(vhost_url: str, vhost: str, management: Management) -> AsyncIterator[list[Body]]:
    async with every_body(vhost_url, vhost, management) as seen:
        yield seen


async def test_whatever_is_signed_is_seen_by_the_asker_alone(
    s3_place: Place,
    vhost_url: str,
    tmp_path: Path,
    bodies: list[Body],
    all_logs: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    secret_key = (s3_place.account.secret_key or "").encode()
    storage = s3_place.settings(amqp_url=vhost_url, data_dir=tmp_path / "storage", retry_rungs="50ms,100ms,300ms")
    agent = settings_for(vhost_url, tmp_path / "agent", artifacts_access="presigned")

    async with fleet_of(FLEET["storage"], settings=storage), fleet_of(Greeter, settings=agent):
        urls = await all_that_can_be_signed(agent)
        await a_dead_letter(vhost_url)
    written = all_files(tmp_path)
    told = f"{all_logs.text}\n{capfd.readouterr().err}".encode()

    assert len(secret_key) == 32
    assert len(urls) == 1
    assert b"HTTP Request: PUT" in told
    assert b"mb.cmd.storage.get_artifact" in b"".join(body.content for body in bodies)
    for where, seen in {"logs": told, "files": written, "events": heard(bodies)}.items():
        assert SIGNATURE not in seen, where
        assert secret_key not in seen, where
        assert not [url for url in urls if url.rpartition("=")[2].encode() in seen], where
    assert secret_key not in b"".join(body.content for body in bodies)


def all_files(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def heard(bodies: list[Body]) -> bytes:
    """All that was published but to the askers' own queues: commands, events, retries, dead letters."""
    assert {REPLIES, "mb.evt.storage", "mb.deadletter"} <= {body.exchange for body in bodies}
    return b"\n".join(body.content for body in bodies if body.exchange != REPLIES)


async def all_that_can_be_signed(settings: FleetSettings) -> list[str]:
    """Put, get, be denied, send what is too large for the bus."""
    async with connect("agent.researcher", settings=settings) as bus, open_artifacts(bus, settings) as artifacts:
        put = await artifacts.put(b"findings", artifact_type="draft", trace="run_1", visibility="private")
        await artifacts.get(put.ref.artifact_id)
        await bus.request(Greet(name="Anna", note="я" * 100_000))
        query = GetArtifact(artifact_id=put.ref.artifact_id, presigned=True)
        found = await bus.request(query)
        with pytest.raises(ReplyError):
            await bus.acting_as("agent.critic").request(query)
    return [found.presigned_url.url] if found.presigned_url else []


async def a_dead_letter(amqp_url: str) -> None:
    """One that asks for an address, in words that storage does not understand."""
    envelope = an_envelope("mb.cmd.storage.request_upload.v1", data={"checksum": "none", "presigned": True})
    async with raw_publisher(amqp_url) as raw:
        await raw.envelope(envelope, "storage")
    await until(lambda: DeadLetters(amqp_url).look("storage"), what="a dead letter")
