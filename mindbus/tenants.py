"""Tenants: fleets that share the servers of another, each with a virtual host, a folder, databases of its own."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit, urlunsplit

TENANT_NAME: Final = r"^[a-z][a-z0-9-]{0,30}$"
FOLDER = "tenants"
# Quotas of a tenant, beside its data: settings that hold unless the environment says otherwise.
QUOTAS = "quotas.json"
_MEMORY = "memory"
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})


class NoDatabaseOfItsOwn(ValueError):
    """Each tenant of a Redis server needs its own database, named in the address, such as redis://HOST/3."""


def login_of(tenant: str | None, name: str) -> str:
    """User of RabbitMQ that a participant is: of a tenant `TENANT/NAME`, since users are for all virtual hosts."""
    return f"{tenant}/{name}" if tenant else name


def name_of(login: str) -> str:
    """Name of the participant that a user of RabbitMQ is; names have no slash in them."""
    return login.rpartition("/")[2]


def tenants_of(data_dir: Path) -> list[str]:
    """Names of the tenants that have a folder in the data folder of whoever hosts them."""
    return sorted(file.parent.name for file in (data_dir / FOLDER).glob(f"*/{QUOTAS}"))


def folder_of(data_dir: Path, tenant: str) -> Path:
    """The data folder of a tenant."""
    return data_dir / FOLDER / tenant


def host_dir(data_dir: Path, tenant: str | None) -> Path | None:
    """The data folder of whoever hosts the tenant of a data folder; None: it is no tenant's."""
    is_hosted = tenant is not None and (data_dir.name, data_dir.parent.name) == (tenant, FOLDER)
    return data_dir.parent.parent if is_hosted else None


def with_vhost(amqp_url: str, vhost: str) -> str:
    """The address of another virtual host of the same broker."""
    return urlunsplit(urlsplit(amqp_url)._replace(path=f"/{quote(vhost, safe='')}"))


def site_url(gateway_url: str, tenant: str) -> str:
    """Address of a tenant's site for programs, on a gateway that serves several."""
    ending = f"/t/{tenant}"
    return gateway_url if gateway_url.endswith(ending) else gateway_url.rstrip("/") + ending


def web_url(gateway_url: str, tenant: str) -> str:
    """Address of it for browsers: under a host name of its own, as cookies are kept by host name."""
    parts = urlsplit(gateway_url.removesuffix(f"/t/{tenant}"))
    host, _, port = parts.netloc.rpartition(":") if parts.port else (parts.netloc, "", "")
    is_here = host in _LOOPBACK
    name = f"{tenant}.localhost" if is_here else f"{tenant}.{host}"
    return urlunsplit(parts._replace(netloc=f"{name}:{port}" if port else name))


def of_tenant(values: Mapping[str, Any], tenant: str) -> dict[str, Any]:
    """Settings of a tenant from those of its host; those that are a tenant's already stay.

    Raises NoDatabaseOfItsOwn.
    """
    data_dir = _in_folder(Path(values.get("data_dir") or ".data"), tenant)
    own = {**_quotas(data_dir), **values, "data_dir": data_dir}
    for names, change in _CHANGES.items():
        own |= {name: change(own[name], tenant) for name in names if own.get(name)}
    return own


def _quotas(data_dir: Path) -> dict[str, Any]:
    file = data_dir / QUOTAS
    quotas: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return quotas


def _in_folder(folder: Path, tenant: str) -> Path:
    return folder if host_dir(folder, tenant) else folder_of(folder, tenant)


def _broker(url: str, tenant: str) -> str:
    if urlsplit(url).scheme == _MEMORY:
        return url if url.endswith(f".{tenant}") else f"{url}.{tenant}"
    return with_vhost(url, tenant)


def _database(url: str, tenant: str) -> str:
    """The address of the tenant's own database on the same server, or file in the same folder."""
    address, mark, query = url.partition("?")
    place, _, name = address.rpartition("/")
    stem, dot, suffix = name.partition(".")
    is_own = stem.endswith(f"_{tenant}")
    return url if is_own else f"{place}/{stem}_{tenant}{dot}{suffix}{mark}{query}"


def _prefix(url: str, tenant: str) -> str:
    ending = f"/{FOLDER}/{tenant}"
    return url if url.rstrip("/").endswith(ending) else url.rstrip("/") + ending


def _redis(url: str, _tenant: str) -> str:
    if urlsplit(url).path.strip("/") in ("", "0"):
        raise NoDatabaseOfItsOwn(NoDatabaseOfItsOwn.__doc__)
    return url


_CHANGES: Mapping[tuple[str, ...], Callable[[Any, str], Any]] = {
    ("amqp_url",): _broker,
    ("database_url", "storage_database_url", "glm_database_url"): _database,
    ("artifacts_url",): _prefix,
    ("vectors_dir",): lambda folder, tenant: _in_folder(Path(folder), tenant),
    ("redis_url", "cache_redis_url"): _redis,
    ("gateway_public_url",): site_url,
    # One of its own is made in its folder.
    ("gateway_token",): lambda _token, _tenant: None,
}
