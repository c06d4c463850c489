"""The command `doctor`: checks this machine and the fleet that runs on it."""

import asyncio
import os
import platform
import secrets
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import typer
from rich.text import Text
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from config.settings import FleetSettings
from mindbus.bus.connection import NoBroker, find_broker
from mindbus.cli.console import say, show_json, show_table
from mindbus.cli.environment import read_settings
from mindbus.cli.errors import CommandError
from mindbus.cli.options import Json
from mindbus.cli.session import require_reachable, run
from mindbus.files.store import StoreNotSupported, has_direct_access, open_files
from mindbus.health import HealthFolder, WorkerUnhealthy
from mindbus.management import ManagementUnavailable, QueueState, open_management
from mindbus.registry import installed_workers
from mindbus.sql.database import Database
from mindbus.version import __version__
from mindbus_fleet.cli.service_checks import CheckResult, Status, dialogue_files, dialogue_queues, vectors_of_glm
from mindbus_fleet.node.installation import RabbitMQMissing, find_rabbitmq
from mindbus_fleet.supervision.run_folder import RunFolder

app = typer.Typer()
_STYLES = {"ok": "green", "warning": "yellow", "failed": "bold red"}
OLDEST_PYTHON = (3, 11)
_LITTLE_BYTES = 2 * 1024**3
_TOO_LITTLE_BYTES = 200 * 1024**2
_DEEP = 10_000
_DATABASES = ("storage", "orchestrator", "glm")


@app.command()
def doctor(as_json: Json = False) -> None:
    """Check this machine and what runs on it; exit 1 on a failure, 0 on mere warnings.

    [bold]Example[/bold]

    mindbus doctor
    """
    findings = run(examine(read_settings(FleetSettings)))
    counts = Counter(finding.status for finding in findings)
    if as_json:
        show_json({"ok": not counts["failed"], "checks": findings})
    else:
        show_table(("check", "status", "finding"), (_row(finding) for finding in findings))
        say(f"{counts['ok']} ok, {counts['warning']} warnings, {counts['failed']} failed")
    if counts["failed"]:
        raise typer.Exit(1)


def _row(finding: CheckResult) -> tuple[object, ...]:
    return finding.check, Text(finding.status, style=_STYLES[finding.status]), finding.detail


async def examine(settings: FleetSettings) -> list[CheckResult]:
    """Look at everything."""
    data_dir = settings.data_dir.absolute()
    findings = [_python(), _versions(), _data_dir(data_dir), _disk(data_dir), _rabbitmq(settings)]
    findings += await _broker(settings)
    findings.append(await asyncio.to_thread(_files, settings))
    findings += [await _database(service, settings) for service in _DATABASES]
    findings.append(await vectors_of_glm(settings))
    findings += await asyncio.to_thread(lambda: [*dialogue_files(settings)])
    return [*findings, *_workers(settings)]


def _python() -> CheckResult:
    is_new_enough = sys.version_info >= OLDEST_PYTHON
    return CheckResult(check="Python", status="ok" if is_new_enough else "failed", detail=platform.python_version())


def _versions() -> CheckResult:
    packages = ("aio-pika", "pydantic", "SQLAlchemy", "langgraph")
    detail = ", ".join([f"mindbus {__version__}", *(f"{package} {version(package)}" for package in packages)])
    return CheckResult(check="Versions", status="ok", detail=detail)


def _data_dir(folder: Path) -> CheckResult:
    existing = _existing(folder)
    if os.access(existing, os.W_OK | os.X_OK):
        return CheckResult(check="Data folder", status="ok", detail=f"{folder}")
    detail = f"{existing} is not writable: set MINDBUS_DATA_DIR to a folder of yours"
    return CheckResult(check="Data folder", status="failed", detail=detail)


def _disk(folder: Path) -> CheckResult:
    free_bytes = shutil.disk_usage(_existing(folder)).free
    detail = f"{free_bytes / 1024**3:.1f} GiB free"
    if free_bytes < _TOO_LITTLE_BYTES:
        return CheckResult(check="Disk", status="failed", detail=f"{detail}: RabbitMQ stops taking messages")
    if free_bytes < _LITTLE_BYTES:
        return CheckResult(check="Disk", status="warning", detail=f"{detail}: that is little")
    return CheckResult(check="Disk", status="ok", detail=detail)


