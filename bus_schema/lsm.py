"""Commands of long-term memory: recording and episodes (spec 002)."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, Field, StringConstraints

from bus_schema.dialogue import DialogueMessageId, MessageText
from bus_schema.episodes import AnchorReason, Episode, EpisodeHead, EpisodeId, HotContent, Layer, RawLogIds, Speaker
from bus_schema.identities import UserId
from bus_schema.messages import Command, Page, Query, StrictValue, Value

MAX_RECORDED = 200
MAX_PAGE = 200

# Any farther and there is no counting days from it.
_FIRST_YEAR, _LAST_YEAR = 1900, 2999


def _in_bounds(moment: datetime) -> datetime:
    if not _FIRST_YEAR <= moment.astimezone(UTC).year <= _LAST_YEAR:
        raise ValueError(f"is not between the years {_FIRST_YEAR} and {_LAST_YEAR}")
    return moment


Moment = Annotated[AwareDatetime, AfterValidator(_in_bounds)]
Tag = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]


class SaidMessage(StrictValue):
    """A message and the time it was said; a `message_id` repeated within a chat is the same message."""

    message_id: DialogueMessageId | None = None
    role: Speaker
    content: MessageText
    time: Moment
    speaker: str | None = Field(default=None, min_length=1, max_length=80)


class Recorded(Value):
    """The messages are in the log; `new` counts those added now, `episode_id` is the episode of the last one."""

    raw_log_ids: RawLogIds
    episode_id: EpisodeId
    new: int = 0


class RecordExchange(Command[Recorded], domain="lsm", action="record"):
    """Record messages in chronological order; repeating them changes nothing, other words under an id conflict."""

    chat_id: UserId
    messages: tuple[SaidMessage, ...] = Field(min_length=1, max_length=MAX_RECORDED)


class GetEpisode(Query[Episode], domain="lsm", action="get_episode"):
    """Read an episode in the form of its layer, with its priority as of `at`."""

    episode_id: EpisodeId
    at: Moment | None = None


class EpisodePage(Page[EpisodeHead]):
    """Episodes, latest first, with the cursor of the next page."""


class ListEpisodes(Query[EpisodePage], domain="lsm", action="list_episodes"):
    """List the episodes of one chat, or of all."""

    chat_id: UserId | None = None
    layers: tuple[Layer, ...] = Field(default=(), max_length=3)
    anchors_only: bool = False
    at: Moment | None = None
    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=50, ge=1, le=MAX_PAGE)


class UnpackEpisode(Command[HotContent], domain="lsm", action="unpack"):
    """Read the whole text of an episode from the raw log, which makes the episode hot again."""

    episode_id: EpisodeId
    at: Moment | None = None


class SetAnchor(Command[EpisodeHead], domain="lsm", action="set_anchor"):
    """Mark an episode as an anchor, which never goes cold, or remove the mark."""

    episode_id: EpisodeId
    is_anchor: bool = True
    reason: AnchorReason = AnchorReason.EXPLICIT
