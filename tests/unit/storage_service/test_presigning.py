"""Signed addresses: what they allow, to the letter."""

import base64
import hashlib
import re
from datetime import datetime, timedelta

import pytest
from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from storage_service.blobs import Declared
from tests.clocks import NOON
from tests.hostile_addresses import hostile_names
from tests.signatures import SECRET, a_presigner, query_of

CONTENT = b"findings"
DECLARED = Declared(hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))
KEY = f"staging/2026/03/14/user_a@b_example/{'0' * 32}"


def as_its_makers_sign(url: str, method: str, headers: dict[str, str], token: str | None) -> str:
    """The same request signed by AWS's own library, which signs for the moment at which it is asked."""
    query = query_of(url)
    asked = {name: value for name, value in query.items() if not name.startswith("X-Amz-")}
    request = AWSRequest(method, url.split("?")[0], headers=dict(headers), params=asked)
    auth = S3SigV4QueryAuth(Credentials("AKEXAMPLE", SECRET, token), "s3", "eu-north-1", int(query["X-Amz-Expires"]))
    auth.add_auth(request)
    return str(request.url)


def signed_at(url: str) -> datetime:
    return datetime.strptime(query_of(url)["X-Amz-Date"], "%Y%m%dT%H%M%S%z")


@pytest.mark.parametrize("token", [None, "role/token=="])
@pytest.mark.parametrize("endpoint", ["https://s3.example.org", "http://127.0.0.1:8333/", "https://[::1]:9000"])
def test_an_address_is_what_the_makers_of_the_signature_would_sign(endpoint: str, token: str | None) -> None:
    put = a_presigner(NOON, endpoint, token).put(KEY, DECLARED)
    get = a_presigner(NOON, endpoint, token).get(KEY, "art_1", "text/markdown")
    theirs_put = as_its_makers_sign(put.url, "PUT", put.headers, token)
    theirs_get = as_its_makers_sign(get.url, "GET", {}, token)

    ours_put = a_presigner(signed_at(theirs_put), endpoint, token).put(KEY, DECLARED).url
    ours_get = a_presigner(signed_at(theirs_get), endpoint, token).get(KEY, "art_1", "text/markdown").url

    assert (query_of(ours_put), ours_put.split("?")[0]) == (query_of(theirs_put), theirs_put.split("?")[0])
    assert (query_of(ours_get), ours_get.split("?")[0]) == (query_of(theirs_get), theirs_get.split("?")[0])


def test_a_put_is_signed_for_these_bytes_once_within_a_quarter_of_an_hour() -> None:
    put = a_presigner(NOON).put(KEY, DECLARED)

    assert put.headers == {
        "content-length": "8",
        "if-none-match": "*",
        "x-amz-checksum-sha256": base64.b64encode(hashlib.sha256(CONTENT).digest()).decode(),
    }
    assert query_of(put.url)["X-Amz-SignedHeaders"] == "content-length;host;if-none-match;x-amz-checksum-sha256"
    assert query_of(put.url)["X-Amz-Expires"] == "900"
    assert put.expires == NOON + timedelta(minutes=15)


def test_a_get_is_signed_for_five_minutes_as_an_attachment_of_its_type() -> None:
    get = a_presigner(NOON).get(KEY, "art_0190f1f4", "text/markdown; charset=utf-8")
    query = query_of(get.url)

    assert query["X-Amz-Expires"] == "300"
    assert get.expires == NOON + timedelta(minutes=5)
    assert query["response-content-disposition"] == 'attachment; filename="art_0190f1f4.md"'
    assert query["response-content-type"] == "text/markdown; charset=utf-8"


def test_the_port_that_a_scheme_implies_is_not_signed_since_no_client_names_it() -> None:
    signed = a_presigner(NOON, "https://s3.example.org:443").put(KEY, DECLARED).url

    assert signed == a_presigner(NOON, "https://s3.example.org").put(KEY, DECLARED).url


@pytest.mark.parametrize("hostile", hostile_names())
def test_no_name_and_no_type_gets_more_into_a_header_than_a_file_name_and_a_type(hostile: str) -> None:
    for name, content_type in ((hostile, "text/plain"), ("art_1", hostile), ("art_1", f"text/{hostile}")):
        query = query_of(a_presigner(NOON).get(KEY, name, content_type).url)

        assert re.fullmatch(
            r'attachment; filename="[A-Za-z0-9_-]{1,128}(\.[a-z0-9]{1,12})?"', query["response-content-disposition"]
        )
        assert re.fullmatch(r"[\x21-\x7e]+/[\x21-\x7e]+", query["response-content-type"])


def test_neither_key_nor_address_is_shown_where_an_object_is() -> None:
    presigner = a_presigner(NOON, token="role/token")
    put, get = presigner.put(KEY, DECLARED), presigner.get(KEY, "art_1", "text/plain")

    shown = f"{presigner.account()} {put} {get} {put!r} {get!r}"

    assert SECRET not in shown
    assert "role/token" not in shown
    assert "X-Amz-Signature" not in shown
