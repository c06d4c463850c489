"""Episode updates as turns arrive: the episode of a turn, its changes, and anchors recognised by wording."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bus_schema.episodes import AnchorReason, Layer
from bus_schema.ids import derived
from bus_schema.lsm_events import EpisodeAnchored
from config.settings import FleetSettings
from language.words import without_gaps
from memory.lsm.priority import LayerRules
from memory.lsm.tables import EpisodeRow, TurnRow
from memory.packing.decisions import TO_REMEMBER


def anchor_reason(text: str) -> AnchorReason | None:
    """Reason for which a user's message makes an anchor, the most explicit one first; None for most messages."""
    said = without_gaps(text)
    for reason, pattern in _PATTERNS:
        if pattern.search(said):
            return reason
    return None


def _any(*phrases: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{phrase})" for phrase in phrases), re.IGNORECASE)


# Names are case-sensitive within patterns that are not.
_NAME = r"(?-i:[A-ZА-ЯЁ])"
_START = r"(?:^|[.!?;:,\n]\s*)(?:пожалуйста,?\s+|please,?\s+)?"
_PATTERNS = (
    (AnchorReason.EXPLICIT, TO_REMEMBER),
    (
        AnchorReason.SYSTEM,
        _any(
            _START + r"(?:всегда|никогда\s+не|больше\s+не|впредь|отныне|с\s+этого\s+момента)\s+[^.!?\n]{0,40}?"
            r"\b(?:отвечай|пиши|говори|называй|обращайся|используй|начинай|добавляй|предлагай|присылай|переводи"
            r"|делай|спрашивай|объясняй|указывай|ставь)(?:те)?\b",
            r"\b(?:отвечай|пиши|говори|обращайся|называй)(?:те)?\s+(?:мне\s+|меня\s+|ко\s+мне\s+)?"
            r"(?:всегда|только|впредь|отныне)\b",
            r"\b(?:from\s+now\s+on|going\s+forward|henceforth)\b[^.!?\n]{0,40}?"
            r"\b(?:answer|reply|respond|write|speak|call|address|use|start|add|avoid|always|never|do|don't)\b",
            _START + r"(?:always|never)\s+(?:answer|reply|respond|write|speak|call|address|use|start|add|format|send"
            r"|suggest|ask|explain|include|translate)\b",
        ),
    ),
    (
        AnchorReason.PROFILE,
        _any(
            r"\bменя\s+зовут\s+" + _NAME,
            r"\bмо[её]\s+имя\s*[-—:]?\s*" + _NAME,
            r"\bя\s+(?:живу|родил(?:ся|ась)|вырос(?:ла)?)\s+(?:в|на)\s+" + _NAME,
            r"\bя\s+работаю\s+(?!над\b)(?:в|на|как|\w+(?:ом|ем|ой|ей|ером|истом))\b",
            r"\bя\s+(?:вегетариан(?:ец|ка)|веган(?:ка)?|левша|диабетик)\b",
            r"\bу\s+меня\s+(?:аллерги[яи]|непереносимость|диабет|астма)\b",
            r"\bмой\s+день\s+рождения\b",
            r"\bя\s+(?:предпочитаю|терпеть\s+не\s+могу|обожаю)\b",
            r"\bmy\s+name\s+is\s+" + _NAME,
            r"\bi\s+live\s+in\s+(?:the\s+)?" + _NAME,
            r"\bi\s+(?:was\s+born|grew\s+up)\s+in\b",
            r"\bi\s+work\s+(?:as\s+an?|at|for)\b",
            r"\bi(?:'m|\s+am)\s+(?:a\s+)?(?:vegetarian|vegan|left-handed|diabetic)\b",
            r"\bi(?:'m|\s+am)\s+allergic\s+to\b",
            r"\bmy\s+birthday\s+is\b",
            r"\bi\s+(?:prefer|can't\s+stand)\b",
        ),
    ),
    (
        AnchorReason.PROJECT,
        _any(
            r"\bдолгосрочн\w+\s+(?:проект|цел|план)\w*",
            r"\b(?:наш|мой)\s+(?:главный|основной|большой)\s+проект\b",
            r"\bпроект\w*\s+(?:на|рассчитан\w*\s+на)\s+(?:ближайш\w+\s+)?(?:\w+\s+)?(?:год|года|лет)\b",
            r"\blong[- ]?term\s+(?:project|goal|plan)\b",
            r"\b(?:our|my)\s+(?:main|biggest|big|major)\s+project\b",
            r"\bproject\s+(?:for|over)\s+the\s+(?:next|coming)\s+(?:\w+\s+)?years?\b",
        ),
    ),
)


