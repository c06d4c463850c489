"""The signature is the route; what cannot be routed fails at import."""

from pathlib import Path
from typing import Any

import pytest

from bus_schema.envelope import Envelope
from mindbus import (
    Command,
    Event,
    MessageContext,
    Query,
    SubAgent,
    Worker,
    every,
    on_command,
    on_event,
    on_topic,
    time_limit,
)
from mindbus.settings import Settings
from mindbus.testing import running
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


@pytest.mark.parametrize(
    ("base", "names", "said"),
    [
        (Command[Greeting], {"topic": "greeting", "name": "greeted"}, "a command has a domain and an action"),
        (Command[Greeting], {"domain": "greeting"}, "a command has a domain and an action"),
        (Event, {"domain": "greeting", "action": "greeted"}, "an event has a topic and a name"),
        (Event, {"topic": "greeting"}, "an event has a topic and a name"),
        (Query, {"domain": "greeting", "action": "list"}, r"as in Query\[Report\]"),
    ],
)
def test_a_message_that_is_named_wrongly_is_refused(base: type, names: dict[str, str], said: str) -> None:
    with pytest.raises(TypeError, match=f"Misnamed: .*{said}"):
        type(base)("Misnamed", (base,), {"__module__": __name__, "__qualname__": "Misnamed"}, **names)


def test_a_handler_that_is_no_coroutine_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Blocking\.greet must be a coroutine: `async def greet`"):

        class Blocking(Worker):
            @on_command  # type: ignore[arg-type]  # mypy refuses it as well
            def greet(self, command: Greet) -> Greeting:
                raise NotImplementedError


def test_a_handler_takes_the_message_and_its_context_alone() -> None:
    with pytest.raises(TypeError, match="takes more than the message and its MessageContext"):

        class Wanting(Worker):
            @on_command  # type: ignore[arg-type]  # mypy refuses it as well
            async def greet(self, command: Greet, context: MessageContext, session: str) -> Greeting:
                raise NotImplementedError


def test_a_handler_says_what_it_takes() -> None:
    with pytest.raises(TypeError, match=r"Silent\.greet must say which Command it takes"):

        class Silent(Worker):
            @on_command
            async def greet(self, command):  # type: ignore[no-untyped-def]  # mypy refuses it as well
                raise NotImplementedError


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_task_that_would_never_rest_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="is not an interval"):
        every(seconds=seconds)
    with pytest.raises(ValueError, match="is not a time limit"):
        time_limit(seconds=seconds)


@pytest.mark.parametrize(
    ("base", "name", "said"),
    [
        (Worker, "Big Poet", "lowercase letters, digits, - and _, not 'Big Poet'"),
        (SubAgent, "helper", "a sub-agent's name begins with subagent-"),
    ],
)
def test_a_name_under_which_nobody_would_find_it_is_refused(base: type, name: str, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        type("Misnamed", (base,), {"name": name})


class Stateless(Worker):
    name = "greeter"

    @on_command
    async def greet(self, command: Greet) -> Greeting:
        return Greeting(text=f"Hello, {command.name}!")


async def test_a_worker_that_keeps_nothing_needs_no_constructor(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, amqp_url=f"memory://{tmp_path}")
    async with running(Stateless, settings=settings) as bus:
        assert (await bus.request(Greet(name="Anna"))).text == "Hello, Anna!"


async def test_what_is_sent_in_the_wrong_way_is_refused_rather_than_lost(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, amqp_url=f"memory://{tmp_path}")
    command, event = Greet(name="Anna"), Greeted(name="Anna")
    async with running(Stateless, settings=settings) as bus:
        with pytest.raises(TypeError, match="Greet is not an event; commands are sent or requested"):
            await bus.publish(command)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="Greeted is not a command; events are published"):
            await bus.request(event)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="Greet is not an event"):
            bus.subscribe(Greet)  # type: ignore[type-var]
        with pytest.raises(TypeError, match=r"there is no trce; there are .*trace"):
            await bus.publish(event, trce="t")  # type: ignore[call-arg]
