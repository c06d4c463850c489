"""Settings of a tenant: what of its host's servers is its own."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from config.settings import FleetSettings
from mindbus.tenants import host_dir, login_of, name_of, tenants_of

HOST: dict[str, object] = {
    "data_dir": "/srv/mindbus",
    "amqp_url": "amqp://mindbus:secret@mq-0,mq-1:5673/",
    "database_url": "postgresql+psycopg://mindbus:secret@/mindbus?host=db-0,db-1&target_session_attrs=read-write",
    "glm_database_url": "sqlite+aiosqlite:////srv/glm.db",
    "artifacts_url": "s3://bucket/prefix/",
    "vectors_dir": "/srv/vectors",
    "redis_url": "redis://cache/3",
}
ACME = {
    "data_dir": Path("/srv/mindbus/tenants/acme"),
    "amqp_url": "amqp://mindbus:secret@mq-0,mq-1:5673/acme",
    "database_url": "postgresql+psycopg://mindbus:secret@/mindbus_acme?host=db-0,db-1&target_session_attrs=read-write",
    "glm_database_url": "sqlite+aiosqlite:////srv/glm_acme.db",
    "artifacts_url": "s3://bucket/prefix/tenants/acme",
    "vectors_dir": Path("/srv/vectors/tenants/acme"),
    "redis_url": "redis://cache/3",
}


def test_a_tenant_has_a_place_of_its_own_on_every_server_of_its_host() -> None:
    settings = FleetSettings.model_validate({**HOST, "tenant": "acme"})

    assert {name: getattr(settings, name) for name in ACME} == ACME
    assert settings.database_of("glm") == ACME["glm_database_url"]
    assert host_dir(settings.data_dir, settings.tenant) == Path("/srv/mindbus")


def test_settings_that_are_a_tenants_already_stay_in_every_process_that_is_started_from_there() -> None:
    settings = FleetSettings.model_validate({**HOST, "tenant": "acme"})

    once_more = FleetSettings.model_validate(settings.model_dump())

    assert once_more == settings
    assert settings.environment()["MINDBUS_TENANT"] == "acme"


def test_its_quotas_lie_in_its_folder_and_the_environment_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tenants" / "acme"
    folder.mkdir(parents=True)
    (folder / "quotas.json").write_text('{"quota_bytes": 1000, "quota_tokens_per_day": 50}')
    monkeypatch.setenv("MINDBUS_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("MINDBUS_TENANT", "acme")
    monkeypatch.setenv("MINDBUS_QUOTA_TOKENS_PER_DAY", "70")

    settings = FleetSettings()

    assert (settings.quota_bytes, settings.quota_tokens_per_day) == (1000, 70)
    assert tenants_of(tmp_path) == ["acme"]


@pytest.mark.parametrize("name", ["Acme", "a/b", "", "..", "ак", "a" * 32])
def test_a_name_that_is_no_name_of_a_tenant_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="tenant"):
        FleetSettings.model_validate({**HOST, "tenant": name})


@pytest.mark.parametrize("url", ["redis://cache", "redis://cache/", "redis://cache/0"])
def test_a_tenant_does_not_share_the_first_database_of_a_redis(url: str) -> None:
    with pytest.raises(ValidationError, match="redis://HOST/3"):
        FleetSettings.model_validate({**HOST, "redis_url": url, "tenant": "acme"})


def test_logins_of_tenants_do_not_meet_and_tell_who_it_is() -> None:
    assert login_of(None, "storage") == "storage"
    assert name_of(login_of("acme", "user.anna@example.org")) == "user.anna@example.org"
    assert login_of("acme", "storage") != login_of("globex", "storage")
