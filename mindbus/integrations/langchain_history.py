"""LangChain's chat message history over shared memory."""

import json
from collections.abc import Sequence

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict

from mindbus.integrations.bus_thread import BusThread
from mindbus.integrations.record_log import RecordLog


class MindBusChatMessageHistory(BaseChatMessageHistory):
    """Messages of one session of the identity of the bus, whole, in their order."""

    def __init__(self, bus: BusThread, session_id: str) -> None:
        self._bus, self._log = bus, RecordLog(bus, f"langchain:{session_id}")

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # an attribute there, read alone
        return self._bus.call(self._read())

    async def aget_messages(self) -> list[BaseMessage]:
        return await self._bus.acall(self._read())

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        self._bus.call(self._log.append([message_to_dict(message) for message in messages]))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        await self._bus.acall(self._log.append([message_to_dict(message) for message in messages]))

    def clear(self) -> None:
        self._bus.call(self._log.clear())

    async def aclear(self) -> None:
        await self._bus.acall(self._log.clear())

    async def _read(self) -> list[BaseMessage]:
        return messages_from_dict([json.loads(kem.content or "{}") for kem in await self._log.units()])
