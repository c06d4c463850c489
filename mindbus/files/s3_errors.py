"""Errors of an object store, each an OSError, so that code which retries those retries these."""

import errno
from typing import ClassVar, Self

from botocore.exceptions import (
    ClientError,
    ConfigNotFound,
    ConfigParseError,
    CredentialRetrievalError,
    EndpointConnectionError,
    HTTPClientError,
    InvalidConfigError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
    UnknownCredentialError,
)

from bus_schema.codes import Code


class StoreError(OSError):
    """The object store failed; try again."""

    number: ClassVar[int] = errno.EIO

    @classmethod
    def at(cls, place: str) -> Self:
        """This error with its default text; `place` says where, in words that may be shown to anyone."""
        return cls(cls.number, f"{cls.__doc__} ({place})")

    def __str__(self) -> str:
        return str(self.strerror)


class StoreUnreachable(StoreError, ConnectionError):
    """The object store does not answer; see that it is up, that MINDBUS_S3_ENDPOINT_URL is right."""

    code = Code.UNAVAILABLE
    number = errno.ECONNREFUSED


class CredentialsRefused(StoreError, PermissionError):
    """The object store refuses the credentials; check MINDBUS_S3_ACCESS_KEY, MINDBUS_S3_SECRET_KEY, or AWS_* ones."""

    number = errno.EACCES


class AwsConfigUnusable(StoreError):
    """AWS's own configuration cannot be used; correct AWS_PROFILE, AWS_CONFIG_FILE or that file, or unset them."""


class BucketMissing(StoreError):
    """The object store has no such bucket; create it, or correct MINDBUS_ARTIFACTS_URL."""

    number = errno.ENODEV


class ConditionFailed(StoreError):
    """The object store refused because of the request's own condition."""

    number = errno.EEXIST


class ConcurrentRequest(StoreError):
    """Another request for the same object was under way; try again."""

    number = errno.EBUSY


class StoreFull(StoreError):
    """The object store has no room left; make some, then try again."""

    number = errno.ENOSPC


_OF_CONFIG = (
    *(ConfigNotFound, ConfigParseError, InvalidConfigError, ProfileNotFound, UnknownCredentialError),
    *(CredentialRetrievalError, SSOError, TokenRetrievalError),
)
_MISSING = frozenset({"NoSuchKey", "NoSuchUpload", "NoSuchVersion", "404"})
_REFUSED = (
    *("AccessDenied", "AccountProblem", "AllAccessDisabled", "AuthorizationHeaderMalformed", "ExpiredToken"),
    *("InvalidAccessKeyId", "InvalidSecurity", "InvalidToken", "RequestTimeTooSkewed", "SignatureDoesNotMatch", "403"),
)
_BY_CODE: dict[str, type[StoreError]] = {"NoSuchBucket": BucketMissing, **dict.fromkeys(_REFUSED, CredentialsRefused)}
_BY_STATUS: dict[int, type[StoreError]] = {
    403: CredentialsRefused,
    409: ConcurrentRequest,
    412: ConditionFailed,
    507: StoreFull,
}


def as_os_error(failure: Exception, place: str, operation: str) -> OSError:
    cause = failure.__cause__ if isinstance(failure.__cause__, ClientError) else failure
    where = f"{operation} at {place}"
    if isinstance(cause, ClientError):
        return _error_reply(cause, where)
    if isinstance(cause, NoCredentialsError | PartialCredentialsError):
        return CredentialsRefused.at(f"{where}: {cause}")
    if isinstance(cause, _OF_CONFIG):
        return AwsConfigUnusable.at(f"{where}: {cause}")
    if isinstance(cause, EndpointConnectionError | HTTPClientError | TimeoutError):
        return StoreUnreachable.at(f"{where}: {type(cause).__name__}")
    if isinstance(cause, OSError):
        return cause
    return StoreError.at(f"{where}: {type(cause).__name__}")


def _error_reply(reply: ClientError, where: str) -> OSError:
    code = str(reply.response.get("Error", {}).get("Code", ""))
    status = int(reply.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    where = f"{where}: {code}, status {status}"
    if code in _MISSING:
        return FileNotFoundError(errno.ENOENT, where)
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status, StoreError)
    return kind.at(where)
