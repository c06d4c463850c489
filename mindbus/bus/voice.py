"""Partial answers: what a handler tells its asker before it is done."""

import asyncio
from contextlib import suppress
from typing import Self

from bus_schema.envelope import Envelope
from bus_schema.replies import Reply
from mindbus.bus.speaker import Speaker
from mindbus.bus.transport import Transport
from mindbus.errors import BusUnavailable
from mindbus.logs import logger
from mindbus.tasks import end

PARTS_PER_S = 15


class Voice:
    """Gathers text into at most fifteen parts a second; a part may get lost, the result holds it all.

    What is said is told within a fifteenth of a second, whether or not anything follows. Leave it before the result is
    told, so that no part comes after.
    """

    def __init__(self, speaker: Speaker, transport: Transport, command: Envelope) -> None:
        self._speaker, self._transport, self._command = speaker, transport, command
        self._unsaid = ""
        self._parts = 0
        self._telling: asyncio.Task[None] | None = None
        self._leaving = asyncio.Event()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, _kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        self._leaving.set()
        if self._telling is not None:
            if error is not None:
                await end(self._telling)
            else:
                await self._telling

    async def say(self, text: str) -> None:
        """Have it told, together with what comes close after it."""
        self._unsaid += text
        if self._command.mbreplyto is not None and (self._telling is None or self._telling.done()):
            self._telling = asyncio.create_task(self._tell(), name="voice")
            # The first word need not wait until its speaker pauses.
            await asyncio.sleep(0)

    async def _tell(self) -> None:
        while self._unsaid:
            text, self._unsaid = self._unsaid, ""
            self._parts += 1
            part = Reply(status="partial", result={"text": text})
            try:
                await self._transport.publish(await self._speaker.reply(self._command, part, part=self._parts))
            except BusUnavailable as unavailable:
                logger().debug("part not told", reason=str(unavailable))
            with suppress(TimeoutError):
                async with asyncio.timeout(1 / PARTS_PER_S):
                    await self._leaving.wait()
