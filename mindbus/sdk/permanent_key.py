"""Where an artifact's bytes lie for good."""

import re

from bus_schema.artifacts import Manifest
from mindbus.sdk.failures import NotAPermanentKey

_KEY = re.compile(r"objects/sha256/([0-9a-f]{2})/([0-9a-f]{2})/([0-9a-f]{64})/[0-9]{1,18}")


def permanent_key(manifest: Manifest, store_url: str) -> str:
    """The key that a manifest names, recognised rather than opened as given. Raises NotAPermanentKey."""
    key = manifest.uri.removeprefix(f"{store_url}/")
    found = _KEY.fullmatch(key)
    digest = manifest.sha256
    if found is None or found.groups() != (digest[:2], digest[2:4], digest):
        raise NotAPermanentKey(f"{NotAPermanentKey.__doc__} ({manifest.id}: {manifest.uri})")
    return key
