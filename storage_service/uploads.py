"""Staging keys and presigned addresses for uploads, claims and downloads."""

import asyncio
import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar
from urllib.parse import quote, urlsplit

from bus_schema.identities import Principal
from bus_schema.uploads import (
    ClaimAddress,
    ClaimUpload,
    FoundManifest,
    PresignedGet,
    PresignedPut,
    RequestClaim,
    RequestUpload,
    Upload,
)
from mindbus.files.folder_addresses import FileAddress, signing_key
from mindbus.files.keys import content_type_of, file_name, new_staging_key, staging_folder
from mindbus.files.packs import packed_place
from mindbus.files.store import FileStore
from storage_service.blobs import Declared
from storage_service.errors import ArtifactTooLarge, NotAStagingAddress

SignedT = TypeVar("SignedT", bound=PresignedPut | PresignedGet | None)
PUT_WITHIN = timedelta(minutes=15)
GET_WITHIN = timedelta(minutes=5)
_UPLOAD = re.compile(r"staging/([0-9]{4})/([0-9]{2})/([0-9]{2})/([A-Za-z0-9_@-]{1,128})/([0-9a-f]{32})")
_ALGORITHM = "AWS4-HMAC-SHA256"
_UNRESERVED = "-_.~"
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class SigningAccount:
    """Credentials, and the store's address as agents reach it, which is part of what is signed."""

    endpoint_url: str
    region: str
    access_key: str
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


class AddressSigner(Protocol):
    """Signs addresses after the ACL has been checked; nothing is sent. `is_local`: it does so at once."""

    is_local: ClassVar[bool]

    def put(self, key: str, declared: Declared) -> PresignedPut | None:
        """An upload of the declared bytes alone, under a key that has no file yet; None where nobody serves it."""

    def get(self, key: str, name: str, content_type: str) -> PresignedGet | None:
        """A download as an attachment: no browser shows it under the store's host; None where nobody serves it."""


@dataclass(frozen=True, slots=True)
class FolderPresigner:
    """Signs addresses under which the gateway serves the files of a folder; `base_url` is the gateway's."""

    is_local: ClassVar[bool] = True
    root: Path
    base_url: Callable[[], str | None]
    clock: Callable[[], datetime]

    def put(self, key: str, declared: Declared) -> PresignedPut | None:
        expires = self.clock() + PUT_WITHIN
        place = FileAddress("PUT", key, int(expires.timestamp()), declared.sha256, declared.size_bytes)
        url = self._url(place)
        if url is None:
            return None
        return PresignedPut(url=url, headers={"content-length": str(declared.size_bytes)}, expires=expires)

    def get(self, key: str, _name: str, _content_type: str) -> PresignedGet | None:
        expires = self.clock() + GET_WITHIN
        url = self._url(FileAddress("GET", key, int(expires.timestamp())))
        return None if url is None else PresignedGet(url=url, expires=expires)

    def _url(self, address: FileAddress) -> str | None:
        base_url = self.base_url()
        return None if base_url is None else address.url(base_url, signing_key(self.root))


