"""Long-term memory: all services over one database.

A search index is a `LogListener` (`memory.listeners.add(index)`): it reads `raw_log` and `episode_of_turn` when opened
and again for each chat that changes. `memory.reactivation.touch` counts what a search has returned as used; its events
are to be published.

The packer asks `get_due` for due episodes, `get_episode` for their text, and sends packs by `apply_pack`, which takes
them only of the version that was read and only if they are verified (`memory.packing.verification`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from config.settings import FleetSettings
from memory.lsm.episode_updates import EpisodeLimits
from memory.lsm.erasure import EpisodeErasure, SearchRetention
from memory.lsm.layer_transitions import LayerSchedule, Packs, Reactivation
from memory.lsm.log_changes import LogListeners
from memory.lsm.priority import LayerRules
from memory.lsm.queries import EpisodeQueries
from memory.lsm.recorder import Recorder
from memory.lsm.segmentation import Segmentation
from memory.lsm.statistics import EpisodeStatistics
from mindbus.sql.database import Database


@dataclass(frozen=True, slots=True)
class LongTermMemory:
    """Services of the lsm worker, beside the search."""

    database: Database
    rules: LayerRules
    clock: Callable[[], datetime]
    listeners: LogListeners
    recorder: Recorder
    queries: EpisodeQueries
    schedule: LayerSchedule
    packs: Packs
    reactivation: Reactivation
    segmentation: Segmentation
    erasure: EpisodeErasure
    statistics: EpisodeStatistics
    search_retention: SearchRetention


def memory_over(database: Database, settings: FleetSettings, clock: Callable[[], datetime]) -> LongTermMemory:
    """Build long-term memory over a database; nothing is opened yet."""
    rules, limits, listeners = LayerRules.of(settings), EpisodeLimits.of(settings), LogListeners(database)
    recorder = Recorder(database, listeners, rules, limits, clock)
    segmentation = Segmentation(database, listeners, limits)
    listeners.add(segmentation)
    return LongTermMemory(
        database=database,
        rules=rules,
        clock=clock,
        listeners=listeners,
        recorder=recorder,
        queries=EpisodeQueries(database, rules),
        schedule=LayerSchedule(database, rules, limits),
        packs=Packs(database, rules),
        reactivation=Reactivation(database, rules),
        segmentation=segmentation,
        erasure=EpisodeErasure(database, listeners, recorder.erasures),
        statistics=EpisodeStatistics(database),
        search_retention=SearchRetention(database, timedelta(days=settings.lsm_searches_days)),
    )
