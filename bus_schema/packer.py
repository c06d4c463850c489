"""Commands of the packer (spec 002 F3, F5)."""

from typing import Literal

from pydantic import Field

from bus_schema.episodes import EpisodeId, Layer
from bus_schema.lsm import Moment
from bus_schema.messages import Command, Value


class Packed(Value):
    """Result for one episode: `unchanged` where it was that dense already, or has changed meanwhile."""

    episode_id: EpisodeId
    outcome: Literal["packed", "unchanged", "refused"]
    layer: Layer
    compression: float | None = None
    verified: bool = False
    put_back: tuple[str, ...] = ()
    struck_out: tuple[str, ...] = ()
    reason: str = ""


class PackEpisode(Command[Packed], domain="packer", action="pack"):
    """Pack one episode, due or not; going cold leads through warm."""

    episode_id: EpisodeId
    to: Literal[Layer.WARM, Layer.COLD] = Layer.WARM
    at: Moment | None = None


class PackRun(Value):
    """Report of one run; `is_done` when nothing is due any more, otherwise the next run continues."""

    warm: int = 0
    cold: int = 0
    refused: int = 0
    words_before: int = 0
    words_after: int = 0
    put_back: int = 0
    struck_out: int = 0
    is_done: bool = True


class RunPacking(Command[PackRun], domain="packer", action="run"):
    """Pack the episodes due as of `at` in small batches, at most `limit` of them."""

    at: Moment | None = None
    limit: int = Field(default=200, ge=1, le=10_000)
