"""Where an OpenAI-compatible endpoint is."""

from dataclasses import dataclass, field
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address; a local one may want no key."""

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    timeout: timedelta = timedelta(seconds=60)
    retries: int = 4
