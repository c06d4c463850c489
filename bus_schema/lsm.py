"""What is said to the long-term memory, plus what it tells (spec 002)."""

from datetime import UTC, datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from bus_schema.dialogue import DialogueMessageId, FragmentId, MessageText
from bus_schema.episodes import (
    AnchorReason,
    ColdContent,
    Episode,
    EpisodeHead,
    EpisodeId,
    HotContent,
    Layer,
    RawLogIds,
    RawTurn,
    Speaker,
    WarmContent,
)
from bus_schema.identities import UserId
from bus_schema.messages import Command, Event, Query

MAX_RECORDED = 200
MAX_QUERY_CHARS = 4000
MAX_BUDGET_WORDS = 20_000
MAX_PAGE = 200

# Any farther and there is no counting days from it.
_FIRST_YEAR, _LAST_YEAR = 1900, 2999


def _in_bounds(moment: datetime) -> datetime:
    if not _FIRST_YEAR <= moment.astimezone(UTC).year <= _LAST_YEAR:
        raise ValueError(f"is not between the years {_FIRST_YEAR} and {_LAST_YEAR}")
    return moment


Moment = Annotated[AwareDatetime, AfterValidator(_in_bounds)]
SearchId = Annotated[str, StringConstraints(pattern=r"^srch_[A-Za-z0-9_-]{1,64}$")]
Tag = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]


class SaidMessage(BaseModel):
    """What was said at a time; the same `message_id` of a chat again is the same message."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    message_id: DialogueMessageId | None = None
    role: Speaker
    content: MessageText
    time: Moment
    speaker: str | None = Field(default=None, min_length=1, max_length=80)


class Recorded(BaseModel):
    """The messages are in the log for good, so many of them since now; the last one belongs to this episode."""

    model_config = ConfigDict(frozen=True)
    raw_log_ids: RawLogIds
    episode_id: EpisodeId
    new: int = 0


class RecordExchange(Command[Recorded], domain="lsm", action="record"):
    """Keep what was said, in the order of its times; the same again changes nothing, other words are a conflict."""

    chat_id: UserId
    messages: tuple[SaidMessage, ...] = Field(min_length=1, max_length=MAX_RECORDED)


class ScoreParts(BaseModel):
    """What an episode's score is made of: each signal with its weight already in it; `priority` reorders only."""

    model_config = ConfigDict(frozen=True)
    signals: dict[str, float]
    words: tuple[str, ...] = ()


class FoundEpisode(BaseModel):
    """An episode with those of its turns that were worth their words, in their order.

    `text` is what its layer says of it, where that was enough; then there are no turns.
    """

    model_config = ConfigDict(frozen=True)
    episode_id: EpisodeId
    layer: Layer
    headline: str
    started_at: AwareDatetime
    turns: tuple[RawTurn, ...] = ()
    text: str | None = None
    score: float
    explain: ScoreParts | None = None


class FoundEpisodes(BaseModel):
    """What memory has on the matter, the best first, within the budget.

    `unpacked` where raw turns of a warm or a cold episode were read; `is_degraded` where words alone were compared;
    no `search_id` where nothing was searched for.
    """

    model_config = ConfigDict(frozen=True)
    search_id: SearchId | None = None
    confidence: Literal["found", "weak", "nothing"]
    unpacked: bool
    words: int = Field(ge=0)
    episodes: tuple[FoundEpisode, ...]
    is_degraded: bool = False


class SearchEpisodes(Query[FoundEpisodes], domain="lsm", action="search"):
    """Find what was said on a matter, as of `at`; with `touch` what is found counts as used, so that it stays near.

    `depth` says how far to go: what the layers say (`summary`), the raw turns (`raw`), or whichever it takes (`auto`).
    """

    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARS)
    chat_id: UserId
    budget_words: int = Field(default=2400, ge=1, le=MAX_BUDGET_WORDS)
    at: Moment | None = None
    tags: tuple[Tag, ...] = Field(default=(), max_length=20)
    layers: tuple[Layer, ...] = Field(default=(), max_length=3)
    since: Moment | None = None
    until: Moment | None = None
    depth: Literal["auto", "summary", "raw"] = "auto"
    touch: bool = True
    explain: bool = False

    @model_validator(mode="after")
    def _asks_for_something(self) -> Self:
        if not self.query.strip():
            raise ValueError("query is empty; say what to look for")
        if self.since and self.until and self.until < self.since:
            raise ValueError("until is before since")
        return self


class GetEpisode(Query[Episode], domain="lsm", action="get_episode"):
    """Read an episode as its layer keeps it; its priority is that of the moment `at`."""

    episode_id: EpisodeId
    at: Moment | None = None


