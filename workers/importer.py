"""The role `importer`: documents become units of shared memory, and a text that the other roles can read."""

from collections.abc import Iterator

from bus_schema.artifacts import AIContext
from bus_schema.glm import RetrieveKems
from bus_schema.identities import user_of
from bus_schema.kem import Kem, KemRights
from bus_schema.kem_query import KemQuery
from bus_schema.kps import Chunking, ProcessRawData
from mindbus.bus.client import Client
from mindbus.sdk.requests import request_in_scope
from mindbus.sdk.role import RoleOutput, RoleWorker, StepInput, StepWork

# A word in the text stands once.
_CHUNKING = Chunking(overlap_chars=0)
_PAGE, _MOST_NAMED = 100, 500


class ImporterWorker(RoleWorker):
    """Has the knowledge processor read each input: PDF, DOCX, XLSX, PPTX, ODT, mail, HTML, tables, text.

    The units are private to whoever has started the run, who finds them in shared memory afterwards; they are named
    in the manifest of the text. Files are of at most 32 MiB, or MINDBUS_KPS_MAX_BYTES if that is less.
    """

    name = "importer"
    produces = ("document",)
    largest_input_bytes = 32 * 1024 * 1024

    async def make(self, work: StepWork) -> RoleOutput:
        """The text of all inputs, part by part, with the numbers of pages."""
        kems = [kem for each in work.inputs for kem in await self._imported(each, work)]
        text = "\n\n".join(_lines(kems))
        sources = tuple(each.manifest.id for each in work.inputs)
        context = AIContext(input_artifacts=sources, input_kems=tuple(kem.id for kem in kems[:_MOST_NAMED]))
        return RoleOutput(f"{text}\n".encode(), context=context)

    async def _imported(self, given: StepInput, work: StepWork) -> list[Kem]:
        """Units of a document, in order."""
        order, source = work.order, given.manifest.ref
        started_by = order.started_by
        bus = self.bus.acting_as(started_by, service=self.name) if started_by and user_of(started_by) else self.bus
        command = ProcessRawData(
            source=source,
            content_type=source.content_type,
            initial_metadata={"run_id": order.run_id},
            rights=KemRights(visibility="private"),
            chunking=_CHUNKING,
        )
        where = {"trace": order.run_id, "step": order.step_id}
        done = await request_in_scope(bus, command, source.artifact_id, timeout_s=work.limit_s, **where)
        return await _kems(bus, done.kem_ids)


async def _kems(bus: Client, ids: tuple[str, ...]) -> list[Kem]:
    found: dict[str, Kem] = {}
    for first in range(0, len(ids), _PAGE):
        some = ids[first : first + _PAGE]
        query = RetrieveKems(query=KemQuery(ids=some), page_size=len(some))
        found |= {item.kem.id: item.kem for item in (await request_in_scope(bus, query, some[0])).items}
    return [found[each] for each in ids if each in found]


def _lines(kems: list[Kem]) -> Iterator[str]:
    page = None
    for kem in kems:
        if (now := kem.metadata.get("page")) != page and now is not None:
            yield f"[page {now}]"
        page = now
        yield (kem.content or "").strip()
