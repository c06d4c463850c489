"""Names of users on screens, those of simulated people among them."""

from pathlib import Path

from bus_schema.users import PutUser, User
from gateway.display_names import DisplayNames
from mindbus.testing.deliver import running
from tests.fleets import settings_for
from tests.installed import FLEET


async def test_a_user_goes_before_a_simulated_person_of_the_same_name(tmp_path: Path) -> None:
    settings = settings_for(f"memory://{tmp_path}", tmp_path)
    async with running(FLEET["storage"], settings=settings, identity="svc.gateway") as client:
        bus = client.acting_as("user.admin", is_operator=True)
        await bus.request(PutUser(user=User(user_id="a.petrova", name="Анна"), expected_version=0))
        names = DisplayNames(bus, {"anna": "Анна", "ben": "Ben"})
        await names.refresh()

        found = [names.resolve(name) for name in ("Анна", "анна", "Ben", "anna")]

    assert found == ["a.petrova", "a.petrova", "ben", "anna"]
