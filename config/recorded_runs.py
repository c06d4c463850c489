"""Recorded runs: manifests, artifacts and calls of models of a run, word for word, in a folder."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Self

import yaml
from pydantic import BaseModel

from bus_schema.artifacts import Manifest
from bus_schema.model_calls import MODEL_CALL, ModelCall
from bus_schema.run_control import RunGraph
from bus_schema.runs import Run
from bus_schema.storage import Lineage, LineageEdge

_SHIPPED = "article"
_ABOUT, _RUN, _GRAPH, _MANIFESTS, _OBJECTS = "about.yaml", "run.json", "graph.json", "manifests.jsonl", "objects"


class RecordingLabel(BaseModel):
    """Model that wrote it, licence of its weights, settings it was recorded with."""

    model: str
    licence: str
    settings: str


@dataclass(frozen=True)
class RecordedRun:
    """A run as it was; `contents` has the bytes of each artifact by its SHA-256."""

    run: Run
    graph: RunGraph
    manifests: tuple[Manifest, ...]
    contents: Mapping[str, bytes]

    @property
    def artifacts(self) -> tuple[Manifest, ...]:
        """Inputs and outputs, without the calls of models."""
        return tuple(each for each in self.manifests if each.artifact_type != MODEL_CALL)

    @property
    def calls(self) -> tuple[tuple[Manifest, ModelCall], ...]:
        """Calls of models in the order in which they were made."""
        kept = [each for each in self.manifests if each.artifact_type == MODEL_CALL]
        read = ((each, ModelCall.model_validate_json(self.content(each))) for each in kept)
        return tuple(sorted(read, key=lambda call: call[1].called_at))

    @property
    def lineage(self) -> Lineage:
        """Artifacts, and which of them each was made of."""
        nodes = self.artifacts
        ids = {node.id for node in nodes}
        edges = (
            LineageEdge(source=source, target=node.id)
            for node in nodes
            for source in (node.context.input_artifacts if node.context else ())
            if source in ids
        )
        return Lineage(nodes=nodes, edges=tuple(edges))

    def manifest(self, artifact_id: str) -> Manifest | None:
        return next((each for each in self.manifests if each.id == artifact_id), None)

    def content(self, manifest: Manifest) -> bytes:
        """Bytes of an artifact. Raises ValueError if they are not those that were recorded."""
        content = self.contents.get(manifest.sha256, b"")
        if hashlib.sha256(content).hexdigest() != manifest.sha256:
            raise ValueError(f"the recording does not have the bytes of {manifest.id}")
        return content

    @classmethod
    def read(cls, folder: Traversable) -> Self:
        """Raises OSError, ValidationError."""
        lines = folder.joinpath(_MANIFESTS).read_text("utf-8").splitlines()
        return cls(
            run=Run.model_validate_json(folder.joinpath(_RUN).read_bytes()),
            graph=RunGraph.model_validate_json(folder.joinpath(_GRAPH).read_bytes()),
            manifests=tuple(Manifest.model_validate_json(line) for line in lines),
            contents={file.name: file.read_bytes() for file in folder.joinpath(_OBJECTS).iterdir()},
        )

    def write(self, folder: Path) -> None:
        """Raises FileExistsError if the folder is there, OSError."""
        folder.mkdir(parents=True)
        (folder / _OBJECTS).mkdir()
        (folder / _RUN).write_text(self.run.model_dump_json(indent=1) + "\n", "utf-8")
        (folder / _GRAPH).write_text(self.graph.model_dump_json(indent=1) + "\n", "utf-8")
        lines = (f"{each.model_dump_json(exclude_none=True)}\n" for each in self.manifests)
        (folder / _MANIFESTS).write_text("".join(lines), "utf-8")
        for digest, content in self.contents.items():
            (folder / _OBJECTS / digest).write_bytes(content)


@cache
def shipped_recording() -> tuple[RecordingLabel, RecordedRun]:
    """The recording that ships with MindBus, with its label."""
    folder = resources.files("config").joinpath("recorded", _SHIPPED)
    label = RecordingLabel.model_validate(yaml.safe_load(folder.joinpath(_ABOUT).read_bytes()))
    return label, RecordedRun.read(folder)