_HEADLINE_WORDS, _HEADLINE_CHARS = 14, 160


@dataclass(frozen=True, slots=True)
class EpisodeLimits:
    """Silence, number of turns and number of words after which the next turn starts an episode."""

    gap: timedelta = timedelta(hours=3)
    turns: int = 50
    words: int = 1500

    @classmethod
    def of(cls, settings: FleetSettings) -> "EpisodeLimits":
        return cls(timedelta(minutes=settings.lsm_gap_minutes), settings.lsm_max_turns, settings.lsm_max_words)

    def choose(self, turn: TurnRow, neighbours: Sequence[EpisodeRow]) -> EpisodeRow | None:
        """The hot episode with room for the turn that is nearest in time, if any; packed ones are closed."""
        hot = (row for row in neighbours if row.layer == Layer.HOT)
        fitting = [row for row in hot if self._is_near(turn, row) and self._has_room(turn, row)]
        return min(fitting, key=lambda row: (distance(turn.time, row), -row.ended_at.timestamp()), default=None)

    def predecessor(self, turn: TurnRow, neighbours: Sequence[EpisodeRow]) -> EpisodeRow | None:
        """The full episode that the turn would have belonged to, which its new one continues."""
        full = [row for row in neighbours if self._is_near(turn, row) and not self._has_room(turn, row)]
        return max(full, key=lambda row: row.ended_at, default=None)

    def _is_near(self, turn: TurnRow, row: EpisodeRow) -> bool:
        return distance(turn.time, row) <= self.gap

    def _has_room(self, turn: TurnRow, row: EpisodeRow) -> bool:
        return row.turns < self.turns and row.word_count + turn.word_count <= self.words


def distance(time: datetime, row: EpisodeRow) -> timedelta:
    """Time from a moment to the nearest end of an episode, 0 within it."""
    return max(row.started_at - time, time - row.ended_at, timedelta(0))


def new_episode(turn: TurnRow, predecessor: EpisodeRow | None, rules: LayerRules) -> EpisodeRow:
    row = EpisodeRow(
        id=f"ep_{derived(turn.id, 'episode')}",
        chat_id=turn.chat_id,
        created_at=turn.time,
        last_accessed=turn.time,
        access_count=0,
        layer_accesses=0,
        layer=Layer.HOT.value,
        headline=first_headline(turn.content),
        tags=[],
        continues_from=None if predecessor is None else predecessor.id,
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
    """Add a turn to an episode, which is to be settled again."""
    row.turns += 1
    row.word_count += turn.word_count
    row.started_at, row.ended_at = min(row.started_at, turn.time), max(row.ended_at, turn.time)
    row.last_accessed = max(row.last_accessed, turn.time)
    row.version += 1
    row.is_settled = False
    # Its mean is another one now.
    row.model = row.embedding = None


def first_headline(text: str) -> str:
    """Headline of an episode until it is packed: the beginning of its first turn."""
    words = text.split()
    return " ".join(words[:_HEADLINE_WORDS])[:_HEADLINE_CHARS] + ("…" if len(words) > _HEADLINE_WORDS else "")


def make_anchor(row: EpisodeRow, reason: AnchorReason, by: str, rules: LayerRules) -> EpisodeAnchored:
    """Mark an episode so that it never goes cold."""
    row.is_anchor, row.anchor_reason, row.anchored_by = True, reason.value, by
    row.priority = rules.priority(row, row.last_accessed)
    return EpisodeAnchored(episode_id=row.id, chat_id=row.chat_id, is_anchor=True, reason=reason)
