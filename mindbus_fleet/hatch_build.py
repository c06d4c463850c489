"""Build hook of the wheel mindbus-fleet: where the repository's folders lie in it."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OWN = ("__init__.py", "cli", "node", "supervision")
PACKAGES = ("agents", "config", "gateway", "language", "memory", "retrieval", "storage_service", "workers")


class FleetLayout(BuildHookInterface):  # type: ignore[type-arg]  # hatchling's own parameter is of no use here
    """Puts the packages into `mindbus_fleet/packages`, since other distributions have an `agents` or `memory`, too."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the folders to the wheel; an editable installation has them on the path instead."""
        if version == "editable":
            return
        included = build_data["force_include"]
        included |= {name: f"mindbus_fleet/{name}" for name in OWN}
        included |= {
            f"../{name}": f"mindbus_fleet/packages/{name}"
            for name in PACKAGES
            if (Path(self.root).parent / name).is_dir()
        }
