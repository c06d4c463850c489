"""Where to stage, where to read: addresses for this asker, this key, these bytes."""

import hashlib
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from pydantic import ValidationError

from bus_schema.artifacts import Manifest
from bus_schema.replies import Code
from bus_schema.storage import GetArtifact
from bus_schema.uploads import MAX_CLAIM_BYTES, OpenClaim, RequestClaim, RequestUpload, Upload
from mindbus.errors import Rejected, ReplyError
from tests.clocks import NOON
from tests.hostile_addresses import hostile_addresses, hostile_names
from tests.signatures import query_of, with_signatures
from tests.storage_kit import CRITIC, RESEARCHER, Depot, OpenDepot

CONTENT = b"findings"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def signing(open_depot: OpenDepot) -> Depot:
    return open_depot(arrange=with_signatures)


def wanted(**changes: Any) -> RequestUpload:
    fields = {"content_type": "text/plain", "size_bytes": len(CONTENT), "checksum": f"sha256:{DIGEST}"}
    return RequestUpload.model_validate(fields | changes)


async def upload_of(depot: Depot, by: str = RESEARCHER, **changes: Any) -> Upload:
    upload = await depot.handle(wanted(**changes), by)
    assert isinstance(upload, Upload)
    return upload


def key_signed_for(url: str) -> str:
    return unquote(urlsplit(url).path).removeprefix("/mindbus/team one/данные/")


async def test_an_upload_is_staged_in_the_askers_own_folder_of_the_day(signing: Depot) -> None:
    upload = await upload_of(signing)
    assert upload.presigned_put is not None

    key = f"staging/{NOON:%Y/%m/%d}/agent_researcher/{upload.upload_id}"
    assert upload.uri == signing.files.uri(key)
    assert key_signed_for(upload.presigned_put.url) == key
    assert upload.presigned_put.headers["content-length"] == str(len(CONTENT))
    assert (await upload_of(signing)).upload_id != upload.upload_id


@pytest.mark.parametrize("is_whole", [True, False], ids=["whole address", "key alone"])
async def test_an_address_minted_before_is_signed_again(signing: Depot, is_whole: bool) -> None:
    key = signing.upload_key()

    upload = await upload_of(signing, uri=signing.files.uri(key) if is_whole else key)

    assert upload.uri == signing.files.uri(key)
    assert upload.presigned_put is not None
    assert key_signed_for(upload.presigned_put.url) == key


async def test_nothing_is_signed_for_another_owners_folder(signing: Depot) -> None:
    theirs = signing.files.uri(signing.upload_key("agent.critic"))

    with pytest.raises(Rejected) as refused:
        await upload_of(signing, uri=theirs)

    assert refused.value.code is Code.INVALID
    assert (await upload_of(signing, CRITIC, uri=theirs)).uri == theirs


async def test_what_storage_would_not_take_is_not_signed_for(signing: Depot) -> None:
    with pytest.raises(Rejected) as refused:
        await upload_of(signing, size_bytes=signing.max_artifact_bytes + 1)

    assert refused.value.code is Code.TOO_LARGE


async def test_a_store_that_is_a_folder_needs_no_signature(depot: Depot) -> None:
    artifact_id = await depot.put()

    upload = await upload_of(depot)
    found = await depot.handle(GetArtifact(artifact_id=artifact_id, presigned=True))
    claim = await depot.handle(RequestClaim(size_bytes=8, checksum=f"sha256:{DIGEST}"))
    opened = await depot.handle(OpenClaim(key=claim.key))

    assert upload.presigned_put is found.presigned_url is claim.presigned_put is opened.presigned_url is None


async def test_a_manifest_comes_with_an_address_for_who_asks_for_one(signing: Depot) -> None:
    artifact_id = await signing.put(content_type="text/markdown")

    plain = await signing.get(artifact_id)
    found = await signing.handle(GetArtifact(artifact_id=artifact_id, presigned=True))

    assert key_signed_for(found.presigned_url.url) == plain.uri
    assert f'filename="{artifact_id}.md"' in query_of(found.presigned_url.url)["response-content-disposition"]
    assert Manifest.model_validate(plain.model_dump(mode="json")).id == artifact_id


async def test_a_claim_lies_under_its_digest_of_today(signing: Depot) -> None:
    key = f"claims/{NOON:%Y/%m/%d}/{DIGEST}"

    claim = await signing.handle(RequestClaim(size_bytes=len(CONTENT), checksum=f"sha256:{DIGEST}"), CRITIC)
    opened = await signing.handle(OpenClaim(key=key))

    assert claim.key == key
    assert key_signed_for(claim.presigned_put.url) == key_signed_for(opened.presigned_url.url) == key
    with pytest.raises(ValidationError):
        RequestClaim(size_bytes=MAX_CLAIM_BYTES + 1, checksum=f"sha256:{DIGEST}")


@pytest.mark.parametrize("key", ["objects/sha256/aa/bb/1", f"claims/2026/03/14/../{DIGEST}", *hostile_names()])
def test_nothing_but_a_claim_is_opened_as_one(key: str) -> None:
    with pytest.raises(ValidationError):
        OpenClaim(key=key)


async def test_a_hostile_address_is_not_signed(signing: Depot, connections: list[object]) -> None:
    good = signing.files.uri(signing.upload_key())
    addresses = [address for address in hostile_addresses(signing.files.url, good) if len(address) <= 1024]

    for address in addresses:
        with pytest.raises((Rejected, ReplyError)) as refused:
            await upload_of(signing, uri=address)
        assert refused.value.code is Code.INVALID, address

    assert len(addresses) > 150
    assert connections == []
