"""The signature is the route; what cannot be routed fails at import."""

from typing import Any

import pytest

from bus_schema.envelope import Envelope
from mindbus import Command, Event, MessageContext, Worker, every, on_command, on_event, on_topic
from tests.greetings import Eavesdropper, Greet, Greeted, Greeter, Greeting, Listener


def test_routes_are_read_off_the_class_without_building_it() -> None:
    assert {command.wire.type for command in Greeter.routes.commands} == {
        "mb.cmd.greeter.greet.v1",
        "mb.cmd.greeter.count.v1",
        "mb.cmd.greeter.misbehave.v1",
        "mb.cmd.greeter.hold.v1",
        "mb.cmd.greeter.recite.v1",
    }
    assert Listener.routes.event_keys == ("evt.greeting.greeted",)
    assert Eavesdropper.routes.event_keys == ("evt.greeting.#",)


def test_a_typed_handler_is_preferred_to_a_topics_and_that_to_all_topics() -> None:
    class Hearer(Worker):
        name = "hearer"

        @on_event
        async def typed(self, event: Greeted) -> None: ...

        @on_topic("greeting")
        async def topical(self, envelope: Envelope) -> None: ...

        @on_topic("#")
        async def universal(self, envelope: Envelope, context: MessageContext) -> None: ...

        @every(seconds=2)
        async def tick(self) -> None: ...

    found = [Hearer.routes.find(f"mb.evt.{name}.v1") for name in ("greeting.greeted", "greeting.left", "weather.rain")]
    assert [route.method for route in found if route] == ["typed", "topical", "universal"]
    assert Hearer.routes.find("mb.cmd.greeter.greet.v1") is None
    assert Hearer.routes.event_keys == ("evt.#", "evt.greeting.#", "evt.greeting.greeted")
    assert [(task.method, task.seconds) for task in Hearer.routes.tasks] == [("tick", 2)]


def test_a_worker_also_receives_what_its_parts_receive() -> None:
    class Part:
        @on_command
        async def greet(self, command: Greet) -> Greeting:
            raise NotImplementedError

        @on_event
        async def hear(self, event: Greeted) -> None: ...

    class Whole(Part, Worker):
        name = "whole"

        # No longer a handler, since it says so by itself.
        async def hear(self, event: Greeted) -> None: ...

    assert [command.wire.type for command in Whole.routes.commands] == ["mb.cmd.greeter.greet.v1"]
    assert Whole.routes.event_keys == ()


def test_two_handlers_of_one_message_are_refused() -> None:
    with pytest.raises(TypeError, match=r"receives mb\.cmd\.greeter\.greet\.v1 twice: in one and in two"):

        class Twice(Worker):
            @on_command
            async def one(self, command: Greet) -> Greeting:
                raise NotImplementedError

            @on_command
            async def two(self, command: Greet) -> Greeting:
                raise NotImplementedError


def test_an_event_is_no_command() -> None:
    with pytest.raises(TypeError, match="must take one Command"):

        class Confused(Worker):
            @on_command  # type: ignore[type-var]  # mypy refuses it as well
            async def greet(self, event: Greeted) -> None: ...


@pytest.mark.parametrize("base", [Command, Event])
def test_a_message_without_a_wire_name_cannot_be_routed(base: type) -> None:
    nameless = type("Nameless", (base,), {})

    async def method(self: object, message: object) -> None: ...

    method.__annotations__["message"] = nameless
    mark: Any = on_command if base is Command else on_event
    with pytest.raises(TypeError, match="that has a wire name"):
        type("Lost", (Worker,), {"method": mark(method)})


def test_the_second_parameter_is_a_handling() -> None:
    with pytest.raises(TypeError, match="the second parameter, where there is one, is a MessageContext"):

        class Greedy(Worker):
            @on_command  # type: ignore[arg-type]  # mypy refuses it as well
            async def greet(self, command: Greet, session: str) -> Greeting:
                raise NotImplementedError
