"""What is said to the packer (spec 002 F3, F5)."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from bus_schema.episodes import EpisodeId, Layer
from bus_schema.lsm import Moment
from bus_schema.messages import Command


class Packed(BaseModel):
    """What became of one episode: `unchanged` where it was that dense already, or has changed meanwhile."""

    model_config = ConfigDict(frozen=True)
    episode_id: EpisodeId
    outcome: Literal["packed", "unchanged", "refused"]
    layer: Layer
    compression: float | None = None
    verified: bool = False
    put_back: tuple[str, ...] = ()
    struck_out: tuple[str, ...] = ()
    reason: str = ""


class PackEpisode(Command[Packed], domain="packer", action="pack"):
    """Have one episode kept in a lower layer, whether or not its time has come; a cold one goes by way of warm."""

    episode_id: EpisodeId
    to: Literal[Layer.WARM, Layer.COLD] = Layer.WARM
    at: Moment | None = None


class PackRun(BaseModel):
    """What one run did; `is_done` where nothing is due any more, else the next run goes on from here."""

    model_config = ConfigDict(frozen=True)
    warm: int = 0
    cold: int = 0
    refused: int = 0
    words_before: int = 0
    words_after: int = 0
    put_back: int = 0
    struck_out: int = 0
    is_done: bool = True


class RunPacking(Command[PackRun], domain="packer", action="run"):
    """Pack what is due as of `at`, in small batches, at most `limit` episodes."""

    at: Moment | None = None
    limit: int = Field(default=200, ge=1, le=10_000)
