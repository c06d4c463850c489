"""Asking another service in the middle of handling a message."""

from typing import Any, TypeVar

from pydantic import BaseModel

from bus_schema.messages import Command
from mindbus.bus.client import Client
from mindbus.errors import Rejected, ReplyError, TemporaryFailure

ResultT = TypeVar("ResultT", bound=BaseModel)


async def ask(bus: Client, command: Command[ResultT], **where: Any) -> ResultT:
    """Its result; the other's no is passed on as ours. Raises Rejected, TemporaryFailure, BusUnavailable."""
    try:
        return await bus.request(command, **where)
    except ReplyError as failed:
        if failed.retryable:
            raise TemporaryFailure(f"{command.wire.type}: {failed}") from failed
        raise Rejected(failed.code, failed.message, failed.details) from failed
