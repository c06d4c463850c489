"""Names of users for screens: those of the users table, else of the simulated teams; ids of names in any script."""

import asyncio
import re
import zlib
from collections.abc import Iterable, Mapping

from anyascii import anyascii

from bus_schema.identities import is_user_id
from bus_schema.replies import Code
from bus_schema.users import PutUser, User
from mindbus.bus.client import Client
from mindbus.errors import ReplyError
from mindbus.sdk.users import UserDirectory

# A screen does not wait longer for names: without them it shows ids.
_WITHIN_S = 1.0
_MAX_ID = 40
_NEW = 0


class DisplayNames:
    """Names by user id, as last read; whoever has none is called by their id."""

    def __init__(self, bus: Client, simulated: Mapping[str, str]) -> None:
        """`simulated` are names of simulated people, who are in no users table."""
        self._simulated = simulated
        self._directory = UserDirectory(bus)
        self._users: Mapping[str, User] = {}
        # Who is new here may not be in what was read just before.
        self._introduced: dict[str, User] = {}

    async def refresh(self) -> None:
        """Read the users table, unless that was seconds ago; where storage is slow, the names stay as they are."""
        try:
            async with asyncio.timeout(_WITHIN_S):
                self._users = self._introduced | {user.user_id: user for user in await self._directory.all()}
        except TimeoutError:
            return

    def of(self, user_id: str) -> str:
        user = self._users.get(user_id)
        return user.name if user else self._simulated.get(user_id, user_id)

    def matches(self, user_id: str, words: str) -> bool:
        """Whether an id or one of its names contains these words, in any case."""
        return any(words.casefold() in spelling.casefold() for spelling in self._spellings(user_id))

    def known(self) -> list[str]:
        """Ids of the users who have a record."""
        return list(self._users)

    def resolve(self, words: str) -> str | None:
        """The user whose id, name or other spelling this is, else the words where they are an id of nobody yet."""
        words = " ".join(words.split())
        if words in self._users:
            return words
        named = (user_id for user_id in {**self._users, **self._simulated} if self._is_called(user_id, words))
        return next(named, words if is_user_id(words) else None)

    async def introduce(self, name: str, asking: Client) -> str:
        """The id of whoever is called so; a name of nobody yet becomes a user, where the asking client may add one.

        Raises ReplyError, BusUnavailable, ValidationError where the name cannot be one.
        """
        await self.refresh()
        if (known := self.resolve(name)) is not None:
            return known
        name = " ".join(name.split())
        for user_id in _ids(name):
            if user_id in self._users or user_id in self._simulated:
                continue
            try:
                await asking.request(PutUser(user=User(user_id=user_id, name=name), expected_version=_NEW))
            except ReplyError as error:
                if error.code is Code.CONFLICT:
                    continue
                raise
            self._introduced[user_id] = User(user_id=user_id, name=name)
            self._users = self._introduced | dict(self._users)
            return user_id
        raise AssertionError("unreachable: there is always another id")

    def _is_called(self, user_id: str, words: str) -> bool:
        return any(words.casefold() == spelling.casefold() for spelling in self._spellings(user_id))

    def _spellings(self, user_id: str) -> tuple[str, ...]:
        user = self._users.get(user_id)
        return (user_id, self.of(user_id), *(user.names if user else ()))


def _ids(name: str) -> Iterable[str]:
    """Ids for a name: its letters in Latin, then with numbers."""
    latin = re.sub(r"[^a-z0-9]+", "_", anyascii(name).lower()).strip("_")[:_MAX_ID]
    base = latin or f"user_{zlib.crc32(name.encode()):08x}"
    yield base
    yield from (f"{base}_{number}" for number in range(2, 10_000))
