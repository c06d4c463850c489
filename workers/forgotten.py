"""What was learned from somebody who has been forgotten meanwhile."""

from collections.abc import Awaitable, Iterable
from functools import partial

from bus_schema.conversations import GetMessage
from bus_schema.glm import DeleteKem
from bus_schema.identities import is_user_id
from bus_schema.kps import ProcessRawData
from bus_schema.replies import Code
from mindbus.bus.client import Client
from mindbus.bus.context import MessageContext
from mindbus.errors import Rejected
from mindbus.sdk.aside import aside
from mindbus.sdk.asking import ask


async def is_forgotten(bus: Client, command: ProcessRawData, context: MessageContext) -> bool:
    """Whether the message behind it is gone; to be asked once it is stored.

    Whoever has a user forgotten asks storage first, memory afterwards: so what was on its way is removed by memory, or
    found to be forgotten here.
    """
    user_id = command.initial_metadata.get("user_id")
    said = next((link.id for link in command.links if link.kind == "message"), None)
    if said is None or not is_user_id(user_id):
        return False
    query = GetMessage(user_id=str(user_id), message_id=said)
    return not await _is_there(aside(f"said/{context.attempt}", lambda: ask(bus, query)))


async def forget(bus: Client, kem_ids: Iterable[str], context: MessageContext) -> None:
    """Remove these units, where nobody else has."""
    for kem_id in kem_ids:
        command = DeleteKem(kem_id=kem_id)
        await _is_there(aside(f"forget/{context.attempt}/{kem_id}", partial(ask, bus, command)))


async def _is_there(asking: Awaitable[object]) -> bool:
    try:
        await asking
    except Rejected as no:
        if no.code is Code.NOT_FOUND:
            return False
        raise
    return True
