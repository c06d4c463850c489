"""Nodes of a cluster that accept connections and do not answer."""

import asyncio
from contextlib import AsyncExitStack, suppress

from mindbus.bus.amqp.channel import PublishingChannel
from mindbus.bus.rabbit_link import RabbitLink


async def test_whoever_gives_up_a_silent_node_asks_another_next() -> None:
    asked: list[str] = []

    async def listen(stack: AsyncExitStack, name: str) -> str:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append(name)
            await reader.read()
            writer.close()

        server = await stack.enter_async_context(await asyncio.start_server(accept, "127.0.0.1", 0))
        return f"amqp://guest:guest@127.0.0.1:{server.sockets[0].getsockname()[1]}/"

    async with AsyncExitStack() as stack:
        nodes = [await listen(stack, name) for name in ("one", "other")]
        link = RabbitLink(nodes, "publishing", "test")
        for _ in range(3):
            with suppress(TimeoutError):
                async with asyncio.timeout(0.3):
                    await link.open_channel(PublishingChannel)
        await link.close()

    assert asked == ["one", "other", "one"]
