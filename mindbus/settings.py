"""One typed Settings: `MINDBUS_*` is read here, once, nowhere else."""

import os
from pathlib import Path

from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from mindbus.options.agents import AgentSettings
from mindbus.options.bus import BusSettings
from mindbus.options.care import CareSettings
from mindbus.options.edge import EdgeSettings
from mindbus.options.episodes import EpisodeSettings
from mindbus.options.memory import MemorySettings
from mindbus.options.stores import StoreSettings


# The fields of the last come first.
class Settings(
    EdgeSettings,
    BusSettings,
    AgentSettings,
    CareSettings,
    EpisodeSettings,
    MemorySettings,
    StoreSettings,
    BaseSettings,
):
    """All that an operator can set; docs/reference/settings.md is made from the descriptions."""

    model_config = SettingsConfigDict(env_prefix="MINDBUS_", frozen=True, extra="ignore")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """What is given in code, then the environment: no files."""
        return init_settings, env_settings

    @property
    def orphans_dir(self) -> Path | None:
        """Where orphans lie, if not in the store: beside the artifacts of the data folder."""
        return None if self.artifacts_url else self.data_dir / "orphans"

    @property
    def files_url(self) -> str:
        """Where artifacts and claims lie."""
        return self.artifacts_url or (self.data_dir / "artifacts").absolute().as_uri()

    @property
    def vectors_folder(self) -> Path:
        """Where the vectors lie that no Qdrant keeps."""
        return self.vectors_dir or self.data_dir / "vectors"

    @property
    def session_logs(self) -> Path:
        """Where the log of each chat lies."""
        return self.data_dir / "logs" / "memory_sessions"

    @property
    def run_dir(self) -> Path:
        """Where this machine's processes leave what others look up: health, the private broker's address."""
        return self.data_dir / "run"

    def database_of(self, service: str) -> str:
        """The SQLAlchemy URL of one service's own database."""
        own = {"storage": self.storage_database_url, "glm": self.glm_database_url}.get(service)
        return own or self.database_url or f"sqlite+aiosqlite:///{(self.data_dir / f'{service}.db').absolute()}"

    def environment(self) -> dict[str, str]:
        """This process's environment with these settings in it, for a process that is started from here."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("MINDBUS_")}
        given = self.model_dump(mode="json", exclude_none=True) | {"data_dir": str(self.data_dir.absolute())}
        return inherited | {f"MINDBUS_{field.upper()}": str(value) for field, value in given.items()}
