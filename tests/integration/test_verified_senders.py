"""Senders as RabbitMQ has verified them: who may speak for whom, whatever a message says of itself."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aio_pika
import pytest
from aio_pika.exceptions import AMQPError

from bus_schema.data import DeleteUser, Removed
from bus_schema.messages import Query
from bus_schema.replies import Code
from config.settings import FleetSettings
from mindbus import MessageContext, ReplyError, Worker, WorkerContext, connect, on_command
from mindbus.bus.client import Client
from mindbus.bus.deadletters import DeadLetters
from mindbus.bus.decode import ATTEMPT, ORIGIN
from mindbus.bus.sender import NotDelegated
from mindbus.bus.topology import DEAD, REQUEUE, Queue, Topology, backbone, of_service, rungs_of
from mindbus.bus.topology_admin import admin_channel, migrate
from mindbus.bus.transport import USER
from mindbus.runtime.provision import Administrator
from mindbus.testing.wait import until
from mindbus_fleet.node.private import PrivateNode
from tests.fleets import Fleet, fleet_of
from tests.greetings import Count, Greet, Greeter, Greeting, Misbehave
from tests.private_users import private_node, settings_of
from tests.raw_amqp import RawPublisher, an_envelope, properties_for

USERS = (
    *("greeter", "keeper", "critic", "intruder", "dialogue", "subagent-analytic", "gateway"),
    *("user.anna", "user.local", "operator.olga"),
)
QUEUE = "mb.q.greeter"


class Look(Query[Greeting], domain="keeper", action="look"):
    """Tell for whom the requester is taken."""


class Tell(Query[Greeting], domain="keeper", action="tell"):
    """Tell who has sent it, and for whom."""


class Ponder(Query[Greeting], domain="keeper", action="ponder"):
    """Answer once the gate is open."""


class Keeper(Worker):
    """Owns data of people; says whether it takes its requester for an operator."""

    name = "keeper"

    def __init__(self, _context: WorkerContext) -> None:
        self.reply_to = ""
        self.gate = asyncio.Event()

    @on_command
    async def ponder(self, _query: Ponder, context: MessageContext) -> Greeting:
        self.reply_to = context.envelope.mbreplyto or ""
        await self.gate.wait()
        return Greeting(text="true")

    @on_command
    async def delete(self, command: DeleteUser) -> Removed:
        return Removed(counts={"things": 1})

    @on_command
    async def look(self, command: Look, context: MessageContext) -> Greeting:
        return Greeting(text="operator" if context.is_operator else "somebody")

    @on_command
    async def tell(self, command: Tell, context: MessageContext) -> Greeting:
        sender = context.envelope.mbrequester
        return Greeting(text=f"{sender} for {context.envelope.mbonbehalfof}, so {context.requester} asks")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateNode]:
    # Receivers refuse even those whom the broker lets do anything.
    folder, unbounded = tmp_path_factory.mktemp("node"), ("intruder", "user.anna")
    with private_node(folder, USERS, targets=("greeter", "keeper"), unbounded=unbounded) as node:
        yield node


@pytest.fixture
def settings(node: PrivateNode, tmp_path: Path) -> FleetSettings:
    return settings_of(node, tmp_path)


@pytest.fixture(autouse=True)
async def no_dead_letters(node: PrivateNode) -> AsyncIterator[None]:
    """Drops what a test leaves among the dead."""
    yield
    await DeadLetters(node.amqp_url).drop("greeter", lambda letter: True)


@pytest.fixture
async def fleet(settings: FleetSettings) -> AsyncIterator[Fleet]:
    async with fleet_of(Greeter, settings=settings) as running:
        yield running


def client_of(user: str, node: PrivateNode, settings: FleetSettings, identity: str, service: str) -> Client:
    """A client that logs in as a user, the administrator where there is none, and says that it is somebody."""
    url = node.worker_urls[user] if user else node.amqp_url
    theirs = settings.model_copy(update={"amqp_url": url})
    return connect(identity, settings=theirs, service=service)


@pytest.mark.parametrize(
    ("user", "identity", "service"),
    [
        ("critic", "agent.critic", "critic"),
        ("critic", "svc.critic", "critic"),
        ("critic", "user.anna", "critic"),
        ("user.anna", "user.anna", "client"),
        ("operator.olga", "user.olga", "client"),
    ],
)
async def test_a_user_speaks_for_itself_and_for_those_whom_it_serves(
    fleet: Fleet, node: PrivateNode, settings: FleetSettings, user: str, identity: str, service: str
) -> None:
    async with client_of(user, node, settings, identity, service) as bus:
        assert (await bus.request(Greet(name="Ann"))).text == "Hello, Ann!"


@pytest.mark.parametrize(
    ("user", "identity", "service"),
    [
        ("intruder", "user.anna", "intruder"),
        ("intruder", "user.local", "client"),
        ("intruder", "svc.dialogue", "dialogue"),
        ("intruder", "agent.intruder", "storage"),
        ("critic", "agent.editor", "critic"),
        ("critic", "svc.swm", "critic"),
        ("user.anna", "user.boris", "client"),
        ("user.anna", "user.anna", "gateway"),
        ("user.anna", "svc.anna", "client"),
        ("operator.olga", "user.anna", "client"),
    ],
)
async def test_whoever_says_to_be_somebody_else_is_refused(
    fleet: Fleet, node: PrivateNode, settings: FleetSettings, user: str, identity: str, service: str
) -> None:
    async with client_of(user, node, settings, identity, service) as bus:
        with pytest.raises(ReplyError, match="may not speak for") as refused:
            await bus.request(Greet(name="Ann"))

    assert refused.value.code is Code.UNAUTHORIZED
    assert fleet[Greeter].greeted == []


async def test_the_owner_of_the_node_speaks_for_anybody(fleet: Fleet) -> None:
    for identity in ("user.anna", "svc.dialogue", "agent.critic"):
        assert (await fleet.bus.acting_as(identity).request(Greet(name="Ann"))).text == "Hello, Ann!"


@pytest.mark.parametrize("user", ["user.local", "gateway", ""])
async def test_an_operator_has_their_rights_at_a_client_of_their_own_and_at_the_gateway(
    node: PrivateNode, settings: FleetSettings, user: str
) -> None:
    service = {"": "cli", "gateway": "gateway"}.get(user, "client")
    async with fleet_of(Keeper, settings=settings), client_of(user, node, settings, "user.local", service) as bus:
        assert (await bus.request(DeleteUser(user_id="anna"), to="keeper")).counts
        assert (await bus.request(Look())).text == "operator"


@pytest.mark.parametrize("user", ["dialogue", "subagent-analytic", "critic"])
async def test_an_agent_that_is_taken_over_is_no_operator_whomever_it_speaks_for(
    node: PrivateNode, settings: FleetSettings, user: str
) -> None:
    async with fleet_of(Keeper, settings=settings), client_of(user, node, settings, "user.local", user) as bus:
        with pytest.raises(ReplyError, match="it is for operators") as refused:
            await bus.request(DeleteUser(user_id="anna"), to="keeper")
        assert (await bus.request(Look())).text == "somebody"

    assert refused.value.code is Code.UNAUTHORIZED


@pytest.mark.parametrize(
    ("user", "service", "role", "is_one"),
    [
        ("operator.olga", "client", False, True),
        ("gateway", "gateway", True, True),
        ("gateway", "gateway", False, False),
        ("dialogue", "dialogue", True, False),
        ("critic", "critic", True, False),
        ("user.anna", "client", True, False),
        ("", "cli", True, True),
    ],
)
async def test_an_operator_whom_no_setting_names_is_one_by_the_login_or_by_the_word_of_the_gateway(
    node: PrivateNode, settings: FleetSettings, user: str, service: str, role: bool, is_one: bool
) -> None:
    person = "user.anna" if user == "user.anna" else "user.olga"
    own_name = person if service in ("client", "cli") else f"svc.{service}"
    async with fleet_of(Keeper, settings=settings), client_of(user, node, settings, own_name, service) as own:
        bus = own.acting_as(person, is_operator=role)

        said = (await bus.request(Look())).text
        deleted = await bus.ask(DeleteUser(user_id="boris"), to="keeper")

    assert (said, deleted.status) == (("operator", "ok") if is_one else ("somebody", "error"))


async def test_who_sends_is_told_apart_from_for_whom(node: PrivateNode, settings: FleetSettings) -> None:
    async with (
        fleet_of(Keeper, settings=settings),
        client_of("gateway", node, settings, "svc.gateway", "gateway") as bus,
    ):
        own = await bus.request(Tell())
        for_anna = await bus.acting_as("user.anna").request(Tell())
        for_boris = await bus.acting_as("user.anna").acting_as("user.boris").request(Tell())

    assert own.text == "svc.gateway for None, so svc.gateway asks"
    assert for_anna.text == "svc.gateway for user.anna, so user.anna asks"
    assert for_boris.text == "svc.gateway for user.boris, so user.boris asks"


@pytest.mark.parametrize(
    ("sender", "behalf", "reason"),
    [
        ("agent.critic", "svc.storage", "critic may not speak for svc.storage"),
        ("agent.critic", "agent.editor", "critic may not speak for agent.editor"),
        ("svc.dialogue", "user.anna", "critic is not svc.dialogue"),
        ("user.boris", "user.anna", "critic is not user.boris"),
    ],
)
async def test_nobody_asks_for_whom_the_list_does_not_name_nor_as_another_service(
    fleet: Fleet, node: PrivateNode, sender: str, behalf: str, reason: str
) -> None:
    forged = an_envelope(source="/mb/critic/1", mbrequester=sender, mbonbehalfof=behalf)
    dead = DeadLetters(node.amqp_url)
    async with await aio_pika.connect(node.worker_urls["critic"]) as connection:
        await RawPublisher(await connection.channel(), "critic").envelope(forged)

    await until(lambda: _reasons(dead, reason))
    assert fleet[Greeter].greeted == []


async def test_nobody_has_another_answered(fleet: Fleet, node: PrivateNode) -> None:
    forged = an_envelope(source="/mb/critic/1", mbrequester="agent.critic", mbreplyto="reply.storage.1")
    dead = DeadLetters(node.amqp_url)
    async with await aio_pika.connect(node.worker_urls["critic"]) as connection:
        await RawPublisher(await connection.channel(), "critic").envelope(forged)

    await until(lambda: _reasons(dead, "critic may not have reply.storage.1 answered"))
    assert fleet[Greeter].greeted == []


async def test_only_who_was_asked_answers(node: PrivateNode, settings: FleetSettings) -> None:
    async with (
        fleet_of(Keeper, settings=settings) as running,
        client_of("critic", node, settings, "agent.critic", "critic") as bus,
        await aio_pika.connect(node.worker_urls["intruder"]) as connection,
    ):
        keeper = running[Keeper]
        asking = asyncio.create_task(bus.request(Ponder(), message_id="msg_known", timeout_s=60))
        await until(lambda: bool(keeper.reply_to))
        reply = an_envelope(
            "mb.rpl.keeper.ponder.v1",
            {"status": "ok", "result": {"text": "false"}},
            source="/mb/intruder/1",
            mbrequester="svc.intruder",
            mbkind="reply",
            causationid="msg_known",
        )
        properties = properties_for(reply, correlation_id="msg_known")
        publisher = RawPublisher(await connection.channel(), "intruder")
        await publisher.body(_body(reply), "mb.reply", keeper.reply_to, **properties)
        # It is behind the false one in the queue of replies.
        await bus.request(Tell())
        keeper.gate.set()

        assert (await asking).text == "true"


async def test_a_worker_hears_at_once_for_whom_it_may_not_act(node: PrivateNode, settings: FleetSettings) -> None:
    async with client_of("critic", node, settings, "agent.critic", "critic") as bus:
        with pytest.raises(NotDelegated, match=r"critic may not act for svc\.storage"):
            bus.acting_as("svc.storage")


async def test_a_message_without_a_user_is_refused_and_a_false_one_is_not_taken_by_the_broker(
    fleet: Fleet, node: PrivateNode, settings: FleetSettings
) -> None:
    dead = DeadLetters(node.amqp_url)
    async with await aio_pika.connect(node.worker_urls["intruder"]) as connection:
        channel = await connection.channel(on_return_raises=True)
        publisher = RawPublisher(channel, "")
        await publisher.envelope(an_envelope(), user_id=None)
        with pytest.raises(AMQPError, match="user_id"):
            await publisher.envelope(an_envelope(), user_id="greeter")

    await until(lambda: _reasons(dead, "user_id is missing"))
    assert fleet[Greeter].greeted == []


async def test_nobody_puts_a_retry_or_a_dead_letter_into_anothers_queue(
    fleet: Fleet, node: PrivateNode, settings: FleetSettings
) -> None:
    dead = DeadLetters(node.amqp_url)
    forged = an_envelope(mbrequester="svc.dialogue", source="/mb/dialogue/1")
    headers = {ATTEMPT: 2, ORIGIN: QUEUE, USER: "dialogue"}
    async with await aio_pika.connect(node.worker_urls["intruder"]) as connection:
        publisher = RawPublisher(await connection.channel(), "intruder")
        for exchange, key in ((REQUEUE, QUEUE), (DEAD, "greeter")):
            await publisher.body(_body(forged), exchange, key, headers=headers, **properties_for(forged))

    await until(lambda: _reasons(dead, "intruder may not speak for svc.dialogue"))
    await dead.replay("greeter", lambda letter: True, by="user.local")
    await until(lambda: _reasons(dead, "intruder may not speak for svc.dialogue", times=2))
    assert fleet[Greeter].greeted == []


async def test_tried_again_dead_and_replayed_a_message_stays_that_of_its_sender(
    fleet: Fleet, node: PrivateNode, settings: FleetSettings
) -> None:
    dead = DeadLetters(node.amqp_url)
    async with client_of("critic", node, settings, "agent.critic", "critic") as bus:
        await bus.request(Misbehave(how="temporary", times=2), timeout_s=20)
        await bus.send(Misbehave(how="permanent"))
        await until(lambda: _reasons(dead, "never"))
        fleet[Greeter].fixed = True
        assert await dead.replay("greeter", lambda letter: letter.reason.endswith("never"), by="user.local")
        await until(lambda: len(fleet[Greeter].attempts_seen) == 5)

    assert fleet[Greeter].attempts_seen == [1, 2, 3, 1, 1]


async def test_a_retry_that_found_no_queue_stays_that_of_its_sender(
    fleet: Fleet, node: PrivateNode, settings: FleetSettings
) -> None:
    dead = DeadLetters(node.amqp_url)
    async with admin_channel(node.amqp_url) as channel:
        queue = await channel.declare_queue(QUEUE, passive=True)
        await queue.unbind(REQUEUE, QUEUE)
        async with client_of("critic", node, settings, "agent.critic", "critic") as bus:
            await bus.send(Misbehave(how="temporary", times=1))
            await until(lambda: _letters(dead, "lost", 1))
        await queue.bind(REQUEUE, QUEUE)

    await dead.replay("lost", lambda _letter: True, by="user.local")
    await until(lambda: len(fleet[Greeter].attempts_seen) == 2)


async def _letters(dead: DeadLetters, service: str, count: int) -> bool:
    return len(await dead.look(service)) == count


async def test_what_waits_in_a_queue_that_is_migrated_is_handled_as_its_senders(
    node: PrivateNode, settings: FleetSettings
) -> None:
    async with fleet_of(Greeter, settings=settings):
        pass
    wanted = backbone(rungs_of(settings.retry_rungs)) + of_service("greeter", takes_commands=True, event_keys=())
    async with client_of("critic", node, settings, "agent.critic", "critic") as bus:
        await bus.send(Greet(name="Ann"))
    async with client_of("intruder", node, settings, "svc.dialogue", "intruder") as bus:
        await bus.send(Greet(name="Eve"))
    # A queue of other arguments with what waits: migrated to these first, then back.
    others = _with_limit(wanted, 3)
    management = Administrator.at(node.amqp_url, settings).management

    assert await migrate(node.amqp_url, management, others) == [QUEUE]
    assert await migrate(node.amqp_url, management, wanted) == [QUEUE]

    async with fleet_of(Greeter, settings=settings) as fleet:
        await until(lambda: fleet[Greeter].greeted == ["Ann"])
        await until(lambda: _reasons(DeadLetters(node.amqp_url), "intruder may not speak for svc.dialogue"))
        assert (await fleet.bus.request(Count(name="Eve"))).times_seen == 0


async def test_queues_that_an_earlier_version_has_made_are_rebuilt_when_their_worker_starts(
    node: PrivateNode, settings: FleetSettings
) -> None:
    wanted = backbone(rungs_of(settings.retry_rungs)) + of_service("greeter", takes_commands=True, event_keys=())
    management = Administrator.at(node.amqp_url, settings).management
    await migrate(node.amqp_url, management, _with_limit(wanted, 5))
    async with client_of("critic", node, settings, "agent.critic", "critic") as bus:
        await bus.send(Greet(name="Zoe"))

    async with fleet_of(Greeter, settings=settings) as fleet:
        await until(lambda: fleet[Greeter].greeted == ["Zoe"])

    assert "x-delivery-limit" not in next(q for q in await management.queues(QUEUE) if q.name == QUEUE).arguments


async def _reasons(dead: DeadLetters, reason: str, times: int = 1) -> bool:
    """Whether so many dead letters of the greeter tell a reason."""
    letters = [letter for letter in await dead.look("greeter") if reason in letter.reason]
    return len(letters) >= times


def _body(envelope: dict[str, Any]) -> bytes:
    return json.dumps(envelope).encode()


def _with_limit(topology: Topology, limit: int) -> Topology:
    """The topology with another delivery limit of the greeter's queue."""
    queues = tuple(
        Queue(queue.name, queue.arguments | {"x-delivery-limit": limit}) if queue.name == QUEUE else queue
        for queue in topology.queues
    )
    return Topology(topology.exchanges, queues, topology.bindings)
