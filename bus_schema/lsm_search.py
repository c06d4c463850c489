"""Search of long-term memory (spec 002 §4.5)."""

from typing import Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from bus_schema.episodes import EpisodeId, Layer, RawLogIds, RawTurn, SearchId
from bus_schema.identities import UserId
from bus_schema.lsm import Moment, Tag
from bus_schema.messages import Command, Nothing, Query, Value

MAX_QUERY_CHARS = 4000
MAX_BUDGET_WORDS = 20_000
MAX_EXCLUDED = 2000


class ScoreParts(Value):
    """Parts of an episode's score, weights applied; `priority` only reorders."""

    signals: dict[str, float]
    words: tuple[str, ...] = ()


class FoundEpisode(Value):
    """An episode with those of its turns that fit the word budget, in order.

    `text` is what its layer says of it, if an overview was asked for; with `depth` `summary`, there are no turns then.
    """

    episode_id: EpisodeId
    layer: Layer
    headline: str
    started_at: AwareDatetime
    turns: tuple[RawTurn, ...] = ()
    text: str | None = None
    score: float
    explain: ScoreParts | None = None


class FoundEpisodes(Value):
    """Search result: episodes within the word budget, best first.

    If the newest were asked for, they come first; if the question asks for an order, or how often something was, the
    oldest do. If it asks how something stands now, the newest of those that fit well come first.
    `unpacked` means that raw turns of a warm or cold episode were read, `is_degraded` that words alone were compared;
    `unreadable` counts turns that were found, but left out, since their archive cannot be read.
    There is no `search_id` if nothing was searched for. `hot` are the current episodes, as `lsm.get_hot` finds them.
    `asks_for`, if it is to be explained, is what kind of question it was taken for: `overview`, `order`, `how often`,
    `current`, and the kinds of notes that it asks for.
    """

    search_id: SearchId | None = None
    confidence: Literal["found", "weak", "nothing"]
    unpacked: bool
    words: int = Field(ge=0)
    episodes: tuple[FoundEpisode, ...]
    is_degraded: bool = False
    unreadable: int = Field(default=0, ge=0, exclude_if=lambda turns: not turns)
    hot: tuple[FoundEpisode, ...] = ()
    asks_for: tuple[str, ...] = ()


class SearchEpisodes(Query[FoundEpisodes], domain="lsm", action="search"):
    """Search what was said, as of `at`, except the turns in `exclude`.

    With `touch`, results count as used and stay in higher layers longer; without it, only those that feedback names do.
    If the confidence is `nothing`, `doubtful_words` is the budget, if given. With `hot_words`, the latest turns of hot
    episodes come along with what was found, up to that many words.

    With `newest_first`, the same is found, but episodes and their turns are sorted by time, latest first: where
    something has changed, the latest word is read first.

    `depth` says how far to go: what the layers say (`summary`), the raw turns (`raw`), or whatever is needed (`auto`).
    """

    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARS)
    chat_id: UserId
    budget_words: int = Field(default=2400, ge=1, le=MAX_BUDGET_WORDS)
    at: Moment | None = None
    tags: tuple[Tag, ...] = Field(default=(), max_length=20)
    layers: tuple[Layer, ...] = Field(default=(), max_length=3)
    since: Moment | None = None
    until: Moment | None = None
    exclude: RawLogIds = Field(default=(), max_length=MAX_EXCLUDED)
    doubtful_words: int | None = Field(default=None, ge=1, le=MAX_BUDGET_WORDS)
    hot_words: int | None = Field(default=None, ge=1, le=MAX_BUDGET_WORDS)
    depth: Literal["auto", "summary", "raw"] = "auto"
    touch: bool = True
    explain: bool = False
    newest_first: bool = False

    @model_validator(mode="after")
    def _asks_for_something(self) -> Self:
        if not self.query.strip():
            raise ValueError("query is empty; say what to look for")
        if self.since and self.until and self.until < self.since:
            raise ValueError("until is before since")
        return self


class GetHotEpisodes(Query[FoundEpisodes], domain="lsm", action="get_hot"):
    """Read the turns of a chat's hot episodes, latest first, within the word budget."""

    chat_id: UserId
    budget_words: int = Field(default=1200, ge=1, le=MAX_BUDGET_WORDS)
    before: Moment | None = None
    exclude: RawLogIds = Field(default=(), max_length=MAX_EXCLUDED)


class Feedback(Command[Nothing], domain="lsm", action="feedback"):
    """Report which turns of your own search were useful; none at all is feedback, too.

    With `touch`, the episodes of these turns count as used, once per search.
    """

    search_id: SearchId
    used: RawLogIds = Field(default=(), max_length=1000)
    touch: bool = False


class TuneReport(Value):
    """Weights before and after, with recall of used turns on held-out queries.

    `applied` means that the new weights were better and were to be kept.
    """

    queries: int
    held_out: int
    weights_before: dict[str, float]
    weights_after: dict[str, float]
    recall_before: float | None
    recall_after: float | None
    applied: bool
    reason: str = ""


class TuneSearch(Command[TuneReport], domain="lsm", action="tune"):
    """Fit the search weights to feedback; they are kept only with `apply`, and only if held-out queries improve."""

    apply: bool = False
