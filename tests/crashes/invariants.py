"""What must be true of storage between any two effects, and once all is quiet."""

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from bus_schema.envelope import Envelope, Kind
from mindbus.bus.transport import Outgoing
from tests.crashes.uploads import Upload


@dataclass(frozen=True, slots=True)
class Artifact:
    """What a reader of the database learns: where the bytes must be, and which."""

    object_key: str
    sha256: str


@dataclass
class Invariants:
    """A reader who looks at everything after every effect, and never forgets what it was told.

    `swept` are the staged files that lay too long, so that their agents have to stage them anew. Where one process
    `is_alone` at a time, it doubles no event that no message has caused, either.
    """

    # By message; None where a message registers nothing.
    asked: dict[str, Upload | None] = field(default_factory=dict)
    seen: dict[str, Artifact] = field(default_factory=dict)
    artifacts: Mapping[str, Artifact] = field(default_factory=dict)
    swept: set[str] = field(default_factory=set)
    answers: dict[str, bytes] = field(default_factory=dict)
    # By all that an event says: whatever is said once more is the same message.
    events: dict[tuple[str, str], str] = field(default_factory=dict)
    is_alone: bool = False
    turned_away: list[Upload] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def copy(self) -> "Invariants":
        """What the reader knows by now, for one of several futures."""
        known = {name: type(value)(value) for name, value in vars(self).items()}
        return Invariants(**known)

    def look(
        self,
        artifacts: Mapping[str, Artifact],
        content_of: Callable[[str], bytes | None],
        expired: Collection[str] = (),
    ) -> None:
        """An artifact that exists has its bytes, and goes on existing as it is until its time is over."""
        for artifact_id, artifact in self.seen.items():
            if artifacts.get(artifact_id) != artifact and artifact_id not in expired:
                self.broken.append(f"{artifact_id} was {artifact}, now it is {artifacts.get(artifact_id)}")
        for artifact_id, artifact in artifacts.items():
            content = content_of(artifact.object_key)
            if content is None:
                self.broken.append(f"{artifact_id} is committed without bytes at {artifact.object_key}")
            elif hashlib.sha256(content).hexdigest() != artifact.sha256:
                self.broken.append(f"{artifact_id} is committed with other bytes at {artifact.object_key}")
        self.artifacts = artifacts
        self.seen.update(artifacts)

    def hear(self, message: Outgoing) -> None:
        """A yes is true when it is said; a message has one answer, however often it is given."""
        envelope = message.envelope
        data = envelope.data or {}
        if envelope.mbkind is Kind.EVENT:
            self._hear_event(envelope, data)
        if envelope.mbkind is not Kind.REPLY:
            return
        assert envelope.causationid is not None
        is_first = envelope.causationid not in self.answers
        if self.answers.setdefault(envelope.causationid, message.body) != message.body:
            self.broken.append(f"{envelope.causationid} has two answers")
        upload = self.asked[envelope.causationid]
        if upload is not None:
            self._hear_outcomes(upload, data, is_first=is_first)

    def require_quiet(self, left: Mapping[str, Collection[Any]], objects: Collection[str]) -> None:
        """Nothing is left to do, nothing is left over, nobody waits for an answer, everything staged exists."""
        self.broken += [f"{what} are left over: {things}" for what, things in left.items() if things]
        if unanswered := self.asked.keys() - self.answers.keys():
            self.broken.append(f"never answered: {sorted(unanswered)}")
        uploads = [upload for upload in self.asked.values() if upload is not None]
        if missing := {part.artifact_id for upload in uploads for part in upload.parts} - self.seen.keys():
            self.broken.append(f"never registered: {sorted(missing)}")
        if unannounced := self.seen.keys() - {artifact_id for artifact_id, _ in self.events}:
            self.broken.append(f"never announced: {sorted(unannounced)}")
        referred = {artifact.object_key for artifact in self.artifacts.values()}
        if set(objects) != referred:
            self.broken.append(f"there are {sorted(objects)} where manifests refer to {sorted(referred)}")

    def _hear_outcomes(self, upload: Upload, data: Mapping[str, Any], *, is_first: bool) -> None:
        if data["status"] == "ok":
            items = data["result"].get("items", [data["result"]])
            for part, item in zip(upload.parts, items, strict=True):
                if "error" not in item or item["error"] is None:
                    self._require_committed(item["artifact_id"], "confirmed")
                elif is_first:
                    self._consider_refusal(part, item | {"message": item["error"]})
        elif is_first:
            for part in upload.parts:
                self._consider_refusal(part, data)

    def _hear_event(self, envelope: Envelope, data: Mapping[str, Any]) -> None:
        artifact_id = data.get("artifact", {}).get("artifact_id", "")
        if artifact_id:
            self._require_committed(artifact_id, "announced")
        told = self.events.setdefault((artifact_id, f"{envelope.type} {data}"), envelope.id)
        if told != envelope.id and (self.is_alone or envelope.causationid is not None):
            self.broken.append(f"{envelope.type} is doubled, as {told} and as {envelope.id}: {data}")

    def _require_committed(self, artifact_id: str, how: str) -> None:
        if artifact_id not in self.seen:
            self.broken.append(f"{artifact_id} was {how} before it was committed")

    def _consider_refusal(self, upload: Upload, data: Mapping[str, Any]) -> None:
        # One of several that meets a failure of its own is sent again by its agent.
        has_failed = data.get("status") == "failed"
        existing = self.seen.get(upload.artifact_id)
        if data["code"] == "conflict" and existing is not None and existing.sha256 != upload.manifest.sha256:
            return
        if has_failed or (data["code"] == "file_not_found" and upload.key in self.swept):
            self.turned_away.append(upload)
        else:
            self.broken.append(f"a valid upload was refused: {data['code']} {data['message']}")
