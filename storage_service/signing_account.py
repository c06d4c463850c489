"""Whose signature stands under the addresses that storage hands out."""

import errno
from collections.abc import Callable
from datetime import datetime
from typing import Any

from mindbus.files.s3_errors import CredentialsRefused
from mindbus.files.store import FileStore
from storage_service.presigning import Presigner, SigningAccount


def open_presigner(
    files: FileStore, clock: Callable[[], datetime], public_endpoint_url: str | None = None
) -> Presigner | None:
    """For a store of objects, in the name of whom storage itself is there; for a folder there is nothing to sign."""
    if files.local_root is not None:
        return None
    from mindbus.files.s3_store import S3Files

    if not isinstance(files, S3Files):
        return None
    bucket = files.bucket
    return Presigner(bucket.name, bucket.prefix, lambda: bucket.wait(_account(bucket.fs, public_endpoint_url)), clock)


async def _account(fs: Any, public_endpoint_url: str | None) -> SigningAccount:
    client = await fs.set_session()
    region = client.meta.region_name
    endpoint_url = public_endpoint_url or client.meta.endpoint_url
    # The name that AWS's library gives to no region at all; it signs in that of the first one.
    region = "us-east-1" if region in (None, "aws-global") else region
    if fs.key is not None:
        return SigningAccount(endpoint_url, region, fs.key, fs.secret, fs.token)
    found = await fs.session.get_credentials()
    if found is None:
        raise CredentialsRefused(errno.EACCES, CredentialsRefused.__doc__)
    frozen = await found.get_frozen_credentials()
    return SigningAccount(endpoint_url, region, frozen.access_key, frozen.secret_key, frozen.token)
