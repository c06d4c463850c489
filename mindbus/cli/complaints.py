"""What is wrong, for the person who typed the command."""

from inspect import cleandoc

import typer

from agents.processes.cards import InvalidCard, UnknownCard
from bus_schema.replies import Code
from memory.glm.vector_relay import IndexGone
from memory.redis_link import WrongRedis
from memory.vectors.index import IndexAway, IndexOfAnotherSpace
from mindbus.bus.connecting import NoBroker
from mindbus.bus.deadletters import CannotReplay
from mindbus.bus.topology_admin import StillInUse
from mindbus.cli.console import errors, show_json
from mindbus.cli.failures import Failed, Misused
from mindbus.cli.options import wants_json
from mindbus.errors import BusUnavailable, ReplyError
from mindbus.files.s3_errors import StoreUnreachable
from mindbus.files.store import StoreNotSupported
from mindbus.management import ManagementUnavailable
from mindbus.sdk.failures import (
    ArtifactNotFound,
    ArtifactRefused,
    ArtifactUnreadable,
    BufferFull,
    NoSuchRange,
    StorageAway,
)
from mindbus_fleet.node.failures import NodeFailure
from mindbus_fleet.supervision.health import Unwell
from mindbus_fleet.supervision.hosting import NamedOtherwise
from mindbus_fleet.supervision.run_folder import AlreadyUp
from mindbus_fleet.supervision.supervisor import WorkersDidNotStart
from storage_service.blobs import NotGuaranteed
from workers.fleet import BrokenWorker, UnknownWorker

_CODES: dict[type[Exception], Code] = {
    InvalidCard: Code.INVALID,
    UnknownCard: Code.INVALID,
    UnknownWorker: Code.INVALID,
    BrokenWorker: Code.INVALID,
    NamedOtherwise: Code.INVALID,
    StoreNotSupported: Code.INVALID,
    NotGuaranteed: Code.INVALID,
    NoSuchRange: Code.INVALID,
    WrongRedis: Code.INVALID,
    AlreadyUp: Code.CONFLICT,
    CannotReplay: Code.CONFLICT,
    StillInUse: Code.CONFLICT,
    IndexOfAnotherSpace: Code.CONFLICT,
    IndexGone: Code.FILE_NOT_FOUND,
    IndexAway: Code.UNAVAILABLE,
    ArtifactNotFound: Code.NOT_FOUND,
    ArtifactUnreadable: Code.FILE_NOT_FOUND,
    BufferFull: Code.UNAVAILABLE,
    StorageAway: Code.UNAVAILABLE,
    NoBroker: Code.UNAVAILABLE,
    BusUnavailable: Code.UNAVAILABLE,
    ManagementUnavailable: Code.UNAVAILABLE,
    NodeFailure: Code.UNAVAILABLE,
    StoreUnreachable: Code.UNAVAILABLE,
    WorkersDidNotStart: Code.UNAVAILABLE,
    Unwell: Code.UNAVAILABLE,
    OSError: Code.INTERNAL,
}

EXPECTED: tuple[type[Exception], ...] = (Failed, Misused, ReplyError, ArtifactRefused, *_CODES)


def complain(failure: Exception, context: typer.Context) -> int:
    """Say what is wrong, on standard error and, where JSON was asked for, as JSON too; returns the exit code."""
    message = cleandoc(str(failure)) or type(failure).__name__
    if wants_json(context):
        show_json({"error": message, "code": _code_of(failure).value})
    errors().print(f"[bold red]error:[/bold red] {_escaped(message)}", soft_wrap=True)
    return 2 if isinstance(failure, (Misused, UnknownWorker)) else 1


def _code_of(failure: Exception) -> Code:
    if isinstance(failure, (Failed, Misused, ReplyError, ArtifactRefused)):
        return failure.code
    return next((code for kind, code in _CODES.items() if isinstance(failure, kind)), Code.INTERNAL)


def _escaped(text: str) -> str:
    return text.replace("[", "\\[")
