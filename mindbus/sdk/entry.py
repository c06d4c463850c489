"""One artifact on its way to storage."""

from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict

from bus_schema.artifacts import Manifest


class Entry(BaseModel):
    """What is known of a buffered artifact; written before anything leaves this machine, so that it never repeats.

    `upload_key` is where it is staged; the manifest's `uri` is the address of that key. Where the file store is on the
    same disk, the bytes are moved there rather than copied.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")
    manifest: Manifest
    upload_key: str
    buffered_at: AwareDatetime

    @property
    def artifact_id(self) -> str:
        """The id that the artifact will have, however often it is sent."""
        return self.manifest.id

    @property
    def needs(self) -> frozenset[str]:
        """The artifacts that storage must know first."""
        inputs = self.manifest.context.input_artifacts if self.manifest.context else ()
        return frozenset({*inputs, *filter(None, (self.manifest.supersedes,))})


def bytes_path(folder: Path, artifact_id: str) -> Path:
    """Where an entry's bytes lie, unless they have been moved to where they are staged."""
    return folder / f"{artifact_id}.bytes"


def entry_path(folder: Path, artifact_id: str) -> Path:
    """Where the entry itself lies; it is written only once its bytes are safe."""
    return folder / f"{artifact_id}.json"
