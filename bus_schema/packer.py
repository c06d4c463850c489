"""Messages of the packer: its own commands, and those between it and long-term memory (spec 002 F3, F5)."""

from typing import Literal, Self

from pydantic import Field, model_validator

from bus_schema.episodes import ColdContent, EpisodeHead, EpisodeId, Layer, Note, WarmContent
from bus_schema.lsm import MAX_PAGE, Moment
from bus_schema.messages import Command, Query, Value


class PackReport(Value):
    """Report of a pack: words before and after, items restored and items removed by the check."""

    maker: str = Field(min_length=1, max_length=120)
    words_before: int = Field(ge=0)
    words_after: int = Field(ge=0)
    verified: bool
    put_back: tuple[str, ...] = ()
    struck_out: tuple[str, ...] = ()

    @property
    def compression(self) -> float:
        """Ratio of the words before to the words after."""
        return self.words_before / max(1, self.words_after)


class ApplyPack(Command[EpisodeHead], domain="lsm", action="apply_pack"):
    """Apply a pack; it is a conflict if the episode has changed since it was read, invalid if verification fails.

    Applying a pack of the same version again changes nothing. `notes` are those of a model, for a warm pack; memory
    adds what rules find.
    """

    episode_id: EpisodeId
    expected_version: int = Field(ge=1)
    to: Literal[Layer.WARM, Layer.COLD]
    content: WarmContent | ColdContent = Field(discriminator="layer")
    report: PackReport
    at: Moment | None = None
    notes: tuple[Note, ...] = Field(default=(), max_length=200)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.content.layer != self.to.value:
            raise ValueError(f"the content is {self.content.layer}, the episode is to be {self.to}")
        return self


class DueEpisode(Value):
    """An episode to be packed: its time trigger has fired and its priority allows it."""

    episode_id: EpisodeId
    version: int
    layer: Layer
    to: Layer
    trigger: Literal["age", "tokens"]


class DueEpisodes(Value):
    """Episodes due for packing, longest overdue first; ask again once these are packed."""

    items: tuple[DueEpisode, ...]


class GetDueEpisodes(Query[DueEpisodes], domain="lsm", action="get_due"):
    """Ask which episodes are due as of `at`; `after` skips everything up to this one."""

    at: Moment | None = None
    after: EpisodeId | None = None
    limit: int = Field(default=50, ge=1, le=MAX_PAGE)


class Packed(Value):
    """Result for one episode: `unchanged` if it was already that dense or has changed meanwhile."""

    episode_id: EpisodeId
    outcome: Literal["packed", "unchanged", "refused"]
    layer: Layer
    compression: float | None = None
    verified: bool = False
    put_back: tuple[str, ...] = ()
    struck_out: tuple[str, ...] = ()
    reason: str = ""


class PackEpisode(Command[Packed], domain="packer", action="pack"):
    """Pack one episode, due or not; a hot one becomes warm before it becomes cold."""

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