class EpisodePage(BaseModel):
    """Episodes, the latest first, with the cursor of the next page."""

    model_config = ConfigDict(frozen=True)
    items: tuple[EpisodeHead, ...]
    next_cursor: str | None = None


class ListEpisodes(Query[EpisodePage], domain="lsm", action="list_episodes"):
    """List the episodes of a chat, or of all."""

    chat_id: UserId | None = None
    layers: tuple[Layer, ...] = Field(default=(), max_length=3)
    anchors_only: bool = False
    at: Moment | None = None
    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=50, ge=1, le=MAX_PAGE)


class GetHotEpisodes(Query[FoundEpisodes], domain="lsm", action="get_hot"):
    """Read what is at the fingertips of a chat: the turns of its hot episodes, the latest that fit the budget."""

    chat_id: UserId
    budget_words: int = Field(default=1200, ge=1, le=MAX_BUDGET_WORDS)
    before: Moment | None = None


class UnpackEpisode(Command[HotContent], domain="lsm", action="unpack"):
    """Read the whole text of an episode from the log, which makes it hot again."""

    episode_id: EpisodeId
    at: Moment | None = None


class SetAnchor(Command[EpisodeHead], domain="lsm", action="set_anchor"):
    """Have an episode never go cold, or let it."""

    episode_id: EpisodeId
    is_anchor: bool = True
    reason: AnchorReason = AnchorReason.EXPLICIT


class PackReport(BaseModel):
    """How a pack was made, what the check found: words before and after, what was put back, what was struck out."""

    model_config = ConfigDict(frozen=True)
    maker: str = Field(min_length=1, max_length=120)
    words_before: int = Field(ge=0)
    words_after: int = Field(ge=0)
    verified: bool
    put_back: tuple[str, ...] = ()
    struck_out: tuple[str, ...] = ()

    @property
    def compression(self) -> float:
        """How many times fewer words there are."""
        return self.words_before / max(1, self.words_after)


class ApplyPack(Command[EpisodeHead], domain="lsm", action="apply_pack"):
    """Keep an episode in a lower layer; a conflict if it has changed since, invalid if the check does not hold.

    A pack of the same version again changes nothing.
    """

    episode_id: EpisodeId
    expected_version: int = Field(ge=1)
    to: Literal[Layer.WARM, Layer.COLD]
    content: WarmContent | ColdContent = Field(discriminator="layer")
    report: PackReport
    at: Moment | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.content.layer != self.to.value:
            raise ValueError(f"the content is {self.content.layer}, the episode is to be {self.to}")
        return self


class DueEpisode(BaseModel):
    """An episode that is to go down: its time has come and its priority allows it."""

    model_config = ConfigDict(frozen=True)
    episode_id: EpisodeId
    version: int
    layer: Layer
    to: Layer
    trigger: Literal["age", "tokens"]


class DueEpisodes(BaseModel):
    """What is due, the longest waiting first; ask again once these are packed."""

    model_config = ConfigDict(frozen=True)
    items: tuple[DueEpisode, ...]


class GetDueEpisodes(Query[DueEpisodes], domain="lsm", action="get_due"):
    """Ask which episodes are to go down as of `at`; `after` leaves out all up to this one."""

    at: Moment | None = None
    after: EpisodeId | None = None
    limit: int = Field(default=50, ge=1, le=MAX_PAGE)


class EpisodeOpened(Event, topic="episode", name="opened"):
    """A new matter has come up in a chat."""

    episode_id: EpisodeId
    chat_id: UserId
    continues_from: EpisodeId | None = None


class EpisodeRecorded(Event, topic="episode", name="recorded"):
    """Turns have been added to an episode; `fragment_id` where a stretch of the dialogue has come to its end."""

    episode_id: EpisodeId
    chat_id: UserId
    raw_log_ids: RawLogIds
    version: int
    fragment_id: FragmentId | None = None


class EpisodeTouched(Event, topic="episode", name="touched"):
    """A search has found the episode."""

    episode_id: EpisodeId
    chat_id: UserId
    search_id: SearchId
    layer: Layer


class EpisodePacked(Event, topic="episode", name="packed"):
    """An episode is in a lower layer; `layer_before` says from which."""

    episode_id: EpisodeId
    chat_id: UserId
    layer_before: Layer
    layer: Layer
    version: int
    report: PackReport


class EpisodeReactivated(Event, topic="episode", name="reactivated"):
    """An episode is hot again."""

    episode_id: EpisodeId
    chat_id: UserId
    layer_before: Layer
    version: int


class EpisodeAnchored(Event, topic="episode", name="anchored"):
    """An episode has become an anchor, or has ceased to be one."""

    episode_id: EpisodeId
    chat_id: UserId
    is_anchor: bool
    reason: AnchorReason | None = None
