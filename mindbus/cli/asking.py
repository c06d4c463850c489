"""One question to a service, asked by a command that comes and goes."""

from collections.abc import Callable

from pydantic import ValidationError

from bus_schema.envelope import explain
from bus_schema.messages import Command
from mindbus.bus.client import ResultT
from mindbus.cli.environment import read_settings
from mindbus.cli.errors import UsageError
from mindbus.cli.session import on_the_bus, run


def answer_to(asked: Callable[[], Command[ResultT]], identity: str, longer_by_s: float = 0) -> ResultT:
    """Raises UsageError where it cannot be asked so, ReplyError, BusUnavailable."""
    try:
        command = asked()
    except ValidationError as invalid:
        raise UsageError(explain(invalid)) from invalid
    return run(_answer(command, identity, longer_by_s))


async def _answer(command: Command[ResultT], identity: str, longer_by_s: float) -> ResultT:
    settings = read_settings()
    async with on_the_bus(identity, settings) as bus:
        return await bus.request(command, timeout_s=settings.request_timeout_s + longer_by_s)
