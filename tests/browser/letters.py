"""A message that dies for want of a file, so that it succeeds once the file is there."""

import asyncio
import hashlib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bus_schema.artifacts import Manifest
from bus_schema.ids import mint
from bus_schema.storage import RegisterArtifact
from bus_schema.uploads import RequestUpload
from config.settings import FleetSettings
from mindbus import connect

CONTENT = "Каток греет бассейн.\n".encode()
TRACE = "letters"


def send_a_dead_letter(data_dir: Path, amqp_url: str) -> tuple[str, Path]:
    """Which artifact it would have registered, where its file was missed."""
    # The browser's own loop runs in this thread.
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(asyncio.run, _send(data_dir, amqp_url)).result(60)


async def _send(data_dir: Path, amqp_url: str) -> tuple[str, Path]:
    async with connect("user.local", settings=FleetSettings(data_dir=data_dir, amqp_url=amqp_url)) as bus:
        checksum = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
        wanted = RequestUpload(content_type="text/markdown", size_bytes=len(CONTENT), checksum=checksum)
        upload = await bus.request(wanted)
        manifest = Manifest(
            id=mint("art"),
            trace_id=TRACE,
            created_by="user.local",
            created_at=datetime.now(UTC),
            artifact_type="note",
            content_type=wanted.content_type,
            uri=upload.uri,
            size_bytes=wanted.size_bytes,
            checksum=checksum,
            owner="user.local",
        )
        # Nobody waits for an answer, so that the refusal becomes a dead letter.
        await bus.send(RegisterArtifact(manifest=manifest), trace=TRACE)
    return manifest.id, Path(unquote(urlsplit(upload.uri).path))
