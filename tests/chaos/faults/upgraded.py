"""A fleet of the first release is stopped under load; this one takes over its data folder, queues included."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from mindbus.testing.wait import until
from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import ROOT, CommandFailed, Testbed

# The last commit of 0.1.0: a fresh clone has its history, not necessarily its tag.
FIRST_RELEASE = "61980349"
# More than a machine sends in that time.
_CHATS, _LOADED_S, _DONE_WITHIN_S = 200, 4.0, 60.0
_WORKERS = "history,storage"
_SENDER = f"""
import asyncio
from bus_schema.history import AppendHistory, HistoryMessage
from mindbus import connect

async def main():
    async with connect() as bus:
        # A history keeps a hundred messages.
        for number in range({_CHATS * 90}):
            said = {{"id": f"msg_{{number}}", "role": "user", "content": "!", "timestamp": "2026-03-10T09:00:00Z"}}
            message = HistoryMessage.model_validate(said)
            await bus.send(AppendHistory(key=f"chat_history:of_{{number % {_CHATS}}}", messages=(message,)))
            print(f"sent msg_{{number}}", flush=True)

asyncio.run(main())
"""


async def inflict(bed: Testbed) -> int:
    folder = bed.folder / "upgraded"
    released = await asyncio.to_thread(_checked_out, folder / "code")
    data = folder / "data"
    older = _environment(released, data)
    await _mindbus(older, "up", "-d", "--workers", _WORKERS)
    sender = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "ignore", "-c", _SENDER), env=older, cwd=released, stdout=asyncio.subprocess.PIPE
    )
    reading = asyncio.create_task(sender.communicate())
    await bed.last(_LOADED_S)
    await _mindbus(older, "down")
    sender.kill()
    output, _ = await reading
    sent = {line.split()[1] for line in output.decode(errors="replace").splitlines() if line.startswith("sent ")}
    newer = _environment(ROOT, data)
    await _mindbus(newer, "up", "-d", "--workers", _WORKERS)
    try:
        await until(lambda: sent <= _kept(data).keys(), _DONE_WITHIN_S, "all that was sent to the older fleet is there")
        kept = _kept(data)
    finally:
        await _mindbus(newer, "down")
    if doubled := [message for message, times in kept.items() if times > 1]:
        raise CommandFailed(f"{len(doubled)} of {len(sent)} messages are there twice: {doubled[:3]}")
    return len(sent)


def _checked_out(folder: Path) -> Path:
    """The tree of the first release. Raises CommandFailed where the clone is shallow."""
    archive = subprocess.run(["git", "archive", FIRST_RELEASE], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        raise CommandFailed(f"the history has no {FIRST_RELEASE}: {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as tree:
        tree.extractall(folder, filter="data")
    return folder


def _environment(code: Path, data: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MINDBUS_")}
    return inherited | {"PYTHONPATH": str(code), "MINDBUS_DATA_DIR": str(data)}


async def _mindbus(environment: Mapping[str, str], *arguments: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "ignore", "-m", "mindbus.cli.main", *arguments),
        env=environment,
        cwd=environment["PYTHONPATH"],
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise CommandFailed(f"mindbus {' '.join(arguments)}: {process.returncode}\n{output.decode(errors='replace')}")


def _kept(data: Path) -> Counter[str]:
    """Messages by id, with how often each is in a history."""
    connection = sqlite3.connect(data / "history.db")
    try:
        rows: list[tuple[Any]] = connection.execute("SELECT messages FROM histories").fetchall()
    finally:
        connection.close()
    return Counter(message["id"] for (messages,) in rows for message in json.loads(messages))


FAULT = Fault(inflict, has_own_fleet=True)
