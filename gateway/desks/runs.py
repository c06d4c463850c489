"""Process runs: start, look at, call off."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from agents.processes.cards import card_names
from bus_schema.artifacts import ArtifactRef
from bus_schema.ids import mint
from bus_schema.process import (
    BRIEF,
    CancelProcess,
    Card,
    GetProcess,
    ListProcesses,
    Run,
    RunPage,
    RunStatus,
    StartProcess,
)
from mindbus.bus.client import Client
from mindbus.sdk.artifacts import Artifacts
from mindbus.sdk.errors import StorageAway

_BRIEF_TYPE = "text/markdown"


@dataclass(frozen=True)
class RunRequest:
    """What is to be run on what; the same run id again is the same run."""

    briefs: Sequence[str]
    card_name: str | None = None
    card: Card | None = None
    params: dict[str, str] = field(default_factory=dict)
    run_id: str = field(default_factory=lambda: mint("run"))


class RunDesk:
    """Asks the orchestrator."""

    bus: Client
    shelf: Artifacts

    async def runs(
        self,
        status: RunStatus | None = None,
        card: str | None = None,
        cursor: str | None = None,
        limit: int = 20,
    ) -> RunPage:
        """Runs, newest first."""
        return await self.bus.request(ListProcesses(status=status, card=card, cursor=cursor, limit=limit))

    async def run(self, run_id: str) -> Run:
        """One run with its steps."""
        return await self.bus.request(GetProcess(run_id=run_id), trace=run_id)

    async def start_run(self, order: RunRequest) -> Run:
        """Register the briefs under the run's trace, then start it. Raises StorageAway, ArtifactRefused."""
        inputs = [await self._register(order.run_id, number, brief) for number, brief in enumerate(order.briefs)]
        start = StartProcess(
            run_id=order.run_id,
            card=order.card,
            card_name=order.card_name,
            inputs=tuple(inputs),
            params=order.params,
        )
        await self.bus.request(start, trace=order.run_id)
        return await self.run(order.run_id)

    async def cancel_run(self, run_id: str, reason: str = "") -> Run:
        """No further step is sent; late results are ignored."""
        return await self.bus.request(CancelProcess(run_id=run_id, reason=reason), trace=run_id)

    def cards(self) -> tuple[str, ...]:
        """The cards that come with MindBus."""
        return card_names()

    async def _register(self, run_id: str, number: int, brief: str) -> ArtifactRef:
        # Of the run and its place in it, so that a start that is repeated finds its briefs again.
        artifact_id = f"art_{run_id.removeprefix('run_')[:60]}-{number}"
        put = await self.shelf.put(
            brief.encode(), artifact_type=BRIEF, trace=run_id, content_type=_BRIEF_TYPE, artifact_id=artifact_id
        )
        if put.is_pending:
            raise StorageAway(StorageAway.__doc__)
        return put.ref
