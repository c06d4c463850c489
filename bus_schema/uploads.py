"""The way to the bytes for whoever has no access to the file store itself: addresses that storage has signed."""

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from bus_schema.artifacts import Checksum, ContentType, Manifest
from bus_schema.envelope import ClaimKey
from bus_schema.messages import Query

MAX_CLAIM_BYTES = 64 * 1024 * 1024


class PresignedPut(BaseModel):
    """Whoever has this address may PUT these very bytes once, until it expires; each header must go with them."""

    model_config = ConfigDict(frozen=True)
    url: str = Field(repr=False)
    headers: dict[str, str]
    expires: AwareDatetime


class PresignedGet(BaseModel):
    """Whoever has this address may GET the bytes, or a range of them, until it expires; nobody else should."""

    model_config = ConfigDict(frozen=True)
    url: str = Field(repr=False)
    expires: AwareDatetime


class FoundManifest(Manifest):
    """A manifest as it is found; with an address to read from, if one was asked for and the store signs such."""

    presigned_url: PresignedGet | None = Field(default=None, exclude_if=lambda url: url is None)


class Upload(BaseModel):
    """Where to stage; without `presigned_put`, the store is a folder that is written to directly."""

    model_config = ConfigDict(frozen=True)
    upload_id: str
    uri: str
    presigned_put: PresignedPut | None = None


class RequestUpload(Query[Upload], domain="storage", action="request_upload"):
    """Ask where to stage an artifact; `uri` is an address minted before, to be had again under the same conditions."""

    content_type: ContentType
    size_bytes: int = Field(ge=0)
    checksum: Checksum
    uri: str | None = Field(default=None, min_length=1, max_length=1024)


class ClaimUpload(BaseModel):
    """Where to leave the data of a large message; without `presigned_put`, the store is a folder."""

    model_config = ConfigDict(frozen=True)
    key: ClaimKey
    presigned_put: PresignedPut | None = None


class RequestClaim(Query[ClaimUpload], domain="storage", action="request_claim"):
    """Ask where to leave data that is too large for a message; the key that goes with the message holds its digest."""

    size_bytes: int = Field(ge=0, le=MAX_CLAIM_BYTES)
    checksum: Checksum


class ClaimAddress(BaseModel):
    """Where to read the data of a large message; without an address, the store is a folder."""

    model_config = ConfigDict(frozen=True)
    presigned_url: PresignedGet | None = None


class OpenClaim(Query[ClaimAddress], domain="storage", action="open_claim"):
    """Ask for the data of a large message; whoever knows the digest in its key was meant to have it."""

    key: ClaimKey
