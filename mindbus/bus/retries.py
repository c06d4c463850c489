"""When a message is tried again, and when it has been tried enough."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from mindbus.bus.topology import Rung
from mindbus.errors import BusUnavailable, ReplyError, TemporaryFailure

# A bug seldom mends itself; two more tries tell a race from a mistake.
BUG_ATTEMPTS = 3


def rung_for(attempt: int, ladder: Sequence[Rung], wanted: timedelta | None) -> Rung:
    """The rung to wait on after that attempt: the next one up, or the first that is no shorter than wanted."""
    if wanted is not None:
        return next((rung for rung in ladder if rung.delay >= wanted), ladder[-1])
    return ladder[min(attempt, len(ladder)) - 1]


def is_bug(failure: Exception) -> bool:
    """Whether the handler did not mean to fail like this."""
    expected = isinstance(failure, TemporaryFailure | BusUnavailable)
    return not expected and not (isinstance(failure, ReplyError) and failure.retryable)


def may_try_again(failure: Exception, attempt: int, attempts: int, at: datetime, expiry: datetime | None) -> bool:
    """Whether the budget allows another attempt, starting at `at`, before the asker's deadline."""
    budget = min(attempts, BUG_ATTEMPTS) if is_bug(failure) else attempts
    return attempt < budget and (expiry is None or at < expiry)
