"""All of long-term memory over one database.

For whoever searches: turns lie in `raw_log`, what belongs together in `episode_of_turn` (`memory.lsm.tables`); an index
in memory is a `Follower` (`memory.followers.add(index)`), which reads the tables when it is opened, and again of each
chat that it hears of. What a search has found is told by `memory.waking.touch(episode_ids, at, search_id)`, whose
events the handler returns.

For whoever packs: `get_due` names what is to go down, `get_episode` has its text, `apply_pack` takes the pack: only of
the version that was read, only if it holds (`memory.packing.verifying`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from memory.lsm.erasing import Erasing
from memory.lsm.following import Followers
from memory.lsm.layer_history import LayerHistories
from memory.lsm.layers import Layers
from memory.lsm.old_searches import OldSearches
from memory.lsm.packs import Packs
from memory.lsm.placing import Bounds
from memory.lsm.reading import Reading
from memory.lsm.recording import Recording
from memory.lsm.rules import Rules
from memory.lsm.settling import Settling
from memory.lsm.statistics import Statistics
from memory.lsm.waking import Waking
from mindbus.settings import Settings
from mindbus.sql.database import Database


@dataclass(frozen=True, slots=True)
class LongTermMemory:
    """What the lsm worker listens for."""

    database: Database
    rules: Rules
    clock: Callable[[], datetime]
    followers: Followers
    recording: Recording
    reading: Reading
    layers: Layers
    packs: Packs
    waking: Waking
    settling: Settling
    erasing: Erasing
    statistics: Statistics
    histories: LayerHistories
    old_searches: OldSearches


def memory_over(database: Database, settings: Settings, clock: Callable[[], datetime]) -> LongTermMemory:
    """Put the parts together; nothing is opened yet."""
    rules, bounds, followers = Rules.of(settings), Bounds.of(settings), Followers(database)
    recording = Recording(database, followers, rules, bounds, clock)
    settling = Settling(database, followers, bounds)
    followers.add(settling)
    return LongTermMemory(
        database=database,
        rules=rules,
        clock=clock,
        followers=followers,
        recording=recording,
        reading=Reading(database, rules),
        layers=Layers(database, rules, bounds),
        packs=Packs(database, rules),
        waking=Waking(database, rules),
        settling=settling,
        erasing=Erasing(database, followers, recording.forgettings),
        statistics=Statistics(database),
        histories=LayerHistories(database),
        old_searches=OldSearches(database, timedelta(days=settings.lsm_searches_days)),
    )
