"""Files in an object store: the same as in a folder, whatever goes wrong is an OSError."""

import asyncio
import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from config.settings import FleetSettings
from mindbus.files.s3_bucket import open_bucket
from mindbus.files.s3_errors import AwsConfigUnusable, BucketMissing, CredentialsRefused, StoreUnreachable
from mindbus.files.s3_store import S3Files, UploadParts
from mindbus.files.store import FileStore, StoreNotSupported, has_direct_access, open_files
from tests.object_proxy import Fault, meddling
from tests.seaweed import Place

CONTENT = "Вывод: findings\n".encode() * 1000
MIB = 1024 * 1024
PART = 5 * MIB


@pytest.fixture
def files(s3_place: Place) -> FileStore:
    return s3_place.files()


def test_what_is_put_is_read(files: FileStore) -> None:
    files.put("claims/a", CONTENT)

    with files.open_read("claims/a") as reader:
        assert reader.read() == CONTENT
    assert files.size_bytes("claims/a") == len(CONTENT)
    assert files.uri("claims/a").endswith("/claims/a")


def test_what_is_not_there_is_said_to_be_missing(files: FileStore) -> None:
    with pytest.raises(FileNotFoundError):
        files.size_bytes("nothing")
    with pytest.raises(FileNotFoundError):
        files.open_read("nothing")
    files.delete("nothing")


def test_a_reader_can_begin_anywhere(files: FileStore) -> None:
    files.put("a", CONTENT)

    with files.open_read("a") as reader:
        reader.seek(100)
        assert reader.read(50) == CONTENT[100:150]
        reader.seek(-10, os.SEEK_END)
        assert reader.read() == CONTENT[-10:]
        reader.seek(0)
        assert reader.read() == CONTENT


def test_a_reader_never_mixes_two_versions(files: FileStore) -> None:
    files.put("a", CONTENT)
    with files.open_read("a") as reader:
        files.put("a", CONTENT[::-1])

        with pytest.raises(OSError, match="condition"):
            reader.read()


@pytest.mark.parametrize("size", [0, 1, 6 * MIB, 13 * MIB + 3], ids=["none", "one", "in one piece", "in three parts"])
def test_an_upload_arrives_whole(s3_place: Place, tmp_path: Path, size: int) -> None:
    files = S3Files(s3_place.bucket(), s3_place.url, UploadParts(PART, at_once=2, whole_bytes=6 * MIB))
    source = tmp_path / "source"
    source.write_bytes(os.urandom(size))

    files.upload("staging/a", source)

    digest = hashlib.sha256()
    with files.open_read("staging/a") as reader:
        while piece := reader.read(MIB):
            digest.update(piece)
    assert digest.digest() == hashlib.sha256(source.read_bytes()).digest()


async def test_what_met_a_conflict_is_sent_again_from_its_beginning(s3_place: Place, tmp_path: Path) -> None:
    source, faults = tmp_path / "source", iter([Fault.CONFLICT])
    source.write_bytes(b"whole")

    async with meddling(str(s3_place.account.endpoint_url), lambda _asked: next(faults, None)) as through:
        account = replace(s3_place.account, endpoint_url=through)
        files = S3Files(open_bucket(s3_place.url, account), s3_place.url, UploadParts(PART, at_once=2))
        async with asyncio.timeout(30):
            await asyncio.to_thread(files.upload, "met/conflict", source)

    assert await asyncio.to_thread(lambda: s3_place.files().open_read("met/conflict").read()) == b"whole"


def test_an_interrupted_upload_goes_on_where_it_was(s3_place: Place, tmp_path: Path) -> None:
    source = tmp_path / "source"
    content = os.urandom(3 * PART + 1)
    source.write_bytes(content)
    bucket = s3_place.bucket()
    path = bucket.path("staging/a")
    begun = bucket.wait(bucket.call("create_multipart_upload", Key=path, ChecksumAlgorithm="SHA256"))["UploadId"]
    for number, sent in ((1, content[:PART]), (3, bytes(PART))):
        bucket.wait(bucket.call("upload_part", Key=path, UploadId=begun, PartNumber=number, Body=sent))
    sending = Counting(bucket.fs)
    bucket.fs = sending

    S3Files(bucket, s3_place.url, UploadParts(PART, at_once=2, whole_bytes=PART)).upload("staging/a", source)

    assert sorted(sending.sent) == [2, 3, 4]
    with s3_place.files().open_read("staging/a") as reader:
        assert reader.read() == content


