"""Where a list of episodes goes on."""

import base64
import binascii
import json
from datetime import datetime

from memory.lsm.refusals import NotACursor


def cursor_after(ended_at: datetime, episode_id: str) -> str:
    """What the asker brings for the next page."""
    text = json.dumps([ended_at.isoformat(), episode_id], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode()


def place_of(cursor: str) -> tuple[datetime, str]:
    """After which episode to go on. Raises NotACursor."""
    try:
        time, episode_id = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
        place = datetime.fromisoformat(time), str(episode_id)
    except (binascii.Error, ValueError, TypeError):
        raise NotACursor from None
    if place[0].tzinfo is None or "\0" in place[1]:
        raise NotACursor
    return place
