"""Valid uploads: bytes in staging, with the command that registers them."""

import hashlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

from bus_schema.artifacts import Manifest
from bus_schema.envelope import Envelope, Kind
from bus_schema.identities import owner_of
from bus_schema.messages import Command
from bus_schema.storage import RegisterArtifact, RegisterArtifacts
from mindbus.bus.topology import commands_exchange
from mindbus.bus.transport import properties_of
from mindbus.files.keys import staging_folder
from tests.crashes.memory_broker import Message

NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Upload:
    """What an agent stages, with the command that it sends."""

    key: str
    content: bytes
    manifest: Manifest
    message_id: str
    message: Message
    # Where the command registers several, all of them; the other fields are those of the first.
    members: "tuple[Upload, ...]" = ()

    @property
    def parts(self) -> "tuple[Upload, ...]":
        """What is staged for the command."""
        return self.members or (self,)

    @property
    def artifact_id(self) -> str:
        """What it becomes."""
        return self.manifest.id

    def again(self) -> "Upload":
        """The same, staged anew by an agent that was told that it is gone."""
        return an_upload(
            self.manifest.id,
            self.manifest.created_by,
            f"{self.message_id}_again",
            f"{int(self.key[-1], 16) + 3:x}"[-1],
            self.content,
            self.manifest.retention,
        )


@cache
def an_upload(
    artifact: str, by: str, message_id: str, upload_id: str, content: bytes, retention: str = "infinite"
) -> Upload:
    """A valid one."""
    owner = owner_of(by)
    key = f"staging/{NOON:%Y/%m/%d}/{staging_folder(owner)}/{upload_id * 32}"
    manifest = Manifest(
        id=artifact,
        trace_id="run_1",
        created_by=by,
        created_at=NOON,
        artifact_type="research_report",
        content_type="text/markdown",
        uri=key,
        size_bytes=len(content),
        checksum=f"sha256:{hashlib.sha256(content).hexdigest()}",
        owner=owner,
        retention=retention,
    )
    return Upload(key, content, manifest, message_id, a_message(RegisterArtifact(manifest=manifest), message_id, by))


def a_batch(message_id: str, *members: Upload) -> Upload:
    """Several of one agent's, registered by one command."""
    manifests = tuple(member.manifest for member in members)
    message = a_message(RegisterArtifacts(manifests=manifests), message_id, manifests[0].created_by)
    return replace(members[0], message_id=message_id, message=message, members=members)


def a_message(command: Command[Any], message_id: str, by: str, role: str | None = None) -> Message:
    """A command as it lies in storage's queue."""
    envelope = Envelope(
        id=message_id,
        source="/mb/test/1",
        type=command.wire.type,
        time=NOON,
        correlationid=message_id,
        mbkind=Kind.COMMAND,
        mbrequester=by,
        mbreplyto="reply.test.1",
        mbrole=role,
        data=command.model_dump(mode="json"),
    )
    exchange = commands_exchange("storage")
    return Message(envelope.to_wire(), properties_of(envelope), exchange, command.wire.routing_key)


@dataclass(frozen=True, slots=True)
class Story:
    """Registers of the same bytes; those of the ghost's, where there is one, were published but never committed."""

    uploads: tuple[Upload, ...]
    ghost: Upload | None = None


def stories(suffix: str = "") -> tuple[Story, ...]:
    """Each with and without a ghost; the suffix tells them apart where many are told in one world."""
    content = f"findings {suffix}".encode()

    def upload(name: str, by: str, upload_id: str, message: str = "", retention: str = "infinite") -> Upload:
        return an_upload(
            f"art_{name}{suffix}", f"agent.{by}.1", f"msg_{message or name}{suffix}", upload_id, content, retention
        )

    first, ghost = upload("a", "researcher", "0"), upload("ghost", "editor", "9")
    other = an_upload(f"art_f{suffix}", "agent.researcher.1", f"msg_f{suffix}", "5", f"more {suffix}".encode())
    both = a_batch(f"msg_g{suffix}", first, other)
    tellings = (
        (first,),
        # Two agents have made the same bytes; one of them for a day.
        (first, upload("b", "critic", "1")),
        (first, upload("d", "critic", "1", retention="1d")),
        # An agent that heard no answer has uploaded its artifact anew, or registers the same upload once more.
        (first, upload("a", "researcher", "2", message="c")),
        (first, upload("a", "researcher", "0", message="e")),
        # Several in one message; one of them by itself as well.
        (both,),
        (both, upload("a", "researcher", "2", message="c")),
    )
    return tuple(Story(uploads, haunt) for uploads in tellings for haunt in (None, ghost))
