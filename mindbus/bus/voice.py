"""Partial answers: what a handler tells its asker before it is done."""

import time

from bus_schema.envelope import Envelope
from bus_schema.replies import Reply
from mindbus.bus.failures import BusUnavailable
from mindbus.bus.speaker import Speaker
from mindbus.bus.transport import Transport
from mindbus.logs import logger

PARTS_PER_S = 15


class Voice:
    """Gathers text into at most fifteen parts a second; a part may get lost, the result holds it all."""

    def __init__(self, speaker: Speaker, transport: Transport, command: Envelope) -> None:
        self._speaker, self._transport, self._command = speaker, transport, command
        self._unsaid = ""
        self._parts = 0
        self._said_at = 0.0

    async def say(self, text: str) -> None:
        """Tell it now, or together with what comes next."""
        self._unsaid += text
        if time.monotonic() - self._said_at >= 1 / PARTS_PER_S:
            await self.finish()

    async def finish(self) -> None:
        """Tell what is left, before the result."""
        if not self._unsaid or self._command.mbreplyto is None:
            return
        text, self._unsaid = self._unsaid, ""
        self._said_at = time.monotonic()
        self._parts += 1
        part = Reply(status="partial", result={"text": text})
        try:
            await self._transport.publish(await self._speaker.reply(self._command, part, part=self._parts))
        except BusUnavailable as unavailable:
            logger().debug("part not told", reason=str(unavailable))
