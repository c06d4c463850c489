"""A large artifact goes through in constant memory, on both ends."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.seaweed import Place

SIZE_MB = 200
# Chunks, threads, the allocator's mood; the artifact itself would be 200.
MOST_MB = 24
# Just enough to be sent in parts, some of which are under way at once.
SIZE_IN_S3_MB = 90
MOST_IN_S3_MB = 60

# A process of its own: the memory of this one tells of all tests before.
PROGRAM = """
import asyncio, json, sys
from pathlib import Path

from bus_schema.ids import mint
from mindbus.testing.deliver import running
from mindbus.logs import configure_logs
from mindbus.sdk.artifacts import open_artifacts
from config.settings import FleetSettings
from tests.installed import FLEET

folder, size_mb, settings = Path(sys.argv[1]), int(sys.argv[2]), FleetSettings.model_validate_json(sys.argv[3])


def peak_mb():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


async def main():
    async with running(FLEET["storage"], settings=settings, identity="user.local") as bus:
        async with open_artifacts(bus, settings) as artifacts:
            async def through(source, target):
                put = await artifacts.put(source, artifact_type="recording", trace="t1")
                await artifacts.save(put.ref.artifact_id, target, trace="t1")
                return put.outcome

            (folder / "small").write_bytes(b"small")
            await through(folder / "small", folder / "small.out")
            before = peak_mb()
            outcome = await through(folder / "large", folder / "large.out")
            after = peak_mb()

            async def stream():
                for number in range(size_mb):
                    yield bytes([number]) * 1024 * 1024

            await through(stream(), folder / "stream.out")
            print(json.dumps({"outcome": outcome, "file_mb": after - before, "stream_mb": peak_mb() - before}))


configure_logs("ERROR", "console")
asyncio.run(main())
"""


def test_two_hundred_megabytes_are_put_and_saved_in_constant_memory(tmp_path: Path) -> None:
    measured = _measured(tmp_path, SIZE_MB, {})

    assert measured["outcome"] == "registered"
    assert measured["file_mb"] < MOST_MB
    assert measured["stream_mb"] < MOST_MB


def test_what_an_object_store_keeps_is_put_and_saved_in_constant_memory(tmp_path: Path, s3_place: Place) -> None:
    chosen = s3_place.settings().model_dump(mode="json", exclude_none=True)

    measured = _measured(tmp_path, SIZE_IN_S3_MB, chosen)

    assert measured["outcome"] == "registered"
    assert measured["file_mb"] < MOST_IN_S3_MB
    assert measured["stream_mb"] < MOST_IN_S3_MB


def _measured(folder: Path, size_mb: int, chosen: dict[str, object]) -> dict[str, Any]:
    """Agent and storage in one process: what both have grown by, once the same bytes are back."""
    chunk = bytes(range(256)) * 4096
    with (folder / "large").open("wb") as file:
        for number in range(size_mb):
            file.write(number.to_bytes(4, "big") + chunk[4:])
    settings = json.dumps(chosen | {"amqp_url": "memory://large", "data_dir": str(folder)})
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), str(size_mb), settings],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert _same(folder / "large", folder / "large.out")
    measured: dict[str, Any] = json.loads(done.stdout)
    print(measured)
    return measured


def _same(one: Path, other: Path) -> bool:
    with one.open("rb") as left, other.open("rb") as right:
        while chunk := left.read(1 << 20):
            if chunk != right.read(1 << 20):
                return False
        return not right.read(1)
