"""Staging keys and presigned addresses for uploads, claims and downloads."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime

from bus_schema.artifacts import Manifest
from bus_schema.uploads import ClaimAddress, ClaimUpload, FoundManifest, RequestClaim, RequestUpload, Upload
from mindbus.files.keys import new_staging_key, staging_folder
from mindbus.principal import Principal
from storage_service.blobs import Declared
from storage_service.errors import ArtifactTooLarge, NotAStagingAddress
from storage_service.presigner import Presigner

_UPLOAD = re.compile(r"staging/([0-9]{4})/([0-9]{2})/([0-9]{2})/([A-Za-z0-9_@-]{1,128})/([0-9a-f]{32})")


def upload_key(uri: str, *, root_url: str, owner: str) -> str:
    """The key of a staged upload, rebuilt from the variable parts of its address: a day, an upload id.

    The address begins with the configured root, letter by letter, or has no root at all; so no scheme, host, escape or
    link in a message is ever interpreted. Raises NotAStagingAddress.
    """
    found = _UPLOAD.fullmatch(uri.removeprefix(f"{root_url.rstrip('/')}/"))
    if found is None or found[4] != staging_folder(owner):
        raise NotAStagingAddress
    try:
        day = date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError as error:
        raise NotAStagingAddress from error
    return f"staging/{day:%Y/%m/%d}/{staging_folder(owner)}/{found[5]}"


_CLAIM_TYPE = "application/json"


@dataclass(frozen=True, slots=True)
class Uploads:
    """Addresses for staging and reading, presigned where the store is an object store.

    An address does not reveal whether there is a file.
    """

    root_url: str
    max_artifact_bytes: int
    clock: Callable[[], datetime]
    presigner: Presigner | None = None

    async def request(self, request: RequestUpload, principal: Principal) -> Upload:
        """Raises ArtifactTooLarge, NotAStagingAddress; OSError where there is nothing to sign with."""
        if request.size_bytes > self.max_artifact_bytes:
            raise ArtifactTooLarge(size_bytes=request.size_bytes, max_bytes=self.max_artifact_bytes)
        if request.uri is None:
            key = new_staging_key(principal.owner, self.clock())
        else:
            key = upload_key(request.uri, root_url=self.root_url, owner=principal.owner)
        declared = Declared(request.checksum.removeprefix("sha256:"), request.size_bytes)
        return Upload(
            upload_id=key.rpartition("/")[2],
            uri=f"{self.root_url.rstrip('/')}/{key}",
            presigned_put=self.presigner and await asyncio.to_thread(self.presigner.put, key, declared),
        )

    async def request_claim(self, request: RequestClaim) -> ClaimUpload:
        """As `request`, under a key made of the digest of the data."""
        sha256 = request.checksum.removeprefix("sha256:")
        key = f"claims/{self.clock().astimezone(UTC):%Y/%m/%d}/{sha256}"
        declared = Declared(sha256, request.size_bytes)
        return ClaimUpload(
            key=key, presigned_put=self.presigner and await asyncio.to_thread(self.presigner.put, key, declared)
        )

    async def open_claim(self, key: str) -> ClaimAddress:
        """The address to read from. Raises OSError where there is nothing to sign with."""
        if self.presigner is None:
            return ClaimAddress()
        name = key.rpartition("/")[2]
        return ClaimAddress(presigned_url=await asyncio.to_thread(self.presigner.get, key, name, _CLAIM_TYPE))

    async def addressed(self, manifest: Manifest, *, signed: bool) -> FoundManifest:
        """The manifest, with an address of its bytes if requested; the ACL is checked by the caller."""
        if self.presigner is None or not signed:
            return FoundManifest(**dict(manifest))
        sign = self.presigner.get
        presigned = await asyncio.to_thread(sign, manifest.uri, manifest.id, manifest.content_type)
        return FoundManifest(**dict(manifest), presigned_url=presigned)
