"""What must be true of storage between any two effects, and once all is quiet."""

import hashlib
from dataclasses import dataclass, field

from bus_schema.envelope import Kind
from mindbus.bus.transport import Outgoing
from tests.crashes.memory_broker import MemoryBroker
from tests.crashes.memory_database import MemoryDatabase, Row
from tests.crashes.memory_objects import Bucket


@dataclass(slots=True)
class Invariants:
    """A reader who looks at everything after every effect, and never forgets what it was told."""

    bucket: Bucket
    database: MemoryDatabase
    broker: MemoryBroker
    asked: set[str] = field(default_factory=set)
    seen: dict[str, Row] = field(default_factory=dict)
    answers: dict[str, bytes] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def look(self) -> None:
        """An artifact that exists has its bytes, goes on existing as it is."""
        manifests = self.database.committed.manifests
        for artifact_id, row in self.seen.items():
            if manifests.get(artifact_id) != row:
                self.broken.append(f"{artifact_id} has changed since it was committed")
        for artifact_id, row in manifests.items():
            self.seen[artifact_id] = row
            kept = self.bucket.kept.get(row.object_key)
            if kept is None:
                self.broken.append(f"{artifact_id} is committed without bytes at {row.object_key}")
            elif hashlib.sha256(kept.content).hexdigest() != row.manifest.sha256:
                self.broken.append(f"{artifact_id} is committed with other bytes at {row.object_key}")

    def hear(self, message: Outgoing) -> None:
        """A yes is true when it is said; a message has one answer, however often it is given."""
        envelope = message.envelope
        data = envelope.data or {}
        if envelope.mbkind is Kind.EVENT:
            self._require_committed(data["artifact"]["artifact_id"], "announced")
        if envelope.mbkind is not Kind.REPLY:
            return
        assert envelope.causationid is not None
        if self.answers.setdefault(envelope.causationid, message.body) != message.body:
            self.broken.append(f"{envelope.causationid} has two answers")
        if data["status"] == "ok":
            self._require_committed(data["result"]["artifact_id"], "confirmed")
        else:
            self._require_refusable(data)

    def require_quiet(self) -> None:
        """Nothing is left to do, nothing is left over."""
        tables = self.database.committed
        left = {
            "messages": [*self.broker.waiting, *self.broker.unsettled],
            "dead letters": self.broker.dead,
            "unpublished messages": tables.outbox,
            "spent uploads": tables.spent,
            "staged files": self.bucket.keys("staging/"),
            "orphans": self.bucket.keys("orphans/"),
            "half-written files": self.bucket.keys("objects/.tmp/"),
        }
        for what, there_are in left.items():
            if there_are:
                self.broken.append(f"{what} are left over: {there_are}")
        if unanswered := self.asked - self.answers.keys():
            self.broken.append(f"never answered: {sorted(unanswered)}")
        referred = sorted({row.object_key for row in tables.manifests.values()})
        if self.bucket.keys("objects/") != referred:
            self.broken.append(f"objects {self.bucket.keys('objects/')} where manifests refer to {referred}")

    def _require_committed(self, artifact_id: str, how: str) -> None:
        if artifact_id not in self.database.committed.manifests:
            self.broken.append(f"{artifact_id} was {how} before it was committed")

    def _require_refusable(self, data: dict[str, object]) -> None:
        self.broken.append(f"a valid upload was refused: {data['code']} {data['message']}")