class Counting:
    """Passes requests on, noting which parts are sent."""

    def __init__(self, fs: object) -> None:
        self._fs, self.sent = fs, list[int]()

    def __getattr__(self, name: str) -> object:
        return getattr(self._fs, name)

    async def _call_s3(self, operation: str, **parameters: object) -> object:
        if operation == "upload_part":
            self.sent.append(int(str(parameters["PartNumber"])))
        return await self._fs._call_s3(operation, **parameters)  # type: ignore[attr-defined]


def test_a_missing_bucket_is_no_missing_file(s3_place: Place, tmp_path: Path) -> None:
    files = replace(s3_place, url="s3://no-such-bucket/x").files()

    for attempt in (
        lambda: files.open_read("a"),
        lambda: files.put("a", b""),
        lambda: files.size_bytes("a"),
    ):
        with pytest.raises(BucketMissing, match=r"create it, or correct MINDBUS_ARTIFACTS_URL.*no-such-bucket"):
            attempt()


def test_refused_credentials_are_said_to_be_refused_without_showing_them(s3_place: Place) -> None:
    wrong = replace(s3_place, account=replace(s3_place.account, secret_key="not-the-secret"))

    with pytest.raises(CredentialsRefused, match="MINDBUS_S3_SECRET_KEY") as refused:
        wrong.files().put("a", b"")

    assert "not-the-secret" not in str(refused.value)
    assert "not-the-secret" not in repr(wrong.account)
    assert "not-the-secret" not in repr(wrong.settings())


@pytest.mark.slow
def test_a_store_that_does_not_answer_is_said_so() -> None:
    settings = FleetSettings(
        artifacts_url="s3://mindbus", s3_endpoint_url="http://127.0.0.1:1", s3_access_key="a", s3_secret_key="b"
    )

    with pytest.raises(StoreUnreachable, match="MINDBUS_S3_ENDPOINT_URL"):
        open_files(settings).size_bytes("a")


def test_a_profile_of_aws_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "left-behind")
    settings = FleetSettings(artifacts_url="s3://mindbus", s3_endpoint_url="http://127.0.0.1:1")

    with pytest.raises(AwsConfigUnusable, match=r"AWS_PROFILE.*left-behind"):
        open_files(settings).size_bytes("a")
    with pytest.raises(AwsConfigUnusable, match=r"AWS_PROFILE.*left-behind"):
        has_direct_access(settings)


@pytest.mark.parametrize(
    "url",
    [
        "s3://",
        "s3:///x",
        "s3://a",
        "s3://UPPER",
        "s3://u:p@bucket",
        "s3://bucket:80",
        "s3://bucket/../x",
        "s3://b ucket",
        "s3://bucket/a//b",
        "s3://bucket/a?versionId=1",
        "s3://bucket/a#b",
        "s3://bucket/%2e%2e",
        "s3:bucket",
    ],
)
def test_an_url_that_names_no_bucket_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(StoreNotSupported) as refused:
        open_files(FleetSettings(artifacts_url=url))

    assert "u:p" not in str(refused.value)


def test_standard_credentials_of_the_environment_are_used(s3_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    account = s3_place.account
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", str(account.access_key))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", str(account.secret_key))
    monkeypatch.setenv("AWS_ENDPOINT_URL", str(account.endpoint_url))
    anonymous = replace(account, access_key=None, secret_key=None, endpoint_url=None, region="eu-west-1")

    bucket = open_bucket(s3_place.url, anonymous)
    bucket.wait(bucket.call("put_object", Key=bucket.path("a"), Body=CONTENT))

    assert s3_place.files().size_bytes("a") == len(CONTENT)
