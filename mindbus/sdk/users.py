"""Reader of the users table, for workers: cached for seconds, with defaults for whoever is not in it."""

import time
from collections.abc import Callable, Iterable

from bus_schema.identities import is_user_id
from bus_schema.users import ListUsers, User
from mindbus.bus.client import Client
from mindbus.errors import BusUnavailable, MindBusError, Rejected, TemporaryFailure
from mindbus.logs import logger
from mindbus.sdk.requests import items_of, request_in_scope

_TTL_S = 5.0
_TIMEOUT_S = 3.0
_MAX_CACHED = 10_000
_PAGE = 200


class UserDirectory:
    """Users by id; a change is seen within `ttl_s`. Where storage is away, what was read before still holds.

    `zone_of` gives the zone of a user who has none.
    """

    def __init__(
        self,
        bus: Client,
        zone_of: Callable[[str], str] = lambda _user_id: "UTC",
        *,
        ttl_s: float = _TTL_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bus, self._zone_of, self._ttl_s, self._monotonic = bus, zone_of, ttl_s, monotonic
        self._users: dict[str, tuple[float, User | None]] = {}
        self._everybody: tuple[float, tuple[User, ...]] | None = None

    async def find(self, user_id: str) -> User | None:
        """The user as storage knows them, or None."""
        now = self._monotonic()
        read_at, user = self._users.get(user_id, (None, None))
        if read_at is not None and now < read_at + self._ttl_s:
            return user
        try:
            page = await request_in_scope(self._bus, ListUsers(user_ids=(user_id,)), timeout_s=_TIMEOUT_S)
            user = next(iter(page.items), None)
        except (BusUnavailable, TemporaryFailure, Rejected) as error:
            self._warn(error)
        if len(self._users) >= _MAX_CACHED:
            self._users.clear()
        self._users[user_id] = (now, user)
        return user

    async def of(self, user_id: str) -> User:
        """The user with a zone; one who is not known has the id as their name."""
        if not is_user_id(user_id):
            # A chat may have any id; nobody has a record under such a one.
            return User.model_construct(user_id=user_id, name=user_id, zone=self._zone_of(user_id))
        user = await self.find(user_id) or User(user_id=user_id, name=user_id)
        return user if user.zone else user.model_copy(update={"zone": self._zone_of(user_id)})

    async def all(self) -> tuple[User, ...]:
        """All users, in order of their ids."""
        now = self._monotonic()
        if self._everybody and now < self._everybody[0] + self._ttl_s:
            return self._everybody[1]
        try:
            query = ListUsers(limit=_PAGE)
            users: list[User] = [user async for user in items_of(self._bus, query, timeout_s=_TIMEOUT_S)]
        except (BusUnavailable, TemporaryFailure, Rejected) as error:
            self._warn(error)
            users = list(self._everybody[1]) if self._everybody else []
        if self._everybody is None or list(self._everybody[1]) != users:
            self._everybody = (now, tuple(users))
        else:
            # The same object, by which readers see that nothing has changed.
            self._everybody = (now, self._everybody[1])
        return self._everybody[1]

    def _warn(self, error: MindBusError) -> None:
        logger().warning("users table not read", reason=str(error))


def colleagues_of(user: User, users: Iterable[User]) -> list[str]:
    """Ids of others who share a project with this user; none where they have no project."""
    own = {project.casefold() for project in user.projects}
    others = (each for each in users if each.user_id != user.user_id)
    return [each.user_id for each in others if own & {project.casefold() for project in each.projects}]
