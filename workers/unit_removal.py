"""Removal of memory units that must not stay: of erased users and of superseded artifact versions."""

from collections.abc import Awaitable, Iterable, Sequence
from functools import partial

from bus_schema.conversations import GetMessage
from bus_schema.glm import MAX_PAGE, DeleteKem, RetrieveKems
from bus_schema.identities import is_user_id
from bus_schema.kem import Kem
from bus_schema.kem_query import KemQuery, OneOf
from bus_schema.kps import ProcessRawData
from bus_schema.replies import Code
from bus_schema.storage import GetVersions
from memory.kps.units import ARTIFACT_KEY
from mindbus.bus.client import Client
from mindbus.bus.context import MessageContext
from mindbus.errors import Rejected
from mindbus.sdk.requests import in_id_scope, request

# Of versions further back nothing is left, since those after them were learned.
_MOST = 100


async def is_forgotten(bus: Client, command: ProcessRawData, context: MessageContext) -> bool:
    """Check whether the message that a unit was learned from has been erased; call it after the unit is stored.

    Whoever has a user forgotten asks storage first, memory afterwards: so what was on its way is removed by memory, or
    found to be forgotten here.
    """
    user_id = command.initial_metadata.get("user_id")
    said = next((link.id for link in command.links if link.kind == "message"), None)
    if said is None or not is_user_id(user_id):
        return False
    query = GetMessage(user_id=str(user_id), message_id=said)
    return not await _is_there(in_id_scope(f"said/{context.attempt}", lambda: request(bus, query)))


async def forget(bus: Client, kem_ids: Iterable[str], context: MessageContext) -> None:
    """Remove these units, where nobody else has."""
    for kem_id in kem_ids:
        command = DeleteKem(kem_id=kem_id)
        await _is_there(in_id_scope(f"forget/{context.attempt}/{kem_id}", partial(request, bus, command)))


async def _is_there(asking: Awaitable[object]) -> bool:
    try:
        await asking
    except Rejected as error:
        if error.code is Code.NOT_FOUND:
            return False
        raise
    return True


async def supersede(bus: Client, command: ProcessRawData, kem_ids: Sequence[str], context: MessageContext) -> None:
    """Remove what memory has of earlier versions, of the same owner; to be called once all of this one is stored.

    Whichever version is stored last looks last: of two that are learned at once, the later one is left. Raises Rejected
    where memory has learned a later one already.
    """
    if command.source is None:
        return
    source = command.source
    asking = GetVersions(artifact_id=source.artifact_id)
    chain = (await in_id_scope(f"versions/{context.attempt}", lambda: request(bus, asking))).items
    if await _learned(bus, [each.id for each in chain if each.version > source.version], context):
        await forget(bus, kem_ids, context)
        raise Rejected(
            Code.CONFLICT, "memory has a later version of this artifact", {"artifact_id": source.artifact_id}
        )
    earlier = await _learned(bus, [each.id for each in chain if each.version < source.version], context)
    await forget(bus, earlier, context)


async def _learned(bus: Client, artifact_ids: Sequence[str], context: MessageContext) -> list[str]:
    if not artifact_ids:
        return []
    wanted = tuple(artifact_ids[-_MOST:])
    query = KemQuery(metadata_filters={ARTIFACT_KEY: OneOf(any_of=wanted)}, order_by="id asc")
    found: list[str] = []
    cursor: str | None = None
    while True:
        asking = RetrieveKems(query=query, cursor=cursor, page_size=MAX_PAGE)
        page = await in_id_scope(f"learned/{context.attempt}/{wanted[-1]}/{cursor}", partial(request, bus, asking))
        found += [item.kem.id for item in page.items if _is_of(item.kem, wanted, context.owner)]
        cursor = page.next_cursor
        if cursor is None:
            return found


def _is_of(kem: Kem, artifact_ids: Sequence[str], owner: str) -> bool:
    """Check a unit's owner and the artifact of its source; its metadata are not authoritative."""
    artifact = None if kem.source is None else kem.source.artifact
    return kem.owner == owner and artifact is not None and artifact.artifact_id in artifact_ids
