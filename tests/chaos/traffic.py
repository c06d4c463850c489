"""Traffic of all kinds: each operation is tried under its own ids until it is accepted, then has its effects once."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bus_schema.artifacts import ArtifactRef
from bus_schema.cards import BRIEF, Card, CardStep
from bus_schema.codes import Code
from bus_schema.dialogue import Invoke, conversation_trace
from bus_schema.ids import mint
from bus_schema.kem import KemDraft
from bus_schema.lsm import RecordExchange, SaidMessage
from bus_schema.process import StartProcess
from bus_schema.swm import PublishKem
from mindbus import BusUnavailable, Client, ReplyError
from mindbus.errors import Unroutable
from mindbus.sdk.artifacts import open_artifacts
from mindbus.settings import Settings
from tests.chaos.bookkeeping import Book
from tests.chaos.ledger import Ledger

_BOOKED = ("booked", "audited")
# What each kind of operation brings about, once.
EFFECTS: Mapping[str, tuple[str, ...]] = {
    "command": _BOOKED,
    "request": _BOOKED,
    "process": ("completed", "registered"),
    "dialogue": ("received", "sent"),
    "kem": ("stored",),
    "recording": ("recorded",),
}
# Of twenty operations.
MIX = {"command": 8, "request": 5, "process": 1, "dialogue": 1, "kem": 2, "recording": 3}
_AGAIN_S = 0.3
_ANSWER_WITHIN_S = 5.0
_DIALOGUE_WITHIN_S = 20.0
_CARD = Card(
    name="chaos",
    steps=(CardStep(id="critique", role="critic", instructions="Criticise it.", inputs=(BRIEF,), produces="critique"),),
    result="critique",
)


@dataclass
class Operation:
    """One thing that somebody wants done once."""

    kind: str
    key: str
    began_at: float = field(default_factory=time.monotonic)
    accepted_at: float | None = None
    applied_at: float | None = None
    refusal: str = ""
    tries: int = 0

    def effects(self, ledger: Ledger) -> list[int]:
        """How often each of its effects has happened."""
        return [ledger.count(effect, self.key) for effect in EFFECTS[self.kind]]

    def look(self, ledger: Ledger) -> bool:
        """Whether all has happened; the first time, when that was seen is noted."""
        if self.applied_at is None and all(self.effects(ledger)):
            self.applied_at = time.monotonic()
        return self.applied_at is not None


async def put_storm(bus: Client, settings: Settings) -> ArtifactRef:
    """The brief of all runs."""
    async with open_artifacts(bus, settings) as artifacts:
        put = await artifacts.put(
            b"# Storm\n\nA storm came over the sea.\n",
            artifact_type=BRIEF,
            trace="run_briefs",
            content_type="text/markdown",
            visibility="public",
        )
    return put.ref


class Traffic:
    """Begins operations as a participant of the fleet."""

    def __init__(self, bus: Client, brief: ArtifactRef | None, within_s: float) -> None:
        self._bus, self._agent, self._brief = bus, bus.acting_as("agent.chaos"), brief
        self._within_s = within_s
        self._senders: dict[str, Callable[[str, str], Awaitable[object]]] = {
            "command": self._command,
            "request": self._request,
            "process": self._process,
            "dialogue": self._dialogue,
            "kem": self._kem,
            "recording": self._recording,
        }

    async def operate(self, operation: Operation) -> None:
        """Try until it is accepted or refused, or the time is over."""
        message_id = mint("op")
        with suppress(TimeoutError):
            async with asyncio.timeout(self._within_s):
                while operation.accepted_at is None and not operation.refusal:
                    operation.tries += 1
                    try:
                        await self._senders[operation.kind](operation.key, message_id)
                        operation.accepted_at = time.monotonic()
                    except (BusUnavailable, Unroutable, OSError):
                        await asyncio.sleep(_AGAIN_S)
                    except ReplyError as error:
                        if not error.code.retryable and error.code is not Code.EXPIRED:
                            operation.refusal = str(error)
                        await asyncio.sleep(_AGAIN_S)

    async def _command(self, key: str, message_id: str) -> None:
        await self._bus.send(Book(entry=key), message_id=message_id)

    async def _request(self, key: str, message_id: str) -> None:
        await self._bus.request(Book(entry=key), message_id=message_id, timeout_s=_ANSWER_WITHIN_S)

    async def _process(self, key: str, message_id: str) -> None:
        assert self._brief is not None
        start = StartProcess(run_id=key, card=_CARD, inputs=(self._brief,))
        await self._bus.request(start, trace=key, message_id=message_id, timeout_s=_ANSWER_WITHIN_S)

    async def _dialogue(self, key: str, message_id: str) -> None:
        user = key.removeprefix("msg_")
        said = Invoke(user_id=user, message="What do you remember of the storm?", message_id=key)
        trace = conversation_trace(user)
        await self._bus.request(said, trace=trace, message_id=message_id, timeout_s=_DIALOGUE_WITHIN_S)

    async def _kem(self, key: str, message_id: str) -> None:
        draft = KemDraft(id=key, content=f"The unit {key}.", metadata={"type": "note"})
        publish = PublishKem(kem=draft, persist_to_glm_if_new_or_updated=True)
        await self._agent.request(publish, message_id=message_id, timeout_s=_ANSWER_WITHIN_S)

    async def _recording(self, key: str, message_id: str) -> None:
        user = key.removeprefix("msg_")
        said = SaidMessage(message_id=key, role="user", content=f"This is {key}.", time=datetime.now(UTC))
        record = RecordExchange(chat_id=user, messages=(said,))
        await self._bus.request(record, message_id=message_id, timeout_s=_ANSWER_WITHIN_S)


_PREFIXES = {"process": "run", "dialogue": "msg", "kem": "kem", "recording": "msg"}


class Wave:
    """The operations that meet one fault: as many as are wanted, and more for as long as it lasts."""

    def __init__(
        self, traffic: Traffic, kinds: tuple[str, ...], wanted: int, per_s: float, chance: random.Random
    ) -> None:
        self._traffic, self._wanted, self._per_s, self._chance = traffic, wanted, per_s, chance
        self._kinds = [kind for kind in kinds for _ in range(MIX[kind])]
        self._under_way: set[asyncio.Task[None]] = set()
        self._may_pass = asyncio.Event()
        self._may_pass.set()
        self.fault_is_over = False
        self.operations: list[Operation] = []

    async def flow(self) -> None:
        """Begin operations until there are enough and the fault is over; never more than twice as many."""
        turns: list[str] = []
        while len(self.operations) < self._wanted or not self.fault_is_over:
            await self._may_pass.wait()
            turns = turns or self._chance.sample(self._kinds, len(self._kinds))
            if len(self.operations) < 2 * self._wanted:
                self.begin(turns.pop())
            await asyncio.sleep(1 / self._per_s)

    def begin(self, kind: str) -> Operation:
        """Begin one now."""
        operation = Operation(kind, mint(_PREFIXES.get(kind, "entry")))
        self.operations.append(operation)
        task = asyncio.create_task(self._traffic.operate(operation))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return operation

    def probe(self) -> list[Operation]:
        """Begin one of each kind."""
        return [self.begin(kind) for kind in dict.fromkeys(self._kinds)]

    async def pause(self) -> None:
        """Begin nothing more, and wait until what has begun is accepted."""
        self._may_pass.clear()
        await self.accepted()

    def resume(self) -> None:
        self._may_pass.set()

    async def accepted(self) -> None:
        """Wait for the end of every attempt."""
        while self._under_way:
            await asyncio.wait(set(self._under_way))
