"""Handlers that mypy accepts, and those that it must refuse: each of the latter is followed by the expected error."""

from collections.abc import Iterator, Sequence

from pydantic import BaseModel

from bus_schema.messages import Command, Event, Nothing, Query
from mindbus import MessageContext, Publish, Send, on_command, on_event


class Tally(BaseModel):
    """A result."""

    count: int = 0


class Other(BaseModel):
    """A model that is no result here."""


class GetTally(Query[Tally], domain="handler_types", action="get_tally"):
    """Ask for the tally."""


class Reset(Command[Nothing], domain="handler_types", action="reset"):
    """Set it to zero."""


class Counted(Event, topic="handler_types", name="counted"):
    """It has gone up."""


class Finish(Command[Counted], domain="handler_types", action="finish"):
    """Answered with an event."""


class Accepted:
    @on_command
    async def result(self, query: GetTally) -> Tally:
        return Tally()

    @on_command
    async def with_context(self, query: GetTally, context: MessageContext) -> tuple[Tally | Publish | Counted, ...]:
        return (Tally(),)

    @on_command
    async def alternatives(self, query: GetTally) -> Tally | tuple[Tally, Send, Reset]:
        return Tally()

    @on_command
    async def nothing(self, command: Reset) -> None: ...

    @on_command
    async def only_messages(self, command: Reset) -> Sequence[Counted]:
        return []

    @on_command
    async def answered_with_an_event(self, command: Finish) -> Counted:
        return Counted()

    @on_event
    async def events(self, event: Counted) -> list[Counted | Reset] | None:
        return None


class Refused:
    @on_command  # error: Value of type variable "AnswerT" of "on_command" cannot be "str"
    async def text(self, query: GetTally) -> str:
        return ""

    @on_command  # error: must return "Tally", or a list or tuple of it with events and commands to publish, not "Other"
    async def another_model(self, query: GetTally) -> Other:
        return Other()

    @on_command  # error: must return "Tally"
    async def missing(self, query: GetTally) -> None: ...

    @on_command  # error: must return "Tally"
    async def perhaps_missing(self, query: GetTally) -> Tally | None:
        return None

    @on_command  # error: must return "Tally"
    async def messages_alone(self, query: GetTally) -> list[Counted]:
        return []

    @on_command  # error: must return "Tally"
    async def beside_another_model(self, query: GetTally) -> tuple[Tally, Other]:
        return Tally(), Other()

    @on_command  # error: must return "Tally"
    async def generated(self, query: GetTally) -> Iterator[Tally]:
        return iter([Tally()])

    @on_command  # error: must return None, or events and commands to publish
    async def result_of_nothing(self, command: Reset) -> Tally:
        return Tally()

    @on_command  # error: Value of type variable "CommandT" of "on_command" cannot be "Counted"
    async def an_event(self, command: Counted) -> None: ...

    @on_event  # error: Value of type variable "PublishedT" of "on_event" cannot be "Tally"
    async def a_result(self, event: Counted) -> Tally:
        return Tally()

    @on_event  # error: Value of type variable "PublishedT" of "on_event" cannot be "Iterator[Counted]"
    async def generated_events(self, event: Counted) -> Iterator[Counted]:
        return iter([])
