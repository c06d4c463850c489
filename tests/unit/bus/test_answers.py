"""What a handler returns is checked: by its annotation at import, by its items at run time."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from bus_schema.envelope import Envelope, Kind
from bus_schema.messages import Command, Message, Nothing, Query
from mindbus import Publish, Worker, WorkerContext, connect, on_command, on_event
from mindbus.bus.claims import Claims
from mindbus.bus.connection import new_client, new_sender
from mindbus.bus.memory import MemoryBroker, MemoryConsumer, MemoryTransport
from mindbus.bus.outcomes import address_results, answering
from mindbus.bus.sender import Coordinates, Sender
from mindbus.bus.topology import Topology
from mindbus.bus.transport import Incoming
from mindbus.files.store import FolderFiles
from mindbus.runtime.service import build, provide
from mindbus.testing.deliver import running
from tests.fleets import settings_for
from tests.greetings import Greet, Greeted, Greeting


class Tally(BaseModel):
    count: int = 0


class GetTally(Query[Tally], domain="answers", action="get_tally"):
    """Ask for the tally."""


class Reset(Command[Nothing], domain="answers", action="reset"):
    """Set it to zero."""


@pytest.mark.parametrize(
    ("returned", "shown"),
    [
        (str, "str"),
        (Greeting, "Greeting"),
        (None, "NoneType"),
        (Tally | None, r".*Tally \| None"),
        (list[Greeted], r"list\[.*Greeted\]"),
        (tuple[Tally, Greeting], "tuple"),
        (Iterator[Tally], "Iterator"),
        (dict[str, Tally], "dict"),
    ],
)
def test_an_annotation_that_does_not_fit_fails_at_import(returned: Any, shown: str) -> None:
    async def tell(self: object, query: GetTally) -> Any: ...

    tell.__annotations__["return"] = returned
    expected = "must return Tally, or a list or tuple of it with events and commands to publish, not"
    mark: Any = on_command
    with pytest.raises(TypeError, match=rf"Counter\.tell {expected} .*{shown}"):
        type("Counter", (Worker,), {"tell": mark(tell)})


@pytest.mark.parametrize(
    "returned",
    [
        Tally,
        tuple[Tally, Greeted],
        tuple[Tally | Publish, ...],
        list[Tally | Greeted],
        Sequence[Tally | Reset],
        Tally | tuple[Tally, Greeted],
        Any,
    ],
)
def test_an_annotation_that_fits_is_taken(returned: Any) -> None:
    async def tell(self: object, query: GetTally) -> Any: ...

    tell.__annotations__["return"] = returned
    mark: Any = on_command
    assert type("Counter", (Worker,), {"tell": mark(tell)}).routes.commands == (GetTally,)  # type: ignore[attr-defined]  # a Worker's


def test_a_handler_of_an_event_answers_nobody() -> None:
    async def hear(self: object, event: Greeted) -> Any: ...

    hear.__annotations__["return"] = Tally
    mark: Any = on_event
    with pytest.raises(TypeError, match=r"Counter\.hear must return None, or events and commands to publish"):
        type("Counter", (Worker,), {"hear": mark(hear)})


def cause(message: type[Message]) -> Envelope:
    return Envelope(
        id="msg_1",
        source="/mb/test/1",
        type=message.wire.type,
        time=datetime.now(UTC),
        correlationid="msg_1",
        mbkind=Kind.EVENT if message is Greeted else Kind.COMMAND,
        mbrequester="user.local",
        mbreplyto=None if message is Greeted else "reply.test.1",
    )


@pytest.fixture
def sender(tmp_path: Path) -> Sender:
    return Sender("counter", "1", "svc.counter", "reply.counter.1", Claims(FolderFiles(tmp_path, tmp_path.as_uri())))


@pytest.mark.parametrize(
    ("message", "returned", "shown"),
    [
        (Reset, (event for event in [Greeted(name="Anna")]), "returned a generator, which can be neither"),
        (Reset, {1: Greeted(name="Anna")}.values(), "returned a dict_values.*several of them as a list or a tuple"),
        (Reset, "done", "returned a str"),
        (Greeted, Tally(), "returned a Tally"),
        (GetTally, [Tally(), Greeting(text="")], "returned a Greeting.*a list or tuple holds one result"),
        (GetTally, [Tally(), None], "returned a NoneType"),
        (GetTally, [Tally(), [Greeted(name="Anna")]], "returned a list"),
        (GetTally, [Tally(), Tally()], "returned a Tally"),
        (GetTally, None, "returned no Tally"),
        (Greet, [Greeted(name="Anna")], "returned no Greeting"),
        (None, (event for event in [Greeted(name="Anna")]), "a task returned a generator"),
    ],
)
async def test_an_item_that_cannot_be_published_raises(
    message: type[Message] | None, returned: object, shown: str, sender: Sender
) -> None:
    with pytest.raises(TypeError, match=shown):
        await address_results(returned, sender, cause(message) if message else None)


async def test_the_result_goes_to_the_requester_and_the_rest_is_published(sender: Sender) -> None:
    outgoing = await address_results((Greeted(name="Anna"), Tally(count=2), Reset()), sender, cause(GetTally))

    assert [each.envelope.type for each in outgoing] == [
        "mb.evt.greeting.greeted.v1",
        "mb.cmd.answers.reset.v1",
        "mb.rpl.answers.get_tally.v1",
    ]
    assert outgoing[-1].envelope.data == {"status": "ok", "result": {"count": 2}}


class Keeper(Worker):
    """Does it once, says how often."""

    name = "answers"

    def __init__(self) -> None:
        self.resets = 0

    @on_command
    async def reset(self, command: Reset) -> None:
        self.resets += 1


async def test_who_asks_again_after_a_restart_is_answered_as_another_instance_was(tmp_path: Path) -> None:
    settings, keeper = settings_for(f"memory://{tmp_path}", tmp_path), Keeper()
    asked = Coordinates(message_id="01a20ec0-124c-7545-8a2a-bfab773f550c")

    def make(_context: WorkerContext) -> Keeper:
        return keeper

    make.name = keeper.name  # type: ignore[attr-defined]  # as a Worker class has one
    async with running(make, settings=settings):
        for _ in range(2):
            async with connect("svc.swm", settings=settings, service="swm") as bus:
                await bus.request(Reset(), **asked, timeout_s=5)

    assert keeper.resets == 1


class LosesFirstReply(MemoryTransport):
    """Loses a reply with the connection, whose queue dies with it, then consumes from another of that name."""

    lost = 0

    def consume(
        self,
        topology: Topology,
        queue: str,
        prefetch: int | None,
        deliver: Callable[[Incoming], None],
        on_begin: Callable[[], None] | None = None,
    ) -> MemoryConsumer:
        def lose_first(incoming: Incoming) -> None:
            self.lost += 1
            if self.lost > 1:
                deliver(incoming)
            elif on_begin is not None:
                on_begin()

        return super().consume(topology, queue, prefetch, lose_first, on_begin)


async def test_whose_reply_may_have_been_lost_asks_again_at_once(tmp_path: Path) -> None:
    settings, keeper, broker = settings_for(f"memory://{tmp_path}", tmp_path), Keeper(), MemoryBroker()
    service = build(lambda _context: keeper, keeper.name, settings, MemoryTransport(broker))
    await provide([service], settings)
    await service.start()
    await service.wait_ready()
    transport = LosesFirstReply(broker)

    async with new_client(transport, new_sender("swm", "svc.swm", settings), settings) as bus:
        await bus.request(Reset(), timeout_s=30)

    assert (keeper.resets, transport.lost) == (1, 2)
    await service.drain()


@pytest.mark.parametrize("other", ["reply.storage.1", "reply.client.mark-1", "reply.client.1"])
async def test_a_recorded_reply_is_for_no_other_participant(other: str, tmp_path: Path) -> None:
    claims = Claims(FolderFiles(tmp_path, tmp_path.as_uri()))
    keeper, asker = Sender("answers", "1", "svc.answers", "reply.answers.1", claims), "reply.client.brand-1"
    command = (await Sender("client", "1", "user.anna", asker, claims).command(Reset(), wants_reply=True)).envelope
    recorded = await address_results(None, keeper, command)

    for key, goes_to in ((other, asker), ("reply.client.brand-2", "reply.client.brand-2")):
        (reply,) = answering(recorded, command.model_copy(update={"mbreplyto": key}))
        assert reply.routing_key == goes_to
