"""The budget of model tokens: what calls of models have cost today for each person, from storage's events."""

from collections.abc import Callable
from datetime import datetime

from pydantic import ValidationError

from bus_schema.envelope import Envelope
from bus_schema.model_calls import ModelCalled
from bus_schema.replies import Code
from gateway.event_feed import EventFeed
from mindbus.accounts import Accounts
from mindbus.errors import Rejected


class BudgetSpent(Rejected, code=Code.UNAVAILABLE):
    """You have used all tokens of models that you have for a day: go on tomorrow (UTC)."""


class TokenBudget:
    """Counts the tokens of every call that was made for a person: by the dialogue, agents, sub-agents, roles."""

    def __init__(self, feed: EventFeed, accounts: Accounts, clock: Callable[[], datetime]) -> None:
        self._feed, self._accounts, self._clock = feed, accounts, clock

    def spent(self, identity: str) -> int:
        """Tokens that an identity has spent today."""
        return self._accounts.spent(identity, self._today)

    async def run(self) -> None:
        with self._feed.listen(accepts=lambda envelope: envelope.type == ModelCalled.wire.type) as listener:
            async for item in listener:
                if isinstance(item, Envelope):
                    self._count(item)

    def _count(self, envelope: Envelope) -> None:
        try:
            called = ModelCalled.model_validate(envelope.data or {})
        except ValidationError:
            return
        if called.user_id is not None and called.cost.tokens:
            self._accounts.spend(f"user.{called.user_id}", self._today, called.cost.tokens)

    @property
    def _today(self) -> str:
        return self._clock().date().isoformat()
