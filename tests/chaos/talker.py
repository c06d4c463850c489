"""Somebody who talks while a fleet is in trouble, and what has to be true in the end of all that users did."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bus_schema.conversations import GetMessages
from bus_schema.dialogue import Invoke, conversation_trace
from mindbus import BusUnavailable, Unroutable
from mindbus.testing.wait import until
from tests.chaos.replicas import GOES_ON_WITHIN_S, Life

_TALKER = "u_talker"
_SAID_EVERY_S = 1.0


class Talker:
    """Somebody who talks without waiting for answers."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self.said: list[str] = []

    @asynccontextmanager
    async def talking(self) -> AsyncIterator[None]:
        """Talk for as long as the block lasts."""
        task = asyncio.create_task(self._talk())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _talk(self) -> None:
        while True:
            text = f"This is sentence {len(self.said)}."
            await self._say(Invoke(user_id=_TALKER, message=text, message_id=f"msg_said_{len(self.said)}"))
            self.said.append(text)
            await asyncio.sleep(_SAID_EVERY_S)

    async def _say(self, said: Invoke) -> None:
        while True:
            try:
                await self._life.bus.send(said, trace=conversation_trace(_TALKER), message_id=f"op_{said.message_id}")
            except (BusUnavailable, Unroutable):
                continue
            return

    async def heard(self) -> list[tuple[str, str]]:
        """What is kept of the talk, roles and texts, in order."""
        found: list[tuple[str, str]] = []
        query = GetMessages(user_id=_TALKER, limit=200)
        while True:
            page = await self._life.bus.request(query)
            found += [(each.role, each.content or "") for each in page.items]
            if page.next_cursor is None:
                return found
            query = query.model_copy(update={"cursor": page.next_cursor})

    async def is_answered(self) -> bool:
        return len(await self.heard()) >= 2 * len(self.said)


async def well_ended(life: Life, talker: Talker) -> str:
    """Fail unless all that was begun has its effects once, and every sentence its answer, in order; the counts."""
    await life.wave.pause()
    await until(lambda: not life.odd(), GOES_ON_WITHIN_S, "every operation has its effects")
    assert not [each.refusal for each in life.wave.operations if each.refusal]
    await until(talker.is_answered, GOES_ON_WITHIN_S, "all that was said is answered")
    heard = await talker.heard()
    assert [text for role, text in heard if role == "user"] == talker.said
    assert [role for role, _ in heard] == ["user", "assistant"] * len(talker.said)
    for run_id in life.runs:
        assert set((await life.made(run_id)).values()) == {1}
    kinds = Counter(each.kind for each in life.wave.operations)
    return f"{dict(kinds)}, {len(life.runs)} articles, {len(talker.said)} sentences in order"