def _rabbitmq(settings: FleetSettings) -> CheckResult:
    if settings.amqp_url is not None:
        return CheckResult(check="RabbitMQ", status="ok", detail="given by MINDBUS_AMQP_URL")
    try:
        return CheckResult(check="RabbitMQ", status="ok", detail=str(find_rabbitmq().server))
    except RabbitMQMissing as missing:
        return CheckResult(check="RabbitMQ", status="failed", detail=str(missing))


async def _broker(settings: FleetSettings) -> list[CheckResult]:
    try:
        amqp_url = find_broker(settings)
    except NoBroker:
        detail = "none is running here; `mindbus up` starts one"
        return [CheckResult(check="Broker", status="warning", detail=detail)]
    try:
        await require_reachable(amqp_url)
    except CommandError as silent:
        return [CheckResult(check="Broker", status="failed", detail=str(silent))]
    reachable = CheckResult(check="Broker", status="ok", detail="accepts connections")
    try:
        async with open_management(settings, amqp_url) as management:
            overview, queues = await management.overview(), await management.queues()
    except ManagementUnavailable as unavailable:
        return [reachable, CheckResult(check="Management API", status="warning", detail=str(unavailable))]
    detail = f"RabbitMQ {overview.get('rabbitmq_version')}, node {overview.get('node')}"
    return [
        reachable,
        CheckResult(check="Management API", status="ok", detail=detail),
        *_queues(queues),
        dialogue_queues(queues),
    ]


def _queues(queues: Sequence[QueueState]) -> list[CheckResult]:
    dead = [f"{queue.depth} in {queue.name}" for queue in queues if _is_dead(queue) and queue.depth]
    # Event queues have no bound: nobody is refused while they grow.
    deep = [f"{queue.depth} in {queue.name}" for queue in queues if not _is_dead(queue) and queue.depth > _DEEP]
    looked = {"Dead letters": (dead, "see `mindbus dlq ls`"), "Deep queues": (deep, "is their worker running?")}
    return [
        CheckResult(
            check=check,
            status="warning" if found else "ok",
            detail=f"{'; '.join(found)}: {advice}" if found else "none",
        )
        for check, (found, advice) in looked.items()
    ]


def _is_dead(queue: QueueState) -> bool:
    return queue.name.endswith(".dead")


def _files(settings: FleetSettings) -> CheckResult:
    if not has_direct_access(settings):
        return CheckResult(check="File store", status="ok", detail="reached by addresses that storage signs; not tried")
    key = f"doctor/{secrets.token_hex(8)}"
    try:
        store = open_files(settings)
        store.put(key, b"probe")
        with store.open_read(key) as reader:
            is_same = reader.read() == b"probe"
        store.delete(key)
    except (StoreNotSupported, OSError) as trouble:
        return CheckResult(check="File store", status="failed", detail=f"{settings.files_url}: {trouble}")
    return CheckResult(check="File store", status="ok" if is_same else "failed", detail=settings.files_url)


async def _database(service: str, settings: FleetSettings) -> CheckResult:
    check = f"Database of {service}"
    database = Database(settings.database_of(service), schema=service)
    shown = database.url.render_as_string(hide_password=True)
    try:
        if database.is_sqlite and not await asyncio.to_thread(Path(database.url.database or "").exists):
            return CheckResult(check=check, status="ok", detail=f"{shown}: made at the first start")
        async with database.reading() as session:
            await session.execute(text("SELECT 1"))
    except (SQLAlchemyError, OSError) as trouble:
        return CheckResult(check=check, status="failed", detail=f"{shown}: {trouble}")
    finally:
        await database.dispose()
    return CheckResult(check=check, status="ok", detail=shown)


def _workers(settings: FleetSettings) -> Iterator[CheckResult]:
    fleet, health = installed_workers().checked(), HealthFolder(settings)
    running = {found.name for found in health.all_here()}
    for name in fleet.entries:
        try:
            found = health.require(name)
        except WorkerUnhealthy as unwell:
            # Who was never started here may run elsewhere.
            status: Status = "failed" if name in running and RunFolder(settings).is_taken() else "warning"
            yield CheckResult(check=f"Worker {name}", status=status, detail=str(unwell))
        else:
            yield CheckResult(
                check=f"Worker {name}", status="ok", detail=f"{found.state.replace('_', ' ')}, process {found.pid}"
            )
    for name, trouble in fleet.broken.items():
        yield CheckResult(check=f"Worker {name}", status="warning", detail=trouble)


def _existing(folder: Path) -> Path:
    return next(parent for parent in (folder, *folder.parents) if parent.exists())
