"""Makes a fragment of what has been said, once."""

from datetime import datetime
from typing import Literal

from bus_schema.dialogue import DialogueFragment, DialogueState
from mindbus.sdk.conversations import Conversations

Reason = Literal["timeout", "ended", "size"]


class Closing:
    """Raises what Conversations raises."""

    def __init__(self, talks: Conversations) -> None:
        self._talks = talks

    async def close(
        self,
        user_id: str,
        fragment_id: str,
        reason: Reason,
        *,
        at_least: int = 1,
        silent_since: datetime | None = None,
    ) -> DialogueFragment | None:
        """The fragment under this id, be it that it was made before a crash and remains to be told; or none."""
        made = await self._talks.fragment(fragment_id)
        if made is not None:
            return made
        state = await self._talks.buffer(user_id)
        if state is None or len(state.buffer) < at_least:
            return None
        if silent_since is not None and state.last_activity > silent_since:
            return None
        return await self._talks.keep_fragment(_fragment_of(state, fragment_id, reason))


def _fragment_of(state: DialogueState, fragment_id: str, reason: Reason) -> DialogueFragment:
    return DialogueFragment(
        fragment_id=fragment_id,
        user_id=state.user_id,
        message_ids=tuple(message.message_id for message in state.buffer),
        messages=state.buffer,
        started_at=state.buffer[0].time,
        ended_at=state.buffer[-1].time,
        reason=reason,
    )
