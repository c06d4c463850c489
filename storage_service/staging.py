"""Where an owner stages: the address in a manifest is compared with that, never opened."""

import os
import re
from datetime import UTC, date, datetime

from storage_service.refusals import NotAStagingAddress

_UPLOAD = re.compile(r"staging/([0-9]{4})/([0-9]{2})/([0-9]{2})/([A-Za-z0-9_@-]{1,128})/([0-9a-f]{32})")


def folder_of(owner: str) -> str:
    """The name of an owner's own folder in staging."""
    return owner.replace(".", "_")


def new_upload_key(owner: str, now: datetime) -> str:
    """A fresh place for one upload, which nobody can guess."""
    return f"staging/{now.astimezone(UTC):%Y/%m/%d}/{folder_of(owner)}/{os.urandom(16).hex()}"


def upload_key(uri: str, *, root_url: str, owner: str) -> str:
    """The key of a staged upload, rebuilt from the parts that its address may vary in: a day, an upload id.

    The configured root must stand there letter by letter, or be left out by whoever has no access to the store but
    what it is handed; so no scheme, host, escape or link in a message is ever interpreted. Raises NotAStagingAddress.
    """
    found = _UPLOAD.fullmatch(uri.removeprefix(f"{root_url.rstrip('/')}/"))
    if found is None or found[4] != folder_of(owner):
        raise NotAStagingAddress
    try:
        day = date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError as no_such_day:
        raise NotAStagingAddress from no_such_day
    return f"staging/{day:%Y/%m/%d}/{folder_of(owner)}/{found[5]}"
