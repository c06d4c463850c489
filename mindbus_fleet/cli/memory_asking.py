"""Questions about one unit."""

from bus_schema.glm import RetrieveKems
from bus_schema.kem import Kem
from bus_schema.replies import Code
from mindbus.bus.client import Client
from mindbus.cli.errors import CommandError
from mindbus_fleet.cli.memory_text import query_of


async def get_kem(kem_id: str, bus: Client) -> Kem:
    """Raises CommandError where there is none that the client may read, UsageError where it is no id."""
    page = await bus.request(RetrieveKems(query=query_of(None, ids=(kem_id,)), page_size=1))
    if not page.items:
        raise CommandError(f"there is no unit {kem_id}, or it is not yours to read", Code.NOT_FOUND)
    return page.items[0].kem
