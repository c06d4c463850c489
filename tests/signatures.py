"""Signed addresses of a store that is not there: to sign is to compute."""

from dataclasses import replace
from datetime import datetime
from urllib.parse import parse_qs, urlsplit

from storage_service.service import StorageService
from storage_service.uploads import Presigner, SigningAccount

SECRET = "hush/+hush"


def a_presigner(now: datetime, endpoint_url: str = "https://s3.example.org", token: str | None = None) -> Presigner:
    account = SigningAccount(endpoint_url, "eu-north-1", "AKEXAMPLE", SECRET, token)
    return Presigner("mindbus", "team one/данные", lambda: account, lambda: now)


def with_signatures(storage: StorageService) -> StorageService:
    """Storage that signs, wherever it keeps its files."""
    uploads = replace(storage.uploads, presigner=a_presigner(storage.clock()))
    return replace(storage, uploads=uploads)


def query_of(url: str) -> dict[str, str]:
    return {name: value for name, (value,) in parse_qs(urlsplit(url).query, strict_parsing=True).items()}
