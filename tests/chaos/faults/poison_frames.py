"""Messages that no client of ours would send, to every queue of work: unreadable properties, headers, bodies."""

import struct

from yarl import URL

from mindbus.bus.amqp.channel import PublishingChannel
from mindbus.bus.amqp.connection import connect
from mindbus.bus.amqp.frames import pack_properties
from mindbus.bus.topology_admin import user_of
from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed

_HEADERS, _TIMESTAMP = 1 << 13, 1 << 6
_LARGEST = 2**62


async def inflict(bed: Testbed) -> int:
    async with await bed.management() as management:
        queues = [name for name in await management.queues() if name.startswith("mb.q.") and not name.endswith("dead")]
    user = user_of(bed.node.amqp_url)
    named = pack_properties({"content_type": "application/json", "user_id": user}, {}, is_durable=True)
    odd = pack_properties({"user_id": user}, {"mb-attempt": [1, {}], "x-death": "never"}, is_durable=True)
    table = b"\x01k" + b"S" + struct.pack(">I", 2) + b"\xff\xfe"
    late = struct.pack(">HQ", _TIMESTAMP, _LARGEST)
    poison = [
        (b"\0\0", b""),
        (named, b"[" * 60_000),
        (named, b'{"specversion": "1.0", "id": "\xff\xfe"}'),
        (odd, b'{"id": NaN}'),
        (late, b"late"),
        (struct.pack(">HI", _HEADERS, len(table)) + table, b"no text"),
    ]
    connection = await connect(URL(bed.node.amqp_url), "chaos")
    try:
        channel = await connection.open_channel(PublishingChannel)
        for queue in queues:
            for properties, body in poison:
                await channel.publish(("", queue, ""), properties, body, mandatory=True)
    finally:
        await connection.close()
    return len(queues) * len(poison)


FAULT = Fault(inflict)
