"""Settings of the whole fleet: the library's, and those of its services and agents."""

from pathlib import Path

from config.options.agents import AgentSettings
from config.options.care import CareSettings
from config.options.edge import EdgeSettings
from config.options.episodes import EpisodeSettings
from config.options.memory import MemorySettings
from config.options.stores import FleetStoreSettings
from mindbus.settings import Settings


# The fields of the last come first.
class FleetSettings(
    EdgeSettings,
    AgentSettings,
    CareSettings,
    EpisodeSettings,
    MemorySettings,
    FleetStoreSettings,
    Settings,
):
    """All that an operator can set; docs/reference/settings.md is made from the descriptions."""

    @property
    def orphans_dir(self) -> Path | None:
        """The folder of orphans, beside the artifacts of the data folder; None: they lie in the store."""
        return None if self.artifacts_url else self.data_dir / "orphans"

    @property
    def vectors_folder(self) -> Path:
        """The folder of vectors that no Qdrant keeps."""
        return self.vectors_dir or self.data_dir / "vectors"

    @property
    def session_logs(self) -> Path:
        """The folder of the chats' logs."""
        return self.data_dir / "logs" / "memory_sessions"

    def database_of(self, service: str) -> str:
        """The SQLAlchemy URL of one service's own database."""
        own = {"storage": self.storage_database_url, "glm": self.glm_database_url}.get(service)
        return own or super().database_of(service)
