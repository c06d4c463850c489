"""The command `doctor`: checks this machine and the fleet that runs on it."""

import asyncio
import platform
import secrets
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated

import typer
from rich.text import Text
from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import SQLAlchemyError

from config.settings import FleetSettings
from mindbus.bus.connection import NoBroker, find_broker
from mindbus.cli.console import say, show_json, show_table
from mindbus.cli.errors import CommandError, read_settings
from mindbus.cli.options import Json
from mindbus.cli.session import require_reachable, run, shown_waiting
from mindbus.errors import MindBusError
from mindbus.files.store import StoreNotSupported, has_direct_access, open_files
from mindbus.health import HealthFolder, WorkerUnhealthy, is_alive
from mindbus.management import ManagementUnavailable, QueueState, open_management
from mindbus.redaction import without_secrets
from mindbus.registry import installed_workers
from mindbus.running_fleets import where_to_look
from mindbus.sql.database import Database
from mindbus.version import __version__
from mindbus_fleet.cli.security_checks import security
from mindbus_fleet.cli.service_checks import (
    CheckResult,
    Status,
    delivery_limit,
    dialogue_files,
    dialogue_queues,
    vectors_of_glm,
)
from mindbus_fleet.node.installation import RabbitMQMissing, find_rabbitmq
from mindbus_fleet.supervision.run_folder import RunFolder

app = typer.Typer()
_STYLES = {"ok": "green", "warning": "yellow", "failed": "bold red"}
OLDEST_PYTHON = (3, 11)
_LITTLE_BYTES = 2 * 1024**3
_TOO_LITTLE_BYTES = 200 * 1024**2
_DEEP = 10_000
_DATABASES = ("storage", "orchestrator", "glm", "swm", "lsm", "history")


