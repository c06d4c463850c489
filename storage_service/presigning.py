"""Addresses of an object store that are good for one request, one object, a few minutes."""

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlsplit

from bus_schema.uploads import PresignedGet, PresignedPut
from storage_service.blobs import Declared
from storage_service.download_names import content_type_of, file_name

PUT_WITHIN = timedelta(minutes=15)
GET_WITHIN = timedelta(minutes=5)
_ALGORITHM = "AWS4-HMAC-SHA256"
_UNRESERVED = "-_.~"
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class SigningKey:
    """What an account of the object store signs with."""

    access_key: str
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Presigner:
    """Signs for whoever asks storage, which has asked the ACL; signing sends nothing.

    `endpoint_url` is the store as agents reach it, which is part of what is signed. `signing_key` gives the key of the
    moment, since that of a machine's role is replaced every few hours; it may block.
    """

    endpoint_url: str
    bucket: str
    prefix: str
    region: str
    signing_key: Callable[[], SigningKey]
    clock: Callable[[], datetime]

    def put(self, key: str, declared: Declared) -> PresignedPut:
        """For the declared bytes alone, under a key that nothing has yet."""
        headers = {
            "content-length": str(declared.size_bytes),
            "if-none-match": "*",
            "x-amz-checksum-sha256": base64.b64encode(bytes.fromhex(declared.sha256)).decode(),
        }
        now = self.clock()
        return PresignedPut(
            url=self._signed("PUT", key, headers, {}, (now, PUT_WITHIN)), headers=headers, expires=now + PUT_WITHIN
        )

    def get(self, key: str, name: str, content_type: str) -> PresignedGet:
        """Of the object, as a file to be saved: no browser shows it in the name of the store's host."""
        shown = {
            "response-content-disposition": f'attachment; filename="{file_name(name, content_type)}"',
            "response-content-type": content_type_of(content_type),
        }
        now = self.clock()
        return PresignedGet(url=self._signed("GET", key, {}, shown, (now, GET_WITHIN)), expires=now + GET_WITHIN)

    def _signed(
        self,
        method: str,
        key: str,
        headers: Mapping[str, str],
        query: Mapping[str, str],
        valid: tuple[datetime, timedelta],
    ) -> str:
        """Signature Version 4 in the query, as S3 documents it: the path is encoded once, the payload not signed."""
        begins, lasts = valid
        signing_key, scheme, host = self.signing_key(), urlsplit(self.endpoint_url).scheme, self._host()
        path = quote("/" + "/".join(filter(None, (self.bucket, self.prefix, key))), safe=f"/{_UNRESERVED}")
        signed = {"host": host, **headers}
        stamp = begins.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
        scope = f"{stamp[:8]}/{self.region}/s3/aws4_request"
        parameters = {
            **query,
            "X-Amz-Algorithm": _ALGORITHM,
            "X-Amz-Credential": f"{signing_key.access_key}/{scope}",
            "X-Amz-Date": stamp,
            "X-Amz-Expires": str(int(lasts.total_seconds())),
            "X-Amz-SignedHeaders": ";".join(sorted(signed)),
        }
        if signing_key.session_token is not None:
            parameters["X-Amz-Security-Token"] = signing_key.session_token
        asked = "&".join(sorted(f"{_quoted(name)}={_quoted(value)}" for name, value in parameters.items()))
        lines = [f"{name}:{signed[name]}" for name in sorted(signed)]
        request = "\n".join([method, path, asked, *lines, "", ";".join(sorted(signed)), "UNSIGNED-PAYLOAD"])
        to_sign = "\n".join([_ALGORITHM, stamp, scope, hashlib.sha256(request.encode()).hexdigest()])
        return f"{scheme}://{host}{path}?{asked}&X-Amz-Signature={_signature(signing_key.secret_key, scope, to_sign)}"

    def _host(self) -> str:
        """As a client will name it: without the port that its scheme implies."""
        parts = urlsplit(self.endpoint_url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"{host}:{parts.port}" if parts.port not in (None, _DEFAULT_PORTS.get(parts.scheme)) else f"{host}"


def _quoted(text: str) -> str:
    return quote(text, safe=_UNRESERVED)


def _signature(secret_key: str, scope: str, to_sign: str) -> str:
    derived = f"AWS4{secret_key}".encode()
    for part in (*scope.split("/"), to_sign):
        derived = hmac.digest(derived, part.encode(), "sha256")
    return derived.hex()
