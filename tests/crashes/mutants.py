"""Protocols that are wrong in one place each; every one of them must be found out."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime

from bus_schema.artifacts import Manifest
from bus_schema.identities import Principal
from bus_schema.storage_maintenance import OrphanReason
from mindbus.bus.decode import Decoded
from mindbus.bus.inbox import Outcomes
from mindbus.bus.outcomes import Outcome
from mindbus.bus.transport import Incoming, Outgoing, Transport
from mindbus.errors import Rejected
from mindbus.files.keys import object_key
from mindbus.runtime.processor import Processor
from storage_service.blobs import ContentGeneration, Declared, Labels
from storage_service.maintenance.registry import Removal, UnusedContent
from storage_service.registration import ArtifactRegistrar, Registered, RegistrationError
from storage_service.registry import PINNED_FOR, CommitFailure, Prepared
from storage_service.tables import DELETING, LIVE, PINNED
from tests.crashes.memory_database import Blob, Tables
from tests.crashes.memory_inbox import OutboxInbox, OutboxUnit
from tests.crashes.memory_maintenance import MemoryCareRegistry
from tests.crashes.memory_registry import MemoryRegistry
from tests.crashes.memory_world import AS_BUILT, Design
from tests.crashes.storages import ROOT_URL


class InAnotherOrder(ArtifactRegistrar):
    """What its mutants have in common; messages of one artifact."""

    async def _pin(self, staged: Sequence[Prepared]) -> Prepared:
        (each,) = staged
        generation = (await self.registry.pin([each.manifest.sha256]))[each.manifest.sha256].generation
        return replace(each, logical_id=each.manifest.id, generation=generation)

    async def _publish(self, prepared: Prepared) -> None:
        manifest = prepared.manifest
        key = object_key(manifest.sha256, prepared.generation)
        declared = Declared(manifest.sha256, manifest.size_bytes)
        await self.blobs.promote(prepared.upload, key, declared, Labels(manifest.id, manifest.created_by))


class CommitsBeforeTheCopy(InAnotherOrder):
    """INSERT, then move: a crash between the two leaves a manifest without bytes."""

    async def _promote(
        self, staged: Sequence[Prepared], principal: Principal
    ) -> dict[str, Prepared | RegistrationError]:
        if not staged:
            return {}
        assert isinstance(self.registry, MemoryRegistry)
        prepared = await self._pin(staged)
        async with self.registry.connection.ambient():
            await self.registry.commit([prepared])
        await self._publish(prepared)
        return {prepared.manifest.id: prepared}

    async def _commit(self, prepared: Sequence[Prepared]) -> dict[str, Registered | RegistrationError]:
        return {
            each.manifest.id: Registered(
                each.manifest.model_copy(
                    update={"uri": object_key(each.manifest.sha256, each.generation), "status": "completed"}
                ),
                is_new=True,
            )
            for each in prepared
        }


class CleansBeforeTheCommit(InAnotherOrder):
    """A move instead of a copy: what dies before the commit cannot be registered again."""

    async def _promote(
        self, staged: Sequence[Prepared], principal: Principal
    ) -> dict[str, Prepared | RegistrationError]:
        if not staged:
            return {}
        prepared = await self._pin(staged)
        await self._publish(prepared)
        await self.blobs.discard(prepared.upload)
        return {prepared.manifest.id: prepared}


class RefusesWithoutASecondLook(ArtifactRegistrar):
    """A delivery that overslept says no to what its twin has made."""

    async def _promote(
        self, staged: Sequence[Prepared], principal: Principal
    ) -> dict[str, Prepared | RegistrationError]:
        outcomes = await super()._promote(staged, principal)
        for outcome in outcomes.values():
            if isinstance(outcome, Rejected):
                raise outcome
        return outcomes


class AnswersBeforeTheCommit(Processor):
    """Publishes what the handler returns at once."""

    async def handle(self, message: Decoded) -> Sequence[Outgoing]:
        outgoing = await super().handle(message)
        await self.publish(Outcome("handled", outgoing))
        return outgoing


class ForgetsWhatItHasHandled(OutboxInbox):
    """No inbox: the second delivery gets another answer than the first."""

    async def outcomes_of(self, consumer: str, message_ids: Sequence[str]) -> Outcomes:
        return {}

    @asynccontextmanager
    async def unit_of_work(self, consumer: str) -> AsyncIterator[OutboxUnit]:
        async with super().unit_of_work(consumer):
            yield ForgetfulUnit()


class ForgetfulUnit(OutboxUnit):
    """Keeps the outbox, not the inbox."""

    async def record(self, outcomes: Outcomes) -> None:
        for outgoing in outcomes.values():
            await self.publish(outgoing)


class WaitsForTheMessageToComeAgain(OutboxInbox):
    """What was dropped after its commit never does."""

    async def relay(self, transport: Transport) -> None:
        if not self.marks:
            await self.connection.write("nothing", lambda tables: tables.unpublished.clear())
        await self.write_marks()
        await self.relay_outbox(transport)


class MarksBeforeItPublishes(Processor):
    """What is marked too early is not published by others when its process dies."""

    async def publish(self, outcome: Outcome, *, is_recorded: bool = False) -> list[Outgoing]:
        inbox = self.worker.inbox
        if is_recorded and isinstance(inbox, OutboxInbox) and (replies := outcome.outgoing):
            inbox.mark_published(self.worker.name, str(replies[-1].envelope.causationid))
            await inbox.write_marks()
        return await super().publish(outcome, is_recorded=is_recorded)


class MarksWhatOthersLeftBeforeItPublishes(OutboxInbox):
    """An answer that is marked too early dies with the second process, as it has with the first."""

    async def republish(self, transport: Transport) -> None:
        rows = dict(self.connection.database.committed.unpublished)
        self.marks += rows
        await self.write_marks()
        for outgoing in rows.values():
            for message in outgoing:
                await transport.publish(message)


class AcksBeforeItHandles(Processor):
    """What dies then is never delivered again."""

    async def process(self, incoming: Incoming) -> None:
        await incoming.ack()
        await super().process(incoming)


class UsesAKeyAgain(MemoryRegistry):
    """No generation: a collector that sleeps before it deletes wakes to delete the bytes of a new artifact."""

    def _pin(self, tables: Tables, sha256: str) -> ContentGeneration:
        blob = tables.blobs.get(sha256, Blob())
        state = LIVE if blob.state == LIVE else PINNED
        tables.blobs[sha256] = Blob(1, state, blob.size_bytes, self.clock() + PINNED_FOR)
        return ContentGeneration(sha256, 1)


class CommitsWhatIsCollected(MemoryRegistry):
    """No second look at the content: what was pinned long ago may be gone."""

    def _commit(self, tables: Tables, prepared: Prepared) -> Manifest | CommitFailure:
        sha256 = prepared.manifest.sha256
        tables.blobs[sha256] = replace(tables.blobs[sha256], state=PINNED, generation=prepared.generation)
        return super()._commit(tables, prepared)


class CondemnsWhatItSawUnused(MemoryCareRegistry):
    """A snapshot: what has come into use since then goes, too."""

    async def retire(self, removal: Removal, before: datetime) -> bool:
        def retire(tables: Tables) -> bool:
            assert removal.content is not None
            sha256 = removal.content.sha256
            tables.blobs[sha256] = replace(tables.blobs[sha256], state=DELETING)
            tables.removals[removal.key] = removal
            return True

        return await self.connection.write("condemn", retire)


class OutlawsWhatIsPinned(MemoryCareRegistry):
    """Takes an object without a manifest for nobody's, without a look at its pin."""

    async def unused_contents(self, before: datetime, after: str, limit: int) -> Sequence[UnusedContent]:
        return []

    async def strays(self, contents: Collection[ContentGeneration]) -> Mapping[ContentGeneration, OrphanReason]:
        tables = await self.connection.read()
        return {content: "unknown" for content in contents if not tables.holders(content.sha256, content.generation)}

    async def remove_stray(self, removal: Removal) -> bool:
        def remove_stray(tables: Tables) -> bool:
            return tables.removals.setdefault(removal.key, removal) is removal

        return await self.connection.write("outlaw", remove_stray)


