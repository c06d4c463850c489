"""Long-term memory: all services over one database.

A search index is a `LogListener` (`memory.listeners.add(index)`): it reads `raw_log` and `episode_of_turn` when opened
and again for each chat that changes. `memory.reactivation.touch` counts what a search has returned as used; its events
are to be published.

The packer asks `get_due` for due episodes, `get_episode` for their text, and sends packs by `apply_pack`, which takes
them only of the version that was read and only if they are verified (`memory.packing.verification`).
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from config.settings import FleetSettings
from memory.lsm.archived_texts import ArchivedTexts
from memory.lsm.archives import EpisodeArchives
from memory.lsm.episode_updates import EpisodeLimits
from memory.lsm.layer_schedule import LayerSchedule
from memory.lsm.layer_transitions import Packs, Reactivation
from memory.lsm.log_changes import EpisodeErasure, LogListeners
from memory.lsm.priority import LayerRules
from memory.lsm.queries import EpisodeQueries
from memory.lsm.recorder import Recorder
from memory.lsm.segmentation import Segmentation
from memory.lsm.statistics import EpisodeStatistics
from mindbus.sdk.artifacts import Artifacts
from mindbus.sql.database import Database


class LongTermMemory:
    """Services of the lsm worker, beside the search; nothing is opened yet."""

    def __init__(
        self,
        database: Database,
        settings: FleetSettings,
        clock: Callable[[], datetime],
        artifacts: Artifacts | None = None,
    ) -> None:
        """Without `artifacts` nothing is archived, and what is cannot be read."""
        self.database, self.clock = database, clock
        self.rules, limits = LayerRules.of(settings), EpisodeLimits.of(settings)
        self.listeners = LogListeners(database)
        self.texts = ArchivedTexts(database, artifacts)
        self.listeners.add(self.texts)
        age = timedelta(days=settings.lsm_raw_days) if settings.lsm_raw_days else None
        self.archives = EpisodeArchives(database, artifacts, age)
        self.recorder = Recorder(database, self.listeners, self.rules, limits, clock)
        self.segmentation = Segmentation(database, self.listeners, limits, self.texts)
        self.listeners.add(self.segmentation)
        self.queries = EpisodeQueries(database, self.rules, self.texts)
        self.statistics = EpisodeStatistics(database)
        self.schedule = LayerSchedule(database, self.rules, limits)
        self.packs = Packs(database, self.listeners, self.rules)
        self.reactivation = Reactivation(database, self.rules, self.texts)
        self.erasure = EpisodeErasure(database, self.listeners, timedelta(days=settings.lsm_searches_days))
