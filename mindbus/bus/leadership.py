"""One instance of a worker at a time: what the runtime asks of whoever decides which."""

from typing import Protocol


class Leadership(Protocol):
    """A place for one; instances that do not have it stand by, to take over when it is free."""

    async def try_acquire(self) -> bool:
        """Whether it is ours now. Raises OSError or a database error where that cannot be found out."""

    async def acquire(self) -> None:
        """Wait, through whatever trouble, until it is ours."""

    async def lost(self) -> None:
        """Return once it is ours no more, as when the connection that holds it is gone."""

    async def release(self) -> None:
        """Leave it to the next one."""
