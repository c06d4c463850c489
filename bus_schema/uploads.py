"""Presigned access for clients that cannot reach the file store themselves."""

from pydantic import AwareDatetime, Field

from bus_schema.artifacts import Checksum, ContentType, Manifest
from bus_schema.envelope import ClaimKey
from bus_schema.messages import Query, Value

MAX_CLAIM_BYTES = 64 * 1024 * 1024


class PresignedPut(Value):
    """A signed address for one PUT of exactly these bytes until it expires; the headers must be sent with it."""

    url: str = Field(repr=False)
    headers: dict[str, str]
    expires: AwareDatetime


class PresignedGet(Value):
    """A signed address for GET, ranges included, until it expires."""

    url: str = Field(repr=False)
    expires: AwareDatetime


class PackPlace(Value):
    """Place of a small object in a store on disk: a pack, which holds many objects, and the offset of its record."""

    pack: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}\.pack$")
    offset: int = Field(ge=0)


class FoundManifest(Manifest):
    """A manifest, with an address of its bytes if one was requested.

    For an object store, the address is a signed one; on disk, it is the place in a pack, unless the bytes are a file of
    their own at the manifest's `uri`.
    """

    presigned_url: PresignedGet | None = Field(default=None, exclude_if=lambda url: url is None)
    packed: PackPlace | None = Field(default=None, exclude_if=lambda packed: packed is None)


class Upload(Value):
    """Staging address; without `presigned_put`, the store is a folder that is written to directly."""

    upload_id: str
    uri: str
    presigned_put: PresignedPut | None = None


class RequestUpload(Query[Upload], domain="storage", action="request_upload"):
    """Ask for a staging address; `uri` renews one that was issued before."""

    content_type: ContentType
    size_bytes: int = Field(ge=0)
    checksum: Checksum
    uri: str | None = Field(default=None, min_length=1, max_length=1024)


class ClaimUpload(Value):
    """Upload address for the data of a large message; without `presigned_put`, the store is a folder."""

    key: ClaimKey
    presigned_put: PresignedPut | None = None


class RequestClaim(Query[ClaimUpload], domain="storage", action="request_claim"):
    """Ask for an upload address for data too large for a message; its key contains the digest."""

    size_bytes: int = Field(ge=0, le=MAX_CLAIM_BYTES)
    checksum: Checksum


class ClaimAddress(Value):
    """Download address of a large message's data; without an address, the store is a folder."""

    presigned_url: PresignedGet | None = None


class OpenClaim(Query[ClaimAddress], domain="storage", action="open_claim"):
    """Ask for the data of a large message; knowing the digest in its key is the permission."""

    key: ClaimKey
