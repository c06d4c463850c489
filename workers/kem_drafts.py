"""Batches of unit drafts in an artifact, one draft per line, in JSON."""

from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from bus_schema.artifacts import ArtifactRef
from bus_schema.envelope import explain
from bus_schema.glm import MAX_BATCH
from bus_schema.kem import KemDraft
from bus_schema.replies import Code
from config.settings import FleetSettings
from mindbus.bus.context import MessageContext
from mindbus.bus.worker import WorkerContext
from mindbus.errors import Rejected
from mindbus.sdk.artifacts import open_artifacts
from mindbus.sdk.errors import ArtifactTooLong

MAX_BYTES = 64 * 1024**2


class DraftReader:
    """Reads such artifacts with the rights of the requester."""

    def __init__(self, context: WorkerContext) -> None:
        self._kit = context

    async def read(self, ref: ArtifactRef, context: MessageContext) -> Sequence[KemDraft]:
        """Raises Rejected where there is no such artifact, where one of its lines is no draft; TemporaryFailure."""
        bus = self._kit.bus.acting_as(context.requester)
        artifacts = open_artifacts(bus, self._kit.settings_as(FleetSettings), self._kit.clock)
        try:
            raw = await artifacts.get(ref.artifact_id, trace=context.trace_id, max_bytes=MAX_BYTES)
        except ArtifactTooLong as error:
            raise Rejected(Code.TOO_LARGE, f"a batch has {MAX_BYTES} bytes at most; send several") from error
        return drafts_of(raw)


def drafts_of(raw: bytes) -> Sequence[KemDraft]:
    """One of each line that is not empty. Raises Rejected."""
    drafts = tuple(_drafts(raw))
    if not drafts:
        raise Rejected(Code.INVALID, "the artifact of this batch is empty; it has a draft a line, in JSON")
    if len(drafts) > MAX_BATCH:
        raise Rejected(Code.TOO_LARGE, f"a batch has {MAX_BATCH} units at most, this one {len(drafts)}; send several")
    return drafts


def _drafts(raw: bytes) -> Iterator[KemDraft]:
    for number, line in enumerate(raw.split(b"\n"), 1):
        if line.strip():
            try:
                yield KemDraft.model_validate_json(line)
            except ValidationError as error:
                message = f"line {number} of the artifact is no draft, nothing has been stored: {explain(error)}"
                raise Rejected(Code.INVALID, message, {"line": number}) from error
