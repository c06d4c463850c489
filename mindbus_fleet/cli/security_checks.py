"""Checks of `doctor --security`: what of this installation is open to whom."""

import os
import stat
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import unquote, urlsplit

from config.settings import FleetSettings
from gateway.access_tokens import is_loopback
from mindbus.accounts import accounts_of
from mindbus.bus.connection import NoBroker, find_broker
from mindbus.registry import installed_workers
from mindbus.run_dir import broker_file, user_file
from mindbus.tenants import name_of
from mindbus_fleet.cli.service_checks import CheckResult

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_SHOWN = 5
_WEAK = frozenset({"guest", "mindbus", "password", "admin", ""})
_PLAIN = {"amqp": "amqps", "http": "https", "redis": "rediss"}


def security(settings: FleetSettings) -> Iterator[CheckResult]:
    """All checks; each that finds something open says to whom, and what closes it."""
    yield _folder(settings.data_dir.absolute())
    yield from _broker(settings)
    yield _gateway(settings)
    yield _transport(settings)
    yield _provider(settings)
    yield _people(settings)


def _folder(folder: Path) -> CheckResult:
    """Other accounts of this machine read nothing: a closed folder closes all within."""
    check = "Data folder"
    if not folder.exists():
        return CheckResult(check, "ok", f"{folder}: made at the first start, for this account alone")
    mode = stat.S_IMODE(folder.stat().st_mode)
    if not mode & _OTHERS:
        return CheckResult(check, "ok", f"{folder}: mode {mode:04o}, other accounts of this machine cannot enter it")
    found = [path for path in folder.rglob("*") if _is_open_to_others(path)]
    shown = ", ".join(str(path.relative_to(folder)) for path in found[:_SHOWN])
    detail = f"{folder} has mode {mode:04o}: close it with `chmod 700`; open are {len(found)} files: {shown or 'none'}"
    return CheckResult(check, "failed" if found else "warning", detail)


def _is_open_to_others(path: Path) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and bool(status.st_mode & _OTHERS) and os.getuid() in (0, status.st_uid)


def _broker(settings: FleetSettings) -> Iterator[CheckResult]:
    check = "Users of RabbitMQ"
    try:
        url = urlsplit(find_broker(settings))
    except NoBroker:
        yield CheckResult(check, "ok", "no broker is running here; `mindbus up` makes a user for each worker")
        return
    if settings.amqp_url is None and broker_file(settings).exists():
        names = [name for name in installed_workers().checked().entries if user_file(settings, name).exists()]
        yield CheckResult(check, "ok", f"{len(names)} workers have users of their own on the private node")
    elif name_of(unquote(url.username or "")) in installed_workers().checked().entries:
        yield CheckResult(check, "ok", f"this process is {url.username}, and may do what that worker needs")
    else:
        advice = "one for each: `mindbus topology apply --worker NAME`, or `topology export`"
        yield CheckResult(
            check, "warning", f"workers share {url.username or 'guest'}, so any can pose as any; {advice}"
        )
    if (url.password or "") in _WEAK:
        yield CheckResult("Password of RabbitMQ", "failed", f"that of {url.username} is known to everybody: change it")


def _gateway(settings: FleetSettings) -> CheckResult:
    check, host = "Web app and HTTP", settings.gateway_host
    if settings.gateway_access == "open" and is_loopback(host):
        detail = "every account of this machine may use it: unset MINDBUS_GATEWAY_ACCESS"
        return CheckResult(check, "warning", detail)
    if not is_loopback(host) and settings.gateway_tls_cert is None and not settings.gateway_trusted_proxies:
        detail = f"{host} is reached from elsewhere without TLS: set MINDBUS_GATEWAY_TLS_CERT, or name a proxy"
        return CheckResult(check, "warning", f"{detail} that speaks it in MINDBUS_GATEWAY_TRUSTED_PROXIES")
    by = "over TLS" if settings.gateway_tls_cert else "on this machine" if is_loopback(host) else "behind a proxy"
    return CheckResult(check, "ok", f"asks for a token or a session, {by}")


def _transport(settings: FleetSettings) -> CheckResult:
    """Connections by which something leaves this machine in clear."""
    names = ("amqp_url", "management_url", "s3_endpoint_url", "redis_url", "cache_redis_url", "qdrant_url")
    named = [(name, getattr(settings, name)) for name in (*names, "llm_base_url", "embedding_base_url")]
    clear = [
        f"MINDBUS_{name.upper()} ({urlsplit(url).hostname}; use {_PLAIN[urlsplit(url).scheme]})"
        for name, url in named
        if url and urlsplit(url).scheme in _PLAIN and not _is_near(urlsplit(url).hostname or "localhost")
    ]
    detail = f"passwords and words travel in clear: {'; '.join(clear)}" if clear else "nothing leaves here in clear"
    return CheckResult("Connections", "warning" if clear else "ok", detail)


def _is_near(host: str) -> bool:
    """Whether a host is this machine, or in a private network that an operator answers for."""
    try:
        return ip_address(host).is_private
    except ValueError:
        return is_loopback(host) or "." not in host


def _provider(settings: FleetSettings) -> CheckResult:
    if settings.oidc_issuer is None:
        return CheckResult("OpenID provider", "ok", "none: people sign in with tokens")
    detail = f"{settings.oidc_issuer}, for people who have an account, by the claim {settings.oidc_claim}"
    return CheckResult("OpenID provider", "ok", detail)


def _people(settings: FleetSettings) -> CheckResult:
    """People who may do all, and workers that may ask all."""
    accounts = accounts_of(settings).all()
    named = {name.strip() for name in settings.operators.split(",") if name.strip()}
    operators = sorted(named | {each.name for each in accounts if each.is_operator})
    readers = f"; workers that may ask everything: {settings.readers}" if settings.readers else ""
    return CheckResult("Operators", "ok", f"{', '.join(operators) or 'nobody'}; accounts: {len(accounts)}{readers}")
