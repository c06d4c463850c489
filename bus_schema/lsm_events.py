"""Events of long-term memory."""

from bus_schema.dialogue import FragmentId
from bus_schema.episodes import AnchorReason, EpisodeId, Layer, RawLogIds, SearchId
from bus_schema.identities import UserId
from bus_schema.messages import Event
from bus_schema.packer import PackReport


class EpisodeEvent(Event):
    """Base of events about an episode of a chat."""

    episode_id: EpisodeId
    chat_id: UserId


class EpisodeOpened(EpisodeEvent, topic="episode", name="opened"):
    """A new episode was opened in a chat."""

    continues_from: EpisodeId | None = None


class EpisodeRecorded(EpisodeEvent, topic="episode", name="recorded"):
    """Turns were added to an episode; `fragment_id` is set if a dialogue fragment has ended."""

    raw_log_ids: RawLogIds
    version: int
    fragment_id: FragmentId | None = None


class EpisodeTouched(EpisodeEvent, topic="episode", name="touched"):
    """A search has used the episode."""

    search_id: SearchId
    layer: Layer


class EpisodePacked(EpisodeEvent, topic="episode", name="packed"):
    """An episode was packed into a lower layer; `layer_before` is the layer it came from."""

    layer_before: Layer
    layer: Layer
    version: int
    report: PackReport


class EpisodeReactivated(EpisodeEvent, topic="episode", name="reactivated"):
    """An episode is hot again."""

    layer_before: Layer
    version: int


class EpisodeAnchored(EpisodeEvent, topic="episode", name="anchored"):
    """An episode has become an anchor, or has ceased to be one."""

    is_anchor: bool
    reason: AnchorReason | None = None
