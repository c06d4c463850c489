"""The one tree of errors: each says with which code the asker hears of it, and how the message that met it ends."""

import errno
import socket
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from inspect import cleandoc
from typing import Any, ClassVar

from bus_schema.codes import Code

# No descriptors, memory, room on a disk; a disk that fails; a network without a way, or without an answer.
_OUTAGES = frozenset(
    (
        *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO),
        *(errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ETIMEDOUT),
    )
)


class Ending(StrEnum):
    """Fate of a message whose handler raised."""

    REFUSE = "refuse"
    RETRY = "retry"
    DEAD_LETTER = "dead_letter"


class MindBusError(Exception):
    """MindBus could not do what it was asked.

    `code` is what the asker reads; `ending` is what becomes of the message that was being handled; `details` travel
    with an error reply. Without a message of its own, an error says its docstring. A subclass names its code in its
    first line: `class NoSuchKem(Rejected, code=Code.NOT_FOUND)`.
    """

    code: Code = Code.INTERNAL
    ending: ClassVar[Ending] = Ending.RETRY

    def __init_subclass__(cls, *, code: Code | None = None) -> None:
        super().__init_subclass__()
        if code is not None:
            cls.code = code

    def __init__(
        self, message: str | None = None, *, code: Code | None = None, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(cleandoc(type(self).__doc__ or "") if message is None else message)
        if code is not None:
            self.code = code
        self.details = dict(details or {})

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later, unchanged."""
        return self.code.retryable


class Rejected(MindBusError, code=Code.INVALID):
    """The request is refused with a code: the requester gets it, nothing is retried, nothing has been written.

    `is_denied`, which would tell the hidden from the absent, goes only to the log; other keywords are `details`.
    """

    ending = Ending.REFUSE

    def __init__(
        self,
        code: Code | None = None,
        message: str | None = None,
        details: Mapping[str, Any] | None = None,
        *,
        is_denied: bool = False,
        **about: object,
    ) -> None:
        super().__init__(message, code=code, details={**(details or {}), **about})
        self.is_denied = is_denied


class Expired(Rejected, code=Code.EXPIRED):
    """The deadline of this command has passed; it has not been carried out."""


class TemporaryFailure(MindBusError, code=Code.UNAVAILABLE):
    """Something needed is not available right now; the message is retried within its budget, after `delay`."""

    ending = Ending.RETRY
    delay: timedelta | None = None

    def __init__(self, message: str | None = None, delay: timedelta | None = None) -> None:
        super().__init__(message)
        if delay is not None:
            self.delay = delay


class PermanentFailure(MindBusError, code=Code.INTERNAL):
    """This message can never succeed; it is dead-lettered with the reason."""

    ending = Ending.DEAD_LETTER

    def __init__(self, message: str | None = None, code: Code | None = None) -> None:
        super().__init__(message, code=code)


class OutOfTokens(MindBusError, code=Code.UNAVAILABLE):
    """The models of this installation may not use more tokens for now; a run that hits this limit pauses."""

    ending = Ending.REFUSE


class HandlerTooSlow(TemporaryFailure):
    """The handler did not finish within its time limit and was cancelled; the message is retried within its budget."""


class Damaged(MindBusError, code=Code.INTERNAL):
    """A worker's data is damaged: it stops consuming, and its messages stay in their queues until that is repaired."""


class BusUnavailable(TemporaryFailure):
    """RabbitMQ cannot be reached, or does not confirm; what was published may or may not arrive."""


class QueueUnavailable(BusUnavailable):
    """RabbitMQ does not take messages for this queue now: it is full, or has no leader; others may be well."""


class Unroutable(BusUnavailable):
    """No queue takes this command: start its worker once, or check the service's name."""


class NotPermitted(Unroutable, code=Code.UNAUTHORIZED):
    """RabbitMQ does not accept this from this user; a worker lists the services that it commands in `sends_to`."""


class SubscriptionRefused(MindBusError, code=Code.UNAUTHORIZED):
    """RabbitMQ does not let this login hear these events: people and agents hear of shared memory, operators all.

    Over HTTP, the gateway streams to everybody what is theirs.
    """

    ending = Ending.REFUSE


class TopologyMissing(BusUnavailable):
    """This worker's queues do not exist yet: an administrator has to run `mindbus topology apply --worker` for it."""


class ReplyError(MindBusError):
    """The reply to a command was an error; `code`, `message` and `details` are the service's."""

    ending = Ending.RETRY

    def __init__(self, code: Code, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{code.value}: {message}", code=code, details=details)
        self.message = message


class NoReply(ReplyError):
    """No reply by the deadline; the command may still be carried out."""

    def __init__(self, wire_type: str, waited_s: float) -> None:
        super().__init__(
            Code.UNAVAILABLE, f"no answer to {wire_type} within {waited_s:g} s; it may still be carried out"
        )


def is_outage(error: BaseException) -> bool:
    """Whether the machine or the network fails just now, which is no fault of the message, nor of its handler."""
    is_of_network = isinstance(error, ConnectionError | socket.gaierror)
    return is_of_network or (isinstance(error, OSError) and error.errno in _OUTAGES)
