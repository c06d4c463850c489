"""What all may hear of changes, for a memory that must not keep what has changed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic import ValidationError

from bus_schema.envelope import Envelope
from bus_schema.glm import KemDeleted, KemStored, KemUpdated
from bus_schema.kem import KemNotice
from mindbus.bus.client import Client, Subscription
from mindbus.logs import logger
from mindbus.sdk.local_memory import LocalAgentMemory
from mindbus.tasks import end

_ALL = "kem.*"
_HEARD = {kind.wire.type: kind for kind in (KemDeleted, KemStored, KemUpdated)}


@asynccontextmanager
async def heeding_notices(bus: Client, local_memory: LocalAgentMemory) -> AsyncIterator[None]:
    """While the block runs, what has changed elsewhere is dropped: also a unit that no subscriber was ever told of."""
    async with bus.subscribe(_ALL) as notices:
        heeding = asyncio.create_task(_heed(notices, local_memory), name="notices of memory")
        try:
            yield
        finally:
            await end(heeding)


async def _heed(notices: "Subscription[Envelope]", local_memory: LocalAgentMemory) -> None:
    async for envelope in notices:
        kind = _HEARD.get(envelope.type)
        if kind is None:
            continue
        try:
            notice = kind.model_validate(envelope.data)
        except ValidationError:
            logger().warning("unreadable notice", type=envelope.type)
            continue
        if not _is_known(notice, local_memory):
            local_memory.drop(notice.kem_id)


def _is_known(notice: KemDeleted | KemNotice, local_memory: LocalAgentMemory) -> bool:
    if not isinstance(notice, KemNotice):
        return False
    known = local_memory.peek(notice.kem_id)
    if known is None:
        return False
    if isinstance(notice, KemStored):
        # The working memory has a unit stored as it is, at a later time.
        return known.version >= notice.version
    return (known.version, known.updated_at) == (notice.version, notice.updated_at)
