"""The envelope of every message: a structured CloudEvents 1.0 JSON body."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from bus_schema.artifacts import StepId, TraceId
from bus_schema.identities import SERVICE_NAME, Identity
from bus_schema.ids import TraceParent
from bus_schema.strict_json import MalformedJson, parse_object

CONTENT_TYPE = "application/cloudevents+json"
MAX_HOPS = 16
# How Python writes a member of an enumeration: on the wire it is its value alone.
_MEMBER, _VALUE = re.compile(r"<\w+\.\w+: ('[^']*')>"), r"\1"
# Ids of things by their pattern; the commands that list those that a person may name.
_ID = re.compile(r"\^([a-z]+)_\[A-Za-z0-9_-\]\{1,64\}\$")
_LISTED = {
    "art": ("an artifact", "artifacts ls"),
    "ep": ("an episode", "episodes ls"),
    "run": ("a run", "process ls"),
    "task": ("a task", "tasks ls"),
}

WireType = Annotated[str, StringConstraints(pattern=r"^mb\.(?:cmd|evt|rpl)\.[a-z0-9_]+\.[a-z0-9_]+\.v[1-9][0-9]*$")]
ReplyKey = Annotated[str, StringConstraints(pattern=rf"^reply\.{SERVICE_NAME}\.[A-Za-z0-9_-]{{1,64}}$")]
ClaimKey = Annotated[str, StringConstraints(pattern=r"^claims/[0-9]{4}/[0-9]{2}/[0-9]{2}/[0-9a-f]{64}$")]
MessageId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:-]{1,128}$")]


class Kind(StrEnum):
    """The kind of a message: command, event or reply."""

    COMMAND = "command"
    EVENT = "event"
    REPLY = "reply"


class NotAnEnvelope(ValueError):
    """The body is not a MindBus envelope; the detail names the field."""


class Envelope(BaseModel):
    """CloudEvents attributes, our `mb…` extensions, and `data`, or `dataref` if the data is large.

    `mbrequester` is the sender, `mbonbehalfof` whoever it is sent for, if that is somebody else; `mbrole` is that
    person's role, as known to the gateway where they are signed in. `mbtraceid` is the business
    trace (a run, a conversation), never the W3C trace id, which travels in `traceparent`.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)
    specversion: Literal["1.0"] = "1.0"
    id: MessageId
    source: str = Field(pattern=rf"^/mb/{SERVICE_NAME}/[A-Za-z0-9_-]{{1,64}}$")
    type: WireType
    subject: str | None = Field(default=None, max_length=256)
    time: AwareDatetime
    datacontenttype: Literal["application/json"] = "application/json"
    dataschema: str | None = None
    traceparent: TraceParent | None = None
    tracestate: str | None = Field(default=None, max_length=512)
    correlationid: MessageId
    causationid: MessageId | None = None
    expirytime: AwareDatetime | None = None
    dataref: ClaimKey | None = None
    mbkind: Kind
    mbrequester: Identity
    mbonbehalfof: Identity | None = None
    mbrole: Literal["operator"] | None = None
    mbtraceid: TraceId | None = None
    mbstepid: StepId | None = None
    mbattempt: int | None = Field(default=None, ge=1)
    mbreplyto: ReplyKey | None = None
    mbidempotencykey: str | None = Field(default=None, max_length=256)
    mbhops: int = Field(default=0, ge=0, le=MAX_HOPS)
    data: dict[str, Any] | None = None

    @property
    def requester(self) -> str:
        """Identity for whom it is asked: of `mbonbehalfof`, where its sender asks for somebody else."""
        return self.mbonbehalfof or self.mbrequester

    @property
    def service(self) -> str:
        """Name of the service that sent it."""
        return self.source.split("/")[2]

    def to_wire(self) -> bytes:
        """Serialise it as it is published."""
        return self.model_dump_json(exclude_none=True).encode()


def from_wire(body: bytes) -> Envelope:
    """Parse a body strictly, as untrusted input deserves. Raises NotAnEnvelope."""
    try:
        return Envelope.model_validate(parse_object(body))
    except MalformedJson as malformed:
        raise NotAnEnvelope(str(malformed)) from malformed
    except ValidationError as invalid:
        raise NotAnEnvelope(explain(invalid)) from invalid


def explain(invalid: ValidationError) -> str:
    """One line that names each invalid field without echoing its value."""
    return "; ".join(
        f"{'.'.join(map(str, error['loc'])) or 'message'}: {complaint(error)}"
        for error in invalid.errors(include_url=False, include_input=False)
        # It only says that another field, named already, is at fault.
        if error["type"] != "default_factory_not_called"
    )


def complaint(error: Mapping[str, Any]) -> str:
    """Pydantic's error about a field, without its value; of an id, how one looks and which command lists them."""
    if found := _ID.fullmatch(str(error.get("ctx", {}).get("pattern", ""))):
        prefix = found[1]
        if prefix not in _LISTED:
            return f"not an id like {prefix}_0192…"
        noun, command = _LISTED[prefix]
        return f"not {noun} id like {prefix}_0192…; `mindbus {command}` lists them"
    return _MEMBER.sub(_VALUE, str(error["msg"])).removeprefix("Value error, ")