class ExpiresTheBytesWithTheArtifact(MemoryCareRegistry):
    """Bytes that two artifacts share are not one artifact's to take along."""

    async def retire(self, removal: Removal, before: datetime) -> bool:
        content = removal.content
        assert content is not None
        tables = await self.connection.read()
        if any(row.expired_at for row in tables.manifests.values() if row.manifest.sha256 == content.sha256):
            return await CondemnsWhatItSawUnused(self.connection, self.clock).retire(removal, before)
        return await super().retire(removal, before)

    async def unused_contents(self, before: datetime, after: str, limit: int) -> Sequence[UnusedContent]:
        tables = await self.connection.read()
        expired = [row for row in tables.manifests.values() if row.expired_at]
        contents = [ContentGeneration(row.manifest.sha256, row.generation) for row in expired]
        return [UnusedContent(content, 1) for content in contents if content.sha256 > after]


def _registrar(kind: type[ArtifactRegistrar]) -> Design:
    return replace(AS_BUILT, registrar=lambda registry, blobs: kind(registry, blobs, ROOT_URL, 1024))


MUTANTS: dict[str, Design] = {
    **{
        kind.__name__: _registrar(kind)
        for kind in (CommitsBeforeTheCopy, CleansBeforeTheCommit, RefusesWithoutASecondLook)
    },
    **{
        kind.__name__: replace(AS_BUILT, inbox=kind)
        for kind in (ForgetsWhatItHasHandled, WaitsForTheMessageToComeAgain)
    },
    MarksWhatOthersLeftBeforeItPublishes.__name__: replace(AS_BUILT, inbox=MarksWhatOthersLeftBeforeItPublishes),
    MarksBeforeItPublishes.__name__: replace(AS_BUILT, processor=MarksBeforeItPublishes),
    **{kind.__name__: replace(AS_BUILT, processor=kind) for kind in (AnswersBeforeTheCommit, AcksBeforeItHandles)},
    **{kind.__name__: replace(AS_BUILT, registry=kind) for kind in (UsesAKeyAgain, CommitsWhatIsCollected)},
    **{
        kind.__name__: replace(AS_BUILT, care=kind)
        for kind in (CondemnsWhatItSawUnused, OutlawsWhatIsPinned, ExpiresTheBytesWithTheArtifact)
    },
}