@dataclass(frozen=True, slots=True)
class Presigner:
    """AddressSigner of an object store: signs addresses after the ACL has been checked; nothing is sent.

    `account` is called each time, since the key of a machine's role is replaced every few hours; it may block.
    """

    is_local: ClassVar[bool] = False
    bucket: str
    prefix: str
    account: Callable[[], SigningAccount]
    clock: Callable[[], datetime]

    def put(self, key: str, declared: Declared) -> PresignedPut:
        """An upload of the declared bytes alone, under a key that has no object yet."""
        headers = {
            "content-length": str(declared.size_bytes),
            "if-none-match": "*",
            "x-amz-checksum-sha256": base64.b64encode(bytes.fromhex(declared.sha256)).decode(),
        }
        url, expires = self._sign("PUT", key, headers, {}, PUT_WITHIN)
        return PresignedPut(url=url, headers=headers, expires=expires)

    def get(self, key: str, name: str, content_type: str) -> PresignedGet:
        """A download as an attachment: no browser shows it under the store's host."""
        shown = {
            "response-content-disposition": f'attachment; filename="{file_name(name, content_type)}"',
            "response-content-type": content_type_of(content_type),
        }
        url, expires = self._sign("GET", key, {}, shown, GET_WITHIN)
        return PresignedGet(url=url, expires=expires)

    def _sign(
        self, method: str, key: str, headers: Mapping[str, str], query: Mapping[str, str], valid_for: timedelta
    ) -> tuple[str, datetime]:
        """Address with its end; AWS Signature Version 4 in the query, the path encoded once, the payload not signed."""
        begins, account = self.clock(), self.account()
        scheme, host = urlsplit(account.endpoint_url).scheme, _host_of(account.endpoint_url)
        path = quote("/" + "/".join(filter(None, (self.bucket, self.prefix, key))), safe=f"/{_UNRESERVED}")
        signed = {"host": host, **headers}
        stamp = begins.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
        scope = f"{stamp[:8]}/{account.region}/s3/aws4_request"
        parameters = {
            **query,
            "X-Amz-Algorithm": _ALGORITHM,
            "X-Amz-Credential": f"{account.access_key}/{scope}",
            "X-Amz-Date": stamp,
            "X-Amz-Expires": str(int(valid_for.total_seconds())),
            "X-Amz-SignedHeaders": ";".join(sorted(signed)),
        }
        if account.session_token is not None:
            parameters["X-Amz-Security-Token"] = account.session_token
        query_string = "&".join(sorted(f"{_quote(name)}={_quote(value)}" for name, value in parameters.items()))
        lines = [f"{name}:{signed[name]}" for name in sorted(signed)]
        request = "\n".join([method, path, query_string, *lines, "", ";".join(sorted(signed)), "UNSIGNED-PAYLOAD"])
        to_sign = "\n".join([_ALGORITHM, stamp, scope, hashlib.sha256(request.encode()).hexdigest()])
        signature = _signature(account.secret_key, scope, to_sign)
        return f"{scheme}://{host}{path}?{query_string}&X-Amz-Signature={signature}", begins + valid_for


def _host_of(url: str) -> str:
    """Host as a client sends it: without the default port of the scheme."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{host}:{parts.port}" if parts.port not in (None, _DEFAULT_PORTS.get(parts.scheme)) else f"{host}"


def _quote(text: str) -> str:
    return quote(text, safe=_UNRESERVED)


def _signature(secret_key: str, scope: str, to_sign: str) -> str:
    derived = f"AWS4{secret_key}".encode()
    for part in (*scope.split("/"), to_sign):
        derived = hmac.digest(derived, part.encode(), "sha256")
    return derived.hex()


def open_presigner(
    files: FileStore, clock: Callable[[], datetime], public_endpoint_url: str | None = None
) -> Presigner | None:
    """The presigner of an object store, with storage's own credentials; None for others."""
    if files.local_root is not None:
        return None
    from mindbus.files.s3_store import S3Files

    if not isinstance(files, S3Files):
        return None
    bucket = files.bucket
    return Presigner(bucket.name, bucket.prefix, lambda: bucket.wait(_account(bucket.fs, public_endpoint_url)), clock)


async def _account(fs: Any, public_endpoint_url: str | None) -> SigningAccount:
    # Imported here: S3 is an extra.
    from mindbus.files.s3_errors import CredentialsRefused

    client = await fs.set_session()
    region = client.meta.region_name
    endpoint_url = public_endpoint_url or client.meta.endpoint_url
    # botocore's name for no region at all; it signs for us-east-1 then.
    region = "us-east-1" if region in (None, "aws-global") else region
    if fs.key is not None:
        return SigningAccount(endpoint_url, region, fs.key, fs.secret, fs.token)
    credentials = await fs.session.get_credentials()
    if credentials is None:
        raise CredentialsRefused(CredentialsRefused.number, CredentialsRefused.__doc__)
    frozen = await credentials.get_frozen_credentials()
    return SigningAccount(endpoint_url, region, frozen.access_key, frozen.secret_key, frozen.token)


