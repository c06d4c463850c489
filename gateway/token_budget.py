"""The budget of model tokens: what each person's messages have cost today, from the events of the dialogue."""

from collections.abc import Callable
from datetime import datetime

from pydantic import ValidationError

from bus_schema.dialogue import MessageSent
from bus_schema.envelope import Envelope
from bus_schema.replies import Code
from gateway.event_feed import EventFeed
from mindbus.accounts import Accounts
from mindbus.errors import Rejected


class BudgetSpent(Rejected, code=Code.UNAVAILABLE):
    """Your messages have cost all tokens of the model that you have for a day: go on tomorrow (UTC)."""


class TokenBudget:
    """Counts the tokens of every message that the assistant sends, whichever way it was asked for."""

    def __init__(self, feed: EventFeed, accounts: Accounts, clock: Callable[[], datetime]) -> None:
        self._feed, self._accounts, self._clock = feed, accounts, clock

    def spent(self, identity: str) -> int:
        """Tokens that an identity has spent today."""
        return self._accounts.spent(identity, self._today)

    async def run(self) -> None:
        with self._feed.listen(accepts=lambda envelope: envelope.type == MessageSent.wire.type) as listener:
            async for item in listener:
                if isinstance(item, Envelope):
                    self._count(item)

    def _count(self, envelope: Envelope) -> None:
        try:
            sent = MessageSent.model_validate(envelope.data or {})
        except ValidationError:
            return
        if sent.model_tokens:
            self._accounts.spend(f"user.{sent.user_id}", self._today, sent.model_tokens)

    @property
    def _today(self) -> str:
        return self._clock().date().isoformat()
