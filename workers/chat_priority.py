"""Priority of chats whose dialogue runs in another process: background calls of this process yield to them as well."""

import asyncio

from agents.models.endpoint import EndpointModel
from agents.models.language_model import LanguageModel
from bus_schema.dialogue import MessageReceived, MessageSent
from mindbus.bus.client import Client
from mindbus.bus.handlers import background

_LONGEST_S = 60.0
_PAUSE_S = 2.0


class ChatPriority:
    """Follows the dialogue's messages for a model, unless the dialogue, or a follower, is in this process."""

    subscribes_to = ("dialogue.*",)

    def __init__(self, bus: Client, model: LanguageModel) -> None:
        self._bus = bus
        self._endpoint_of = model if isinstance(model, EndpointModel) else None

    @background(pause_s=_PAUSE_S)
    async def follow_chats(self) -> None:
        """Count a chat from the question to its answer; one that gets no answer ends by itself."""
        if self._endpoint_of is None:
            return
        endpoint = self._endpoint_of.endpoint
        # A dialogue of this process may still be starting.
        await asyncio.sleep(_PAUSE_S)
        if endpoint.has_chat or endpoint.is_followed:
            return
        endpoint.is_followed = True
        try:
            async for envelope in self._bus.subscribe("dialogue.*"):
                if endpoint.has_chat:
                    return
                if envelope.type == MessageReceived.wire.type:
                    endpoint.chat_elsewhere(MessageReceived.model_validate(envelope.data).user_id, _LONGEST_S)
                elif envelope.type == MessageSent.wire.type:
                    endpoint.chat_ended_elsewhere(MessageSent.model_validate(envelope.data).user_id)
        finally:
            endpoint.is_followed = False
