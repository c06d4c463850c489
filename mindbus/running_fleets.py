"""The fleets that this user runs on this machine: a link from each supervisor's process id to its data folder."""

import os
from contextlib import suppress
from pathlib import Path

from mindbus.health import is_alive
from mindbus.run_dir import RunSettings, lock_path

_STATE_HOME = "XDG_STATE_HOME"


def register_fleet(settings: RunSettings) -> None:
    """Note that this process keeps a fleet up; a user without a home directory goes without the note."""
    with suppress(OSError, RuntimeError):
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for link in folder.iterdir():
            if _runs_on(link) is None:
                link.unlink(missing_ok=True)
        link = folder / str(os.getpid())
        link.unlink(missing_ok=True)
        link.symlink_to(settings.data_dir.absolute())


def unregister_fleet() -> None:
    """Remove the note of this process."""
    with suppress(OSError, RuntimeError):
        (_folder() / str(os.getpid())).unlink(missing_ok=True)


def running_fleets() -> list[Path]:
    """Data folders of the fleets that run now."""
    with suppress(OSError, RuntimeError):
        return sorted({folder for link in _folder().iterdir() if (folder := _runs_on(link)) is not None})
    return []


def where_to_look(settings: RunSettings) -> str:
    """Sentences for who has found no fleet on a data folder: where it was looked for, and where one runs."""
    here = settings.data_dir.absolute()
    said = f"It was looked for in {here}{'' if 'MINDBUS_DATA_DIR' in os.environ else ', the folder .data of this one'}."
    others = [folder for folder in running_fleets() if folder != here]
    if others:
        running = ", another on ".join(map(str, others))
        said += f" One runs on {running}: `export MINDBUS_DATA_DIR={others[0]}` has commands use it from here."
    return said


def _folder() -> Path:
    home = os.environ.get(_STATE_HOME)
    return (Path(home) if home else Path.home() / ".local" / "state") / "mindbus" / "fleets"


def _runs_on(link: Path) -> Path | None:
    """The data folder of a link whose process lives and holds the lock of that folder, else None.

    A process id may be another's by now; a link may be gone from one moment to the next, as other fleets end.
    """
    try:
        data_dir = link.readlink()
        holder = lock_path(data_dir / "run").read_text(encoding="ascii")
        return data_dir if holder == link.name and is_alive(int(link.name)) else None
    except (OSError, ValueError):
        return None
