"""Ids, identities, our package names."""

import importlib.metadata
import uuid

import pytest
from pydantic import TypeAdapter, ValidationError

import mindbus
from bus_schema.identities import Identity, owner_of
from bus_schema.ids import _NAMESPACE, derived, mint, uuid7


def test_uuid7_is_valid_and_sorts_by_time() -> None:
    ids = [uuid7() for _ in range(100)]

    assert all(one.version == 7 and one.variant == uuid.RFC_4122 for one in ids)
    assert [one.int >> 80 for one in ids] == sorted(one.int >> 80 for one in ids)
    assert len(set(ids)) == 100


def test_minted_ids_carry_their_prefix() -> None:
    assert mint("art").startswith("art_")
    assert mint("art") != mint("art")


def test_a_derived_id_repeats_for_the_same_cause_and_path_alone() -> None:
    assert derived("cause", "storage", 1) == derived("cause", "storage", 1)
    assert derived("причина", "storage", 1) == str(uuid.uuid5(_NAMESPACE, "причина\nstorage\n1"))
    assert len({derived("cause", "storage", 1), derived("cause", "storage", 2), derived("other", "storage", 1)}) == 3


@pytest.mark.parametrize(
    ("identity", "owner"),
    [
        ("agent.researcher.001", "agent.researcher"),
        ("agent.researcher", "agent.researcher"),
        ("user.anna@example.org", "user.anna@example.org"),
        ("svc.storage", "svc.storage"),
    ],
)
def test_an_owner_has_no_instance(identity: str, owner: str) -> None:
    assert owner_of(TypeAdapter(Identity).validate_python(identity)) == owner


@pytest.mark.parametrize(
    "identity", ["root", "agent.", "agent.Researcher", "user.", "svc.a.b", "agent.a.b.c", "user.a/b"]
)
def test_other_names_are_no_identities(identity: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Identity).validate_python(identity)


def test_our_package_names_are_ours() -> None:
    owners = importlib.metadata.packages_distributions()

    for name in ("agents", "bus_schema", "config", "memory", "mindbus", "storage_service", "workers"):
        assert set(owners.get(name, ["mindbus"])) == {"mindbus"}


def test_the_public_names_are_all_there() -> None:
    assert sorted(mindbus.__all__) == sorted(mindbus._HOME_OF)
    assert all(getattr(mindbus, name) for name in mindbus.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = mindbus.nonsense
