"""What a check of `doctor` comes to."""

from typing import Literal

from pydantic import BaseModel

Status = Literal["ok", "warning", "failed"]


class Finding(BaseModel):
    """One thing that was looked at."""

    check: str
    status: Status
    detail: str
