"""Knowledge units (KEM drafts) of a source's pieces, with ids that a repetition has again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from pydantic import JsonValue, ValidationError

from bus_schema.envelope import explain
from bus_schema.ids import derived
from bus_schema.kem import Kem, KemDraft, KemRights, KemSource
from bus_schema.kps import ProcessRawData
from memory.kps.chunks import Piece
from memory.kps.document import Document
from memory.kps.errors import MetadataFull

ARTIFACT_KEY = "artifact_id"
_MARKDOWN = ("text/markdown", "text/x-markdown")
_REVISION = "revision"
_COMPARED = ("content_type", "content", "metadata", "source")


@dataclass(frozen=True, slots=True)
class Unit:
    """A draft to store, with the passage to embed: its content under the headings."""

    draft: KemDraft
    passage: str

    @property
    def kem_id(self) -> str:
        """Derived from the source and the number of the piece."""
        return str(self.draft.id)

    def is_known(self, kem: Kem | None) -> bool:
        """Whether memory has the same already, or a newer revision."""
        if kem is None:
            return False
        if _revision(kem.metadata) > _revision(self.draft.metadata):
            return True
        rights = KemRights.model_fields.keys() & self.draft.model_fields_set
        return all(getattr(kem, name) == getattr(self.draft, name) for name in (*_COMPARED, *rights))


def units_of(command: ProcessRawData, owner: str, document: Document, pieces: Sequence[Piece]) -> list[Unit]:
    """One for each piece; the same source, cut the same way for the same owner, has the same ids. Raises MetadataFull.

    What is known beforehand goes before what is found: a page, a section of the caller's own stays.
    """
    identity = _identity(command, owner)
    try:
        return [_unit(command, identity, number, document, piece) for number, piece in enumerate(pieces, 1)]
    except ValidationError as invalid:
        raise MetadataFull(reason=explain(invalid)) from invalid


def _unit(command: ProcessRawData, identity: str, number: int, document: Document, piece: Piece) -> Unit:
    content = document.text[piece.start : piece.end]
    draft = KemDraft(
        id=f"kem_{derived(identity, number).replace('-', '')}",
        content_type="text/markdown" if command.content_type.split(";")[0] in _MARKDOWN else "text/plain",
        content=content,
        metadata={**_found(number, piece), **command.initial_metadata, **_revised(command), **_artifact(command)},
        source=KemSource(artifact=command.source, start=piece.start, end=piece.end, links=command.links),
        **_rights(command.rights),
    )
    return Unit(draft, "\n".join([*(title for title in piece.section if title not in content), content]))


def _found(number: int, piece: Piece) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {"part": number}
    if piece.page is not None:
        found["page"] = piece.page
    if piece.section:
        found["section"] = list(piece.section)
    return found


def _revised(command: ProcessRawData) -> dict[str, JsonValue]:
    return {_REVISION: command.revision} if command.revision else {}


def _artifact(command: ProcessRawData) -> dict[str, JsonValue]:
    """The artifact id, by which all units of a document are found whatever its version."""
    return {} if command.source is None else {ARTIFACT_KEY: command.source.artifact_id}


def _revision(metadata: Mapping[str, JsonValue]) -> float:
    found = metadata.get(_REVISION, 0)
    return found if isinstance(found, int | float) else 0


def _rights(rights: KemRights) -> Mapping[str, object]:
    """Rights that differ from the default; without them, units that exist keep theirs."""
    return rights.model_dump() if rights != KemRights() else {}


def _identity(command: ProcessRawData, owner: str) -> str:
    """Key of a processing: the same source, content type and chunking of one owner have the same."""
    if command.key is not None:
        return "\n".join(("kps", owner, "key", command.key))
    if command.source is not None:
        source = f"{command.source.artifact_id}@{command.source.version}"
    else:
        source = sha256((command.raw_content or "").encode()).hexdigest()
    chunking = command.chunking
    return "\n".join(("kps", owner, source, command.content_type, f"{chunking.max_chars}/{chunking.overlap_chars}"))
