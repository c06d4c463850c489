"""What can be wrong with an object store: each an OSError, so that whoever retries those retries these."""

import errno

from botocore.exceptions import (
    ClientError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
)

_REFUSED = frozenset(
    {
        "AccessDenied",
        "AccountProblem",
        "AllAccessDisabled",
        "AuthorizationHeaderMalformed",
        "ExpiredToken",
        "InvalidAccessKeyId",
        "InvalidSecurity",
        "InvalidToken",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
        "403",
    }
)
_FORBIDDEN = 403
_GONE = frozenset({"NoSuchKey", "NoSuchUpload", "NoSuchVersion", "404"})


class _InWords(OSError):
    def __str__(self) -> str:
        return str(self.strerror)


class StoreUnreachable(_InWords, ConnectionError):
    """The object store does not answer; see that it is up, that MINDBUS_S3_ENDPOINT_URL is right."""


class CredentialsRefused(_InWords, PermissionError):
    """The object store refuses the credentials; check MINDBUS_S3_ACCESS_KEY, MINDBUS_S3_SECRET_KEY, or AWS_* ones."""


class BucketMissing(_InWords):
    """The object store has no such bucket; create it, or correct MINDBUS_ARTIFACTS_URL."""


class ConditionFailed(_InWords):
    """The object store refused because of the request's own condition."""


class Conflicting(_InWords):
    """Another request for the same object was under way; try again."""


class StoreFailed(_InWords):
    """The object store failed; try again."""


class StoreFull(_InWords):
    """The object store has no room left; make some, then try again."""


_KINDS: dict[int, tuple[type[OSError], int]] = {
    409: (Conflicting, errno.EBUSY),
    412: (ConditionFailed, errno.EEXIST),
    507: (StoreFull, errno.ENOSPC),
}


def as_os_error(failure: Exception, place: str, operation: str) -> OSError:
    """The same in Python's words; `place` and `operation` are what may be shown to anyone."""
    told = failure.__cause__ if isinstance(failure.__cause__, ClientError) else failure
    where = f"{operation} at {place}"
    if isinstance(told, ClientError):
        return _answered(told, where)
    if isinstance(told, NoCredentialsError | PartialCredentialsError):
        return CredentialsRefused(errno.EACCES, f"{CredentialsRefused.__doc__} ({where}: {told})")
    if isinstance(told, EndpointConnectionError | HTTPClientError | TimeoutError):
        return StoreUnreachable(errno.ECONNREFUSED, f"{StoreUnreachable.__doc__} ({where}: {type(told).__name__})")
    if isinstance(told, OSError):
        return told
    return StoreFailed(errno.EIO, f"{StoreFailed.__doc__} ({where}: {type(told).__name__})")


def _answered(answer: ClientError, where: str) -> OSError:
    code = str(answer.response.get("Error", {}).get("Code", ""))
    status = int(answer.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    where = f"{where}: {code}, status {status}"
    if code in _GONE:
        return FileNotFoundError(errno.ENOENT, where)
    kind: type[OSError] = StoreFailed
    number = errno.EIO
    if code == "NoSuchBucket":
        kind, number = BucketMissing, errno.ENODEV
    elif code in _REFUSED or status == _FORBIDDEN:
        kind, number = CredentialsRefused, errno.EACCES
    elif status in _KINDS:
        kind, number = _KINDS[status]
    return kind(number, f"{kind.__doc__} ({where})")
