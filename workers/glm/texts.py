"""What a unit says, also where its words are an artifact's."""

from bus_schema.artifacts import ArtifactRef
from bus_schema.kem import KemSource
from config.settings import FleetSettings
from memory.glm.migration import own_text
from memory.glm.tables import KemRow
from memory.kps.extractor import DocumentExtractor, ExtractionLimits
from mindbus.bus.worker import WorkerContext
from mindbus.errors import Rejected, TemporaryFailure
from mindbus.logs import logger
from mindbus.sdk.artifacts import open_artifacts
from mindbus.sdk.requests import in_id_scope


class Texts:
    """Reads artifacts in the name of a unit's owner: what the owner may no longer read makes no vector either."""

    def __init__(self, context: WorkerContext) -> None:
        self._kit = context
        self._reader = DocumentExtractor(
            ExtractionLimits(
                context.settings_as(FleetSettings).kps_max_bytes, context.settings_as(FleetSettings).kps_timeout_s
            )
        )

    async def of(self, row: KemRow) -> str | None:
        """None where there is nothing to be read, or nothing any longer. Raises TemporaryFailure."""
        if row.ref is None:
            return await own_text(row)
        ref = ArtifactRef.model_validate(row.ref)
        try:
            return await in_id_scope(f"text/{row.id}/{row.version}", lambda: self._read(row, ref))
        except OSError as error:
            raise TemporaryFailure(f"{type(error).__name__}: {error}") from error
        except Rejected as error:
            logger().warning("a unit is left without a vector", kem_id=row.id, reason=str(error))
            return None

    async def close(self) -> None:
        """Let go of the reading process."""
        await self._reader.close()

    async def _read(self, row: KemRow, ref: ArtifactRef) -> str:
        """The part that the unit is about, if it says which."""
        artifacts = open_artifacts(
            self._kit.bus.acting_as(row.owner), self._kit.settings_as(FleetSettings), self._kit.clock
        )
        async with artifacts.open(ref.artifact_id) as reader:
            self._reader.require_size(reader.manifest.size_bytes)
            content = b"".join([piece async for piece in reader])
        text = (await self._reader.read(content, ref.content_type)).text
        source = None if row.source is None else KemSource.model_validate(row.source)
        return text if source is None or source.artifact != ref else text[source.start : source.end]
