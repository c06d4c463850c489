"""Clients of endpoints that speak OpenAI's API, for models and embedders alike."""

import os
from functools import cache
from ssl import SSLContext

import openai
from httpx2 import create_ssl_context

from mindbus.errors import MindBusError


class UnreadableCertificates(MindBusError):
    """The certificates that the environment names cannot be read: correct or unset SSL_CERT_FILE."""


def open_client(
    base_url: str, api_key: str | None, timeout: float | openai.Timeout, retries: int
) -> openai.AsyncOpenAI:
    """A client, to be closed; `timeout` in seconds. It retries by itself with backoff and Retry-After.

    Raises UnreadableCertificates.
    """
    return openai.AsyncOpenAI(
        base_url=base_url,
        # The client insists on a key, which a local endpoint does not need.
        api_key=api_key or "none",
        timeout=timeout,
        max_retries=retries,
        http_client=openai.DefaultAsyncHttpxClient(verify=certificates()),
    )


@cache
def certificates() -> SSLContext:
    """Those that a client takes by itself, read once a process, in some 40 ms. Raises UnreadableCertificates."""
    try:
        return create_ssl_context()
    except OSError as error:
        raise UnreadableCertificates(
            f"{UnreadableCertificates.__doc__} ({os.environ.get('SSL_CERT_FILE')}: {error})"
        ) from error
