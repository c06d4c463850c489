"""Finds an object store for the tests: one that is named, a private one, a container, or none."""

import asyncio
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from urllib.parse import unquote, urlsplit

from benchmarks.servers.seaweed import BUCKET, PrivateSeaweed, SeaweedMissing
from config.settings import FleetSettings
from mindbus.files.s3_bucket import Bucket, S3Account, open_bucket
from mindbus.files.store import FileStore, open_files
from mindbus.testing.wait import eventually
from tests.brokers import do_without

CONTAINER_IMAGE = "chrislusf/seaweedfs:latest"
CONTAINER_WITHIN_S = 120
ADVICE = (
    "For the tests alone, MINDBUS_TEST_S3_URL=http://key:secret@host:port/bucket names another, and "
    "MINDBUS_TEST_CONTAINERS=1 starts one."
)


@dataclass(frozen=True)
class Place:
    """A prefix of a bucket that is one test's alone."""

    account: S3Account
    url: str

    def settings(self, **others: object) -> FleetSettings:
        """FleetSettings that keep artifacts here."""
        chosen = {
            "artifacts_url": self.url,
            "s3_endpoint_url": self.account.endpoint_url,
            "s3_access_key": self.account.access_key,
            "s3_secret_key": self.account.secret_key,
            "s3_region": self.account.region,
        }
        return FleetSettings.model_validate(chosen | others)

    def environment(self) -> dict[str, str]:
        """The same as variables of a process."""
        account = self.account
        fields = {
            "ARTIFACTS_URL": self.url,
            "S3_ENDPOINT_URL": account.endpoint_url,
            "S3_ACCESS_KEY": account.access_key,
            "S3_SECRET_KEY": account.secret_key,
            "S3_REGION": account.region,
        }
        return {f"MINDBUS_{name}": value for name, value in fields.items() if value}

    def files(self) -> FileStore:
        """The file store here."""
        return open_files(self.settings())

    def bucket(self) -> Bucket:
        """The same, for single requests."""
        return open_bucket(self.url, self.account)


@dataclass(frozen=True)
class ObjectServer:
    """A server on which every test has its own prefix."""

    account: S3Account
    bucket: str

    def place(self) -> Place:
        """A prefix under which there is nothing."""
        return Place(self.account, f"s3://{self.bucket}/test-{secrets.token_hex(6)}")


@contextmanager
def some_object_server() -> Iterator[ObjectServer]:
    """MINDBUS_TEST_S3_URL, a private server, a container if MINDBUS_TEST_CONTAINERS=1; else skip, fail in CI."""
    if url := os.environ.get("MINDBUS_TEST_S3_URL"):
        yield _named(url)
        return
    try:
        server = PrivateSeaweed()
    except SeaweedMissing as missing:
        if os.environ.get("MINDBUS_TEST_CONTAINERS") == "1":
            with _container() as found:
                yield found
            return
        do_without(missing, "an object store", ADVICE)
    try:
        asyncio.run(server.start())
        yield ObjectServer(replace(server.account, endpoint_url=server.endpoint_url), BUCKET)
    finally:
        asyncio.run(server.remove())


def _named(url: str) -> ObjectServer:
    parts = urlsplit(url)
    account = S3Account(
        endpoint_url=f"{parts.scheme}://{parts.hostname}:{parts.port or {'http': 80, 'https': 443}[parts.scheme]}",
        access_key=unquote(parts.username or ""),
        secret_key=unquote(parts.password or ""),
        region="us-east-1",
    )
    return ObjectServer(account, parts.path.strip("/"))


@contextmanager
def _container() -> Iterator[ObjectServer]:
    # Imported here: it warns at import, and most machines never come this way.
    from testcontainers.core.container import DockerContainer

    secret = secrets.token_hex(16)
    container = (
        DockerContainer(CONTAINER_IMAGE)
        .with_exposed_ports(8333)
        .with_command(f"mini -dir=/data -bucket={BUCKET} -ip.bind=0.0.0.0 -master.telemetry=false")
        .with_env("AWS_ACCESS_KEY_ID", "mindbus")
        .with_env("AWS_SECRET_ACCESS_KEY", secret)
    )
    with container:
        host, port = container.get_container_host_ip(), container.get_exposed_port(8333)
        server = ObjectServer(S3Account(f"http://{host}:{port}", "mindbus", secret, "us-east-1"), BUCKET)
        _wait_for(server)
        yield server


def _wait_for(server: ObjectServer) -> None:
    def takes_objects() -> bool:
        try:
            server.place().files().put("started", b"yes")
        except OSError:
            return False
        return True

    eventually(takes_objects, CONTAINER_WITHIN_S, "the object store takes objects")
