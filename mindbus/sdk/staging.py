"""Where a producer stages what it will register."""

import os
from datetime import datetime


def new_upload_key(owner: str, now: datetime) -> str:
    """A fresh address, which only storage will read and nobody can guess."""
    return f"staging/{now:%Y/%m/%d}/{owner.replace('.', '_')}/{os.urandom(16).hex()}"