def upload_key(uri: str, *, root_url: str, owner: str) -> str:
    """The key of a staged upload, rebuilt from the variable parts of its address: a day, an upload id.

    The address begins with the configured root, letter by letter, or has no root at all; so no scheme, host, escape or
    link in a message is ever interpreted. Raises NotAStagingAddress.
    """
    match = _UPLOAD.fullmatch(uri.removeprefix(f"{root_url.rstrip('/')}/"))
    if match is None or match[4] != staging_folder(owner):
        raise NotAStagingAddress
    try:
        day = date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError as error:
        raise NotAStagingAddress from error
    return f"staging/{day:%Y/%m/%d}/{staging_folder(owner)}/{match[5]}"


_CLAIM_TYPE = "application/json"


@dataclass(frozen=True, slots=True)
class Uploads:
    """Addresses for staging and reading, presigned for who has no access to the store.

    An address does not reveal whether there is a file.
    """

    root_url: str
    max_artifact_bytes: int
    clock: Callable[[], datetime]
    presigner: AddressSigner | None = None

    async def request(self, request: RequestUpload, principal: Principal) -> Upload:
        """Raises ArtifactTooLarge, NotAStagingAddress; OSError where there is nothing to sign with."""
        if request.size_bytes > self.max_artifact_bytes:
            raise ArtifactTooLarge(size_bytes=request.size_bytes, max_bytes=self.max_artifact_bytes)
        if request.uri is None:
            key = new_staging_key(principal.owner, self.clock())
        else:
            key = upload_key(request.uri, root_url=self.root_url, owner=principal.owner)
        return Upload(
            upload_id=key.rpartition("/")[2],
            uri=f"{self.root_url.rstrip('/')}/{key}",
            presigned_put=await self._presigned_put(key, request),
        )

    async def request_claim(self, request: RequestClaim) -> ClaimUpload:
        key = f"claims/{self.clock().astimezone(UTC):%Y/%m/%d}/{request.checksum.removeprefix('sha256:')}"
        return ClaimUpload(key=key, presigned_put=await self._presigned_put(key, request))

    async def open_claim(self, key: str) -> ClaimAddress:
        """The address to read from. Raises OSError where there is nothing to sign with."""
        if self.presigner is None:
            return ClaimAddress()
        name = key.rpartition("/")[2]
        return ClaimAddress(presigned_url=await _signed(self.presigner, self.presigner.get, key, name, _CLAIM_TYPE))

    async def with_address(self, manifest: FoundManifest, *, signed: bool) -> FoundManifest:
        """The manifest, with an address of its bytes if requested; the ACL is checked by the caller."""
        if not signed:
            return manifest.model_copy(update={"packed": None})
        if self.presigner is None:
            return manifest
        place = manifest.uri
        if self.presigner.is_local and manifest.packed is not None:
            place = packed_place(manifest.packed, manifest.sha256, place.rpartition("/")[2])
        sign = self.presigner.get
        presigned = await _signed(self.presigner, sign, place, manifest.id, manifest.content_type)
        return manifest.model_copy(update={"presigned_url": presigned})

    async def _presigned_put(self, key: str, request: RequestUpload | RequestClaim) -> PresignedPut | None:
        if self.presigner is None:
            return None
        declared = Declared(request.checksum.removeprefix("sha256:"), request.size_bytes)
        return await _signed(self.presigner, self.presigner.put, key, declared)


async def _signed(signer: AddressSigner, sign: Callable[..., SignedT], *about: Any) -> SignedT:
    return sign(*about) if signer.is_local else await asyncio.to_thread(sign, *about)
