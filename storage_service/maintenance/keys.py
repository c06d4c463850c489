"""Keys of objects, manifest copies, orphans and claims, and their parsing."""

import hashlib
import re
from dataclasses import dataclass
from datetime import date

from mindbus.files.keys import OBJECTS, object_key
from storage_service.blobs import ORPHANS

MANIFESTS = "manifests"
CLAIMS = "claims"
SHARDS = tuple(f"{number:02x}" for number in range(256))

_OBJECT = re.compile(rf"{OBJECTS}/([0-9a-f]{{2}})/([0-9a-f]{{2}})/([0-9a-f]{{64}})/([1-9][0-9]{{0,8}})")
_COPY = re.compile(rf"{MANIFESTS}/[0-9a-f]{{2}}/(art_[A-Za-z0-9_-]{{1,64}})\.json")
_ORPHAN = re.compile(rf"{ORPHANS}/([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})/.+")
_CLAIM = re.compile(rf"{CLAIMS}/([0-9]{{4}})/([0-9]{{2}})/([0-9]{{2}})/.+")


@dataclass(frozen=True, slots=True)
class ContentGeneration:
    """One generation of the bytes of a digest."""

    sha256: str
    generation: int

    @property
    def key(self) -> str:
        """Key of the object."""
        return object_key(self.sha256, self.generation)


def content_of(key: str) -> ContentGeneration | None:
    """The content of an object's key, or None."""
    found = _OBJECT.fullmatch(key)
    if found is None:
        return None
    content = ContentGeneration(found[3], int(found[4]))
    return content if content.key == key else None


def copy_key(artifact_id: str) -> str:
    """Key of the copy of a manifest; spread by digest, since ids minted together begin alike."""
    return f"{MANIFESTS}/{hashlib.sha256(artifact_id.encode()).hexdigest()[:2]}/{artifact_id}.json"


def artifact_of(key: str) -> str | None:
    """The artifact id of a copy's key, or None."""
    found = _COPY.fullmatch(key)
    return found[1] if found is not None and copy_key(found[1]) == key else None


def orphan_key(key: str, day: date) -> str:
    """Key of a file among the orphans of a day."""
    return f"{ORPHANS}/{day.isoformat()}/{key}"


def orphaned_on(key: str) -> date | None:
    """The day in an orphan's key."""
    found = _ORPHAN.fullmatch(key)
    return _day(found[1]) if found else None


def claimed_on(key: str) -> date | None:
    """The day in a claim's key."""
    found = _CLAIM.fullmatch(key)
    return _day("-".join(found.groups())) if found else None


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
