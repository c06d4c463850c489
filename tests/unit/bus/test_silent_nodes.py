"""Nodes of a cluster that accept connections and do not answer."""

import asyncio
from contextlib import suppress

from mindbus.bus.amqp.channel import PublishingChannel
from mindbus.bus.rabbit_link import RabbitLink


class _SilentNodes:
    """Listens under several names and remembers which of them was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def listen(self, group: asyncio.TaskGroup, name: str) -> tuple[asyncio.Server, str]:
        async def keep_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()
            await writer.wait_closed()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.asked.append(name)
            group.create_task(keep_silent(reader, writer))

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        return server, f"amqp://guest:guest@127.0.0.1:{server.sockets[0].getsockname()[1]}/"


async def test_whoever_gives_up_a_silent_node_asks_another_next() -> None:
    nodes = _SilentNodes()

    async with asyncio.TaskGroup() as lines:
        one, one_url = await nodes.listen(lines, "one")
        other, other_url = await nodes.listen(lines, "other")
        async with one, other:
            link = RabbitLink([one_url, other_url], "publishing", "test")
            for _ in range(3):
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.3):
                        await link.open_channel(PublishingChannel)
            await link.close()

    assert nodes.asked == ["one", "other", "one"]
