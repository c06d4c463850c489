"""Lookup of memory on a user's message."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from agents.dialogue.agent import MemorySnippet
from agents.models.prompt import memory_materials
from bus_schema.dialogue import DialogueMessage, MessageKind
from bus_schema.glm import FoundKem
from mindbus.sdk.recall import EpisodeRecall, KemRecall, RecalledText
from mindbus.sdk.user_context import ContextItem, UserContexts

# Leaves room for the picture.
_RECALLED_WORDS = 250
_JUST_NOW = timedelta(minutes=10)


@dataclass(frozen=True)
class RetrievedMemory:
    """Memory on a message: units of shared memory, turns of earlier episodes, the user's summary, each once."""

    recalled: Sequence[MemorySnippet] = ()
    said_before: Sequence[MemorySnippet] = ()
    pictured: Sequence[MemorySnippet] = ()

    @property
    def snippets(self) -> list[MemorySnippet]:
        """All snippets, the most relevant first."""
        return [*self.recalled, *self.said_before, *self.pictured]

    def kem_ids(self, shown: Sequence[MemorySnippet]) -> tuple[str, ...]:
        """Ids of the units of shared memory among the shown snippets."""
        units = {each.id for each in self.recalled}
        return tuple(each.id for each in shown if each.id in units)


class MemoryLookup:
    """Raises what Pictures raises; memory that is away is no failure."""

    def __init__(self, pictures: UserContexts, recall: KemRecall, episodes: EpisodeRecall) -> None:
        self._pictures, self._recall, self._episodes = pictures, recall, episodes

    async def about(self, said: DialogueMessage) -> RetrievedMemory:
        """Memory on a message."""
        pictured, found, said_before = await asyncio.gather(
            self._pictures.of(said.user_id), self._found(said), self._said_before(said)
        )
        return _remembered(found, said_before, pictured)

    async def _found(self, said: DialogueMessage) -> Sequence[FoundKem]:
        """Units of shared memory; none for an instruction, which is self-contained."""
        if said.kind is MessageKind.HIDDEN or said.content is None:
            return ()
        return await self._recall.about(said.content, f"user.{said.user_id}")

    async def _said_before(self, said: DialogueMessage) -> Sequence[RecalledText]:
        """Turns of the same chat more than 10 minutes ago; later ones are shown to the model anyway."""
        if said.kind is MessageKind.HIDDEN or said.content is None:
            return ()
        return await self._episodes.about(said.content, said.user_id, said.time - _JUST_NOW)


def _remembered(
    found: Sequence[FoundKem], said_before: Sequence[RecalledText], pictured: Sequence[ContextItem]
) -> RetrievedMemory:
    recalled = memory_materials(found, _RECALLED_WORDS)
    shown = {material.id for material in recalled}
    facts = {each.kem.metadata.get("fact_id") for each in found if each.kem.id in shown}
    return RetrievedMemory(
        [MemorySnippet(material.id, material.text) for material in recalled],
        [MemorySnippet(each.id, each.text) for each in said_before],
        [MemorySnippet(known.id, known.text) for known in pictured if known.id not in facts],
    )
