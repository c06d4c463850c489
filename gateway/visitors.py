"""Whose page a request comes from: the gateway's own, nobody's, or a stranger's."""

from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_OWN_SITE = frozenset({"same-origin", "none"})


def host_of(connection: HTTPConnection) -> str | None:
    """The name under which the gateway was asked for, without its port."""
    try:
        return urlsplit(f"//{connection.headers.get('host', '')}").hostname
    except ValueError:
        return None


def is_called_by_own_name(connection: HTTPConnection, bound_to: str) -> bool:
    """Where no token protects it, a page whose name was made to point here must not pass for the gateway's own."""
    return host_of(connection) in _LOOPBACK_NAMES | {bound_to}


def is_from_a_strange_page(connection: HTTPConnection) -> bool:
    """Whether a browser says that another site's page has sent it; programs say nothing of the kind."""
    headers = connection.headers
    origin = headers.get("origin")
    if origin is not None:
        return _netloc(origin) != headers.get("host", "").lower()
    # Another port of this machine is the same site, yet another origin.
    is_strange = headers.get("sec-fetch-site", "none") not in _OWN_SITE
    return is_strange and not _is_a_link_followed(connection)


def _is_a_link_followed(connection: HTTPConnection) -> bool:
    scope, headers = connection.scope, connection.headers
    is_reading = scope.get("method") in ("GET", "HEAD") and not scope["path"].startswith("/api")
    return is_reading and headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None
