"""The address in a manifest is compared, never followed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus_schema.replies import Code
from mindbus.errors import Rejected, ReplyError
from storage_service.errors import NotAStagingAddress
from storage_service.uploads import upload_key
from tests.hostile_addresses import hostile_addresses
from tests.storage_kit import ON_FILES, Depot

ROOT = "file:///srv/mindbus/artifacts"
UPLOAD = "0123456789abcdef0123456789abcdef"
GOOD = f"{ROOT}/staging/2026/03/14/agent_researcher/{UPLOAD}"


@pytest.mark.parametrize("owner", ["agent.researcher", "user.anna.petrova", "user.a@b.example", "svc.orchestrator"])
def test_an_owner_stages_in_its_own_folder_of_the_day(owner: str) -> None:
    key = f"staging/2026/03/14/{owner.replace('.', '_')}/{UPLOAD}"

    assert upload_key(f"{ROOT}/{key}", root_url=ROOT, owner=owner) == key


def test_whoever_does_not_know_the_root_leaves_it_out() -> None:
    key = GOOD.removeprefix(f"{ROOT}/")

    assert upload_key(key, root_url=ROOT, owner="agent.researcher") == key


def test_a_root_with_spaces_or_letters_of_any_script_is_compared_as_it_is_written() -> None:
    root = "file:///srv/%D0%B4%D0%B0%D0%BD%D0%BD%D1%8B%D0%B5%20mindbus/artifacts/"

    key = upload_key(GOOD.replace(f"{ROOT}/", root), root_url=root, owner="agent.researcher")

    assert key == GOOD.removeprefix(f"{ROOT}/")


@pytest.mark.parametrize("address", hostile_addresses(ROOT, GOOD))
def test_a_hostile_address_is_refused(address: str) -> None:
    with pytest.raises(NotAStagingAddress):
        upload_key(address, root_url=ROOT, owner="agent.researcher")


@given(st.text(alphabet=st.sampled_from("stagingresch0123/.%\\_:@~?# \0é２"), max_size=120))
def test_whatever_is_accepted_is_the_canonical_key_of_the_owners_folder(rest: str) -> None:
    try:
        key = upload_key(f"{ROOT}/staging/2026/03/14/{rest}", root_url=ROOT, owner="agent.researcher")
    except NotAStagingAddress:
        return
    assert key == f"staging/2026/03/14/{rest}"
    assert rest.startswith("agent_researcher/")


@ON_FILES
async def test_hostile_addresses_open_no_socket_and_write_nothing(depot: Depot, connections: list[object]) -> None:
    good = depot.stage(b"findings")
    addresses = [address for address in hostile_addresses(depot.files.url, good) if len(address) <= 1024]
    before = sorted(depot.folder.rglob("*"))

    for address in addresses:
        with pytest.raises((Rejected, ReplyError)) as refused:
            await depot.register(depot.manifest(b"findings", uri=address))
        assert refused.value.code is Code.INVALID, address

    assert len(addresses) > 100
    assert connections == []
    assert await depot.rows("artifact_manifests") == await depot.rows("blobs") == 0
    # The refusals themselves; what has a NUL character comes to no handler.
    assert await depot.rows("inbox") == sum("\0" not in address for address in addresses)
    assert [path for path in sorted(depot.folder.rglob("*")) if not path.name.startswith("storage.db")] == [
        path for path in before if not path.name.startswith("storage.db")
    ]


async def test_the_address_of_another_owners_upload_is_refused(depot: Depot) -> None:
    theirs = depot.stage(b"findings", "agent.critic")

    with pytest.raises(Rejected) as refused:
        await depot.register(depot.manifest(b"findings", uri=theirs))

    assert refused.value.code is Code.INVALID
