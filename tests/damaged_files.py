"""Damage to files, as a failing disk does it."""

from pathlib import Path


def damage(database: Path) -> None:
    """Overwrite a quarter of the file, its first page left as it is."""
    size = database.stat().st_size
    with database.open("r+b") as file:
        file.seek(max(4096, size // 4))
        file.write(b"\xa5" * (size // 4))
