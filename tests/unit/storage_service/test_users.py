"""The users table: versions, pages, projects."""

import pytest

from bus_schema.users import ListUsers, PutUser, User
from storage_service.records import NoSuchUser, UserConflict, Users
from tests.clocks import Clock
from tests.storage_kit import OpenDepot


@pytest.fixture
def users(open_depot: OpenDepot) -> Users:
    return Users(open_depot().database, Clock())


async def put(users: Users, user: User, version: int | None = None) -> int:
    async with users.database.at_hand():
        return (await users.put(PutUser(user=user, expected_version=version))).version


async def test_a_user_is_kept_whole_and_changed_version_by_version(users: Users) -> None:
    anna = User(user_id="anna", name="Анна", names=("Anna",), zone="Europe/Moscow", language="ru", projects=("Сайт",))

    assert await put(users, anna, 0) == 1
    assert (await users.get("anna")).model_dump(include=set(User.model_fields)) == anna.model_dump()
    assert await put(users, anna.model_copy(update={"role": "дизайнер"}), 1) == 2
    assert (await users.get("anna")).role == "дизайнер"
    with pytest.raises(UserConflict):
        await put(users, anna, 0)
    assert await put(users, (await users.get("anna")).model_copy(update={})) == 2, "nothing has changed"


async def test_an_unknown_user_is_not_found(users: Users) -> None:
    with pytest.raises(NoSuchUser):
        await users.get("nobody")


async def test_users_come_in_pages_and_by_project(users: Users) -> None:
    for number in range(5):
        await put(users, User(user_id=f"user{number}", name=f"User {number}", projects=("Site",) if number % 2 else ()))

    first = await users.page(ListUsers(limit=3))
    rest = await users.page(ListUsers(limit=3, cursor=first.next_cursor))
    members = await users.page(ListUsers(project="site"))

    assert [user.user_id for user in (*first.items, *rest.items)] == [f"user{number}" for number in range(5)]
    assert rest.next_cursor is None
    assert [user.user_id for user in members.items] == ["user1", "user3"]


async def test_a_viewer_sees_themselves_and_those_who_share_a_project_with_them(users: Users) -> None:
    for user_id, projects in (("anna", ("Site",)), ("boris", ("site", "Shop")), ("clara", ("Shop",)), ("dan", ())):
        await put(users, User(user_id=user_id, name=user_id.title(), projects=projects))

    async def seen_by(viewer: str | None) -> list[str]:
        return [user.user_id for user in (await users.page(ListUsers(), viewer)).items]

    assert await seen_by("anna") == ["anna", "boris"]
    assert await seen_by("dan") == ["dan"]
    assert await seen_by("nobody") == []
    assert await seen_by(None) == ["anna", "boris", "clara", "dan"]
    assert (await users.get("boris", "anna")).name == "Boris"
    first = await users.page(ListUsers(limit=1), "dan")
    assert ([user.user_id for user in first.items], first.next_cursor) == (["dan"], None)
    first = await users.page(ListUsers(limit=1), "anna")
    assert ([user.user_id for user in first.items], first.next_cursor) == (["anna"], "anna")
    with pytest.raises(NoSuchUser):
        await users.get("clara", "anna")


def test_a_zone_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="write one like Europe/Moscow"):
        User(user_id="anna", name="Anna", zone="Moskau")
