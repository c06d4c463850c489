"""An episode as turns come to it."""

from bus_schema.episodes import AnchorReason, Layer
from bus_schema.ids import derived
from bus_schema.lsm_events import EpisodeAnchored
from memory.lsm.rules import Rules
from memory.lsm.tables import EpisodeRow, TurnRow

_HEADLINE_WORDS = 14


def opened_by(turn: TurnRow, before: EpisodeRow | None, rules: Rules) -> EpisodeRow:
    """A hot one, that goes on from another where that was full."""
    row = EpisodeRow(
        id=f"ep_{derived(turn.id, 'episode')}",
        chat_id=turn.chat_id,
        created_at=turn.time,
        last_accessed=turn.time,
        access_count=0,
        layer_accesses=0,
        layer=Layer.HOT.value,
        headline=headline_of(turn.content),
        tags=[],
        continues_from=None if before is None else before.id,
        related_to=[],
        is_anchor=False,
        started_at=turn.time,
        ended_at=turn.time,
        turns=1,
        word_count=turn.word_count,
        version=1,
        is_settled=False,
    )
    row.priority = rules.priority(row, turn.time)
    return row


def extend(row: EpisodeRow, turn: TurnRow) -> None:
    """It is looked at again when it is at its end."""
    row.turns += 1
    row.word_count += turn.word_count
    row.started_at, row.ended_at = min(row.started_at, turn.time), max(row.ended_at, turn.time)
    row.last_accessed = max(row.last_accessed, turn.time)
    row.version += 1
    row.is_settled = False


def headline_of(text: str) -> str:
    """What an episode is called before it is packed: how it begins."""
    words = text.split()
    return " ".join(words[:_HEADLINE_WORDS])[:160] + ("…" if len(words) > _HEADLINE_WORDS else "")


def make_anchor(row: EpisodeRow, reason: AnchorReason, by: str, rules: Rules) -> EpisodeAnchored:
    """It never goes cold from now on."""
    row.is_anchor, row.anchor_reason, row.anchored_by = True, reason.value, by
    row.priority = rules.priority(row, row.last_accessed)
    return EpisodeAnchored(episode_id=row.id, chat_id=row.chat_id, is_anchor=True, reason=reason)