@app.command()
def doctor(
    only_security: Annotated[
        bool, typer.Option("--security", help="Only who can get at what: files, users, connections.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check this machine and what runs on it; exit 1 on a failure, 0 on mere warnings.

    [bold]Examples[/bold]

    mindbus doctor

    mindbus doctor --security
    """
    settings = read_settings(FleetSettings)
    found = list(security(settings)) if only_security else run(_examine_visibly(settings))
    findings = [replace(finding, detail=without_secrets(finding.detail)) for finding in found]
    counts = Counter(finding.status for finding in findings)
    if as_json:
        show_json({"ok": not counts["failed"], "checks": [asdict(finding) for finding in findings]})
    else:
        show_table(("check", "status", "finding"), (_row(finding) for finding in findings))
        say(f"{counts['ok']} ok, {counts['warning']} warnings, {counts['failed']} failed")
    if counts["failed"]:
        raise typer.Exit(1)


def _row(finding: CheckResult) -> tuple[object, ...]:
    return finding.check, Text(finding.status, style=_STYLES[finding.status]), finding.detail


async def _examine_visibly(settings: FleetSettings) -> list[CheckResult]:
    async with shown_waiting("Looking …"):
        return await examine(settings)


async def examine(settings: FleetSettings) -> list[CheckResult]:
    data_dir = settings.data_dir.absolute()
    findings = [_python(), _versions(), _data_dir(data_dir), _disk(data_dir), _rabbitmq(settings)]
    findings += _supervisor(settings)
    findings += await _broker(settings)
    findings.append(await asyncio.to_thread(_files, settings))
    findings += [await _database(service, settings) for service in _DATABASES]
    findings.append(await vectors_of_glm(settings))
    findings += await asyncio.to_thread(lambda: [*dialogue_files(settings)])
    return [*findings, *_workers(settings)]


def _python() -> CheckResult:
    is_new_enough = sys.version_info >= OLDEST_PYTHON
    return CheckResult("Python", "ok" if is_new_enough else "failed", platform.python_version())


def _versions() -> CheckResult:
    packages = ("aio-pika", "pydantic", "SQLAlchemy", "langgraph")
    detail = ", ".join([f"mindbus {__version__}", *(f"{package} {version(package)}" for package in packages)])
    return CheckResult("Versions", "ok", detail)


def _data_dir(folder: Path) -> CheckResult:
    existing = _existing(folder)
    try:
        # A disk that has failed says only then that nothing can be written.
        with TemporaryFile(dir=existing) as probe:
            probe.write(b"probe")
    except OSError as refused:
        advice = "set MINDBUS_DATA_DIR to a folder of yours, on a disk that works"
        return CheckResult("Data folder", "failed", f"{existing} is not writable ({refused.strerror}): {advice}")
    return CheckResult("Data folder", "ok", f"{folder}")


def _disk(folder: Path) -> CheckResult:
    free_bytes = shutil.disk_usage(_existing(folder)).free
    detail = f"{free_bytes / 1024**3:.1f} GiB free"
    if free_bytes < _TOO_LITTLE_BYTES:
        return CheckResult("Disk", "failed", f"{detail}: RabbitMQ stops taking messages")
    if free_bytes < _LITTLE_BYTES:
        return CheckResult("Disk", "warning", f"{detail}: that is little")
    return CheckResult("Disk", "ok", detail)


def _rabbitmq(settings: FleetSettings) -> CheckResult:
    if settings.amqp_url is not None:
        return CheckResult("RabbitMQ", "ok", "given by MINDBUS_AMQP_URL")
    try:
        return CheckResult("RabbitMQ", "ok", str(find_rabbitmq().server))
    except RabbitMQMissing as missing:
        return CheckResult("RabbitMQ", "failed", str(missing))


def _supervisor(settings: FleetSettings) -> Iterator[CheckResult]:
    """Whether the fleet that was started here, and not stopped, still has somebody to keep it alive."""
    folder = RunFolder(settings)
    if (state := folder.state()) is None:
        return
    if is_alive(state.pid):
        yield CheckResult("Supervisor", "ok", f"process {state.pid}")
    else:
        advice = "`mindbus up -d` starts the fleet again"
        yield CheckResult("Supervisor", "failed", f"process {state.pid} has died, and all workers with it: {advice}")


async def _broker(settings: FleetSettings) -> list[CheckResult]:
    try:
        amqp_url = find_broker(settings)
    except NoBroker:
        return [CheckResult("Broker", "warning", "none is running here; `mindbus up -d` starts one")]
    try:
        await require_reachable(amqp_url)
    except CommandError as silent:
        return [CheckResult("Broker", "failed", str(silent))]
    reachable = CheckResult("Broker", "ok", "accepts connections")
    try:
        management = open_management(settings, amqp_url)
        overview, queues = await management.overview(), await management.queues()
    except ManagementUnavailable as unavailable:
        unseen = f"{unavailable}. Nor is it known whether queues have a delivery limit: RabbitMQ sets one from 4.0 on"
        return [reachable, CheckResult("Management API", "warning", unseen)]
    answers = CheckResult(
        "Management API", "ok", f"RabbitMQ {overview.get('rabbitmq_version')}, node {overview.get('node')}"
    )
    dead = [queue for queue in queues if queue.name.endswith(".dead") and queue.depth]
    # Event queues have no bound: nobody is refused while they grow.
    deep = [queue for queue in queues if not queue.name.endswith(".dead") and queue.depth > _DEEP]
    return [
        reachable,
        answers,
        _depths("Dead letters", dead, "see `mindbus dlq ls`"),
        _depths("Deep queues", deep, "is their worker running?"),
        delivery_limit(queues, str(overview.get("rabbitmq_version"))),
        dialogue_queues(queues, HealthFolder(settings).consuming()),
    ]


def _depths(check: str, queues: Sequence[QueueState], advice: str) -> CheckResult:
    depths = "; ".join(f"{queue.depth} in {queue.name}" for queue in queues)
    return CheckResult(check, "warning" if queues else "ok", f"{depths}: {advice}" if queues else "none")


def _files(settings: FleetSettings) -> CheckResult:
    if not has_direct_access(settings):
        return CheckResult("File store", "ok", "reached by addresses that storage signs; not tried")
    key = f"doctor/{secrets.token_hex(8)}"
    try:
        store = open_files(settings)
        store.put(key, b"probe")
        with store.open_read(key) as reader:
            is_same = reader.read() == b"probe"
        store.delete(key)
    except (StoreNotSupported, OSError) as trouble:
        return CheckResult("File store", "failed", f"{settings.files_url}: {trouble}")
    return CheckResult("File store", "ok" if is_same else "failed", settings.files_url)


async def _database(service: str, settings: FleetSettings) -> CheckResult:
    check = f"Database of {service}"
    database = Database(settings.database_of(service), schema=service)
    shown = database.url.render_as_string(hide_password=True)
    try:
        if database.is_sqlite and not await asyncio.to_thread(Path(database.url.database or "").exists):
            return CheckResult(check, "ok", f"{shown}: made at the first start")
        await asyncio.to_thread(database.require_sound)
        set_aside = await database.read(_count_quarantine)
    except (SQLAlchemyError, OSError, MindBusError) as trouble:
        return CheckResult(check, "failed", f"{shown}: {trouble}")
    finally:
        await database.dispose()
    if set_aside:
        detail = f"{shown}: {set_aside} unreadable messages in its table quarantine, with the reason: look at them"
        return CheckResult(check, "warning", detail)
    return CheckResult(check, "ok", shown)


def _count_quarantine(connection: Connection) -> int:
    if not inspect(connection).has_table("quarantine"):
        return 0
    return connection.scalar(text("SELECT count(*) FROM quarantine")) or 0


def _workers(settings: FleetSettings) -> Iterator[CheckResult]:
    fleet, health = installed_workers().checked(apart=True), HealthFolder(settings)
    running = {found.name for found in health.all_here()}
    if not running:
        advice = f"none runs on this host: start them with `mindbus up -d`. {where_to_look(settings)}"
        yield CheckResult("Workers", "warning", advice)
    for name in fleet.entries if running else ():
        try:
            found = health.require(name)
        except WorkerUnhealthy as unwell:
            # Who was never started here may run elsewhere.
            status: Status = "failed" if name in running and RunFolder(settings).is_taken() else "warning"
            yield CheckResult(f"Worker {name}", status, str(unwell))
        else:
            told = f"{found.state.replace('_', ' ')}, process {found.pid}"
            note = f"{told}; {found.note}" if found.note else told
            yield CheckResult(f"Worker {name}", "warning" if found.note else "ok", note)
    for name, trouble in fleet.broken.items():
        yield CheckResult(f"Worker {name}", "warning", trouble)


def _existing(folder: Path) -> Path:
    return next(parent for parent in (folder, *folder.parents) if parent.exists())
