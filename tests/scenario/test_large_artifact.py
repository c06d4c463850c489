"""A large artifact goes through in constant memory, on both ends."""

import json
import subprocess
import sys
from pathlib import Path

SIZE_MB = 200
# Chunks, threads, the allocator's mood; the artifact itself would be 200.
MOST_MB = 24

# A process of its own: the memory of this one tells of all tests before.
PROGRAM = """
import asyncio, json, sys
from pathlib import Path

from bus_schema.ids import mint
from mindbus.bus.testing import running
from mindbus.sdk.artifacts import open_artifacts
from mindbus.settings import Settings
from workers.fleet import FLEET

folder, size_mb = Path(sys.argv[1]), int(sys.argv[2])


def peak_mb():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


async def main():
    settings = Settings(amqp_url="memory://large", data_dir=folder)
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


asyncio.run(main())
"""


def test_two_hundred_megabytes_are_put_and_saved_in_constant_memory(tmp_path: Path) -> None:
    chunk = bytes(range(256)) * 4096
    with (tmp_path / "large").open("wb") as file:
        for number in range(SIZE_MB):
            file.write(number.to_bytes(4, "big") + chunk[4:])

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), str(SIZE_MB)], check=False, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)
    print(measured)
    assert measured["outcome"] == "registered"
    assert measured["file_mb"] < MOST_MB
    assert measured["stream_mb"] < MOST_MB
    assert _same(tmp_path / "large", tmp_path / "large.out")


def _same(one: Path, other: Path) -> bool:
    with one.open("rb") as left, other.open("rb") as right:
        while chunk := left.read(1 << 20):
            if chunk != right.read(1 << 20):
                return False
        return not right.read(1)
