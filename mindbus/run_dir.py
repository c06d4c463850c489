"""The run folder, in which the processes of one machine find each other: where it is, the addresses in it."""

from pathlib import Path
from typing import Protocol

# In a data folder that a restore has filled, until the orchestrator has sent again what the broker has lost.
RESTORED = "restored"


class RunSettings(Protocol):
    """The part of the settings that supervising takes: `Settings` has it, and so has a process without Pydantic."""

    @property
    def data_dir(self) -> Path: ...
    @property
    def run_dir(self) -> Path: ...
    @property
    def tenant(self) -> str | None: ...
    @property
    def amqp_url(self) -> str | None: ...
    @property
    def management_url(self) -> str | None: ...
    @property
    def metrics_port(self) -> int | None: ...
    @property
    def heartbeat_s(self) -> float: ...
    @property
    def drain_s(self) -> float: ...

    def environment(self) -> dict[str, str]:
        """The environment of a process that is started from here."""


def broker_file(settings: RunSettings) -> Path:
    """File in which `mindbus up` keeps the AMQP address of its private broker, readable by this user only."""
    return settings.run_dir / "amqp_url"


def fleet_runs(data_dir: Path) -> bool:
    """Whether `mindbus up` runs on a data folder with the broker that it has found or started."""
    return (data_dir / "run" / "amqp_url").exists()


def lock_path(run_dir: Path) -> Path:
    """File that a running `mindbus up` keeps locked, with its process id; it is there when nothing runs, too."""
    return run_dir / "up.lock"


def user_file(settings: RunSettings, worker: str) -> Path:
    """File in which `mindbus up` keeps the AMQP address of its private broker with the login of a worker, mode 0600."""
    return settings.run_dir / "users" / worker


def management_file(settings: RunSettings) -> Path:
    """File in which `mindbus up` keeps the management address of its private broker with the login, mode 0600."""
    return settings.run_dir / "management_url"


def gateway_url_file(settings: RunSettings) -> Path:
    """File in which a gateway records its URL, also for the next one."""
    return settings.run_dir / "gateway_url"


def last_gateway_url(settings: RunSettings) -> str | None:
    """URL of the running gateway of this data folder, or of the last one."""
    file = gateway_url_file(settings)
    return file.read_text().strip() if file.exists() else None
