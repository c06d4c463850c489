"""A worker whose commands may be spread by user, for tests."""

from collections import defaultdict

import mindbus
from bus_schema.envelope import Envelope
from bus_schema.messages import Message
from mindbus.bus.topology import target_of

USERS = tuple(f"user-{number}" for number in range(12))
COUNT = 3
# Each of the partitions has several of them.
BY_PARTITION = {
    target: [user for user in USERS if target_of("chatter", user, COUNT) == target]
    for target in ("chatter", "chatter.1", "chatter.2")
}


class Chat(mindbus.Command[mindbus.Nothing], domain="chatter", action="chat"):
    user_id: str
    number: int
    note: str = ""


class Reset(mindbus.Command[mindbus.Nothing], domain="chatter", action="reset"):
    """About nobody."""


class Chatter(mindbus.Worker):
    """Notes what it hears of whom."""

    name = "chatter"
    is_partitionable = True
    heard: dict[str, list[int]]

    def __init__(self, _context: mindbus.WorkerContext) -> None:
        self.heard = defaultdict(list)
        self.resets = 0

    def order_key(self, message: Message | Envelope) -> str | None:
        return message.user_id if isinstance(message, Chat) else None

    @mindbus.on_command
    async def chat(self, command: Chat) -> None:
        self.heard[command.user_id].append(command.number)

    @mindbus.on_command
    async def reset(self, _command: Reset) -> None:
        self.resets += 1

    def count(self) -> int:
        return sum(map(len, self.heard.values()))
