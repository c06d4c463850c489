"""Canaries in settings that hold secrets: what a test leaves behind, or a command prints, must show none."""

from pathlib import Path

# In two parts, so that a copy of this file shows none.
CANARY = "c4n" + "ary-"
# A larger file is data of a test, not a log.
_LARGEST_BYTES = 64 * 1024 * 1024


def canary(name: str) -> str:
    """The value of a secret setting."""
    return f"{CANARY}{name}-7Qz3"


GUARDED = {
    f"MINDBUS_{name}": canary(name.lower().replace("_", "-")) for name in ("EMBEDDING_API_KEY", "OIDC_CLIENT_SECRET")
}
"""Secrets that every test has, since they change nothing by themselves; of the others test_secrets_stay_out has all."""


def require_none(said: str | bytes, where: object) -> None:
    """Fail where a text shows a canary."""
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    at = text.find(CANARY)
    assert at < 0, f"{where}: …{text[max(0, at - 200) : at + 60]}…"


def require_none_in_files(folder: Path) -> None:
    """Fail where a file of a folder shows a canary."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= _LARGEST_BYTES:
            require_none(path.read_bytes(), path)
