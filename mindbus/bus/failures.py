"""The ways in which a handler ends other than by returning, as well as what an asker may meet."""

from datetime import timedelta
from typing import Any

from bus_schema.replies import Code


class Refused(Exception):
    """A proper no: the asker hears it, nothing is retried."""

    def __init__(self, code: Code, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.details = details or {}


class TemporaryFailure(Exception):
    """The world is not ready; the message is tried again, within its budget."""

    def __init__(self, reason: str, delay: timedelta | None = None) -> None:
        super().__init__(reason)
        self.delay = delay


class PermanentFailure(Exception):
    """This message can never succeed; it is dead-lettered with the reason."""

    def __init__(self, reason: str, code: Code = Code.INTERNAL) -> None:
        super().__init__(reason)
        self.code = code


class BusUnavailable(Exception):
    """RabbitMQ cannot be reached, or does not confirm; what was published may or may not arrive."""


class Unroutable(BusUnavailable):
    """No queue takes this command: start its worker once, or check the service's name."""


class CommandFailed(Exception):
    """The answer to a command was an error."""

    def __init__(self, code: Code, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(f"{code.value}: {message}")
        self.code = code
        self.message = message
        self.details = details or {}

    @property
    def retryable(self) -> bool:
        """Whether the same command may succeed later."""
        return self.code.retryable


class NoReply(CommandFailed):
    """No answer by the deadline; the command may still be carried out."""

    def __init__(self, wire_type: str, waited_s: float) -> None:
        super().__init__(
            Code.UNAVAILABLE, f"no answer to {wire_type} within {waited_s:g} s; it may still be carried out"
        )
