"""Clients of endpoints that speak OpenAI's API, for models and embedders alike."""

from functools import cache
from ssl import SSLContext

import openai
from httpx2 import create_ssl_context


def open_client(
    base_url: str, api_key: str | None, timeout: float | openai.Timeout, retries: int
) -> openai.AsyncOpenAI:
    """A client, to be closed; `timeout` in seconds. It retries by itself with backoff and Retry-After."""
    return openai.AsyncOpenAI(
        base_url=base_url,
        # The client insists on a key, which a local endpoint does not need.
        api_key=api_key or "none",
        timeout=timeout,
        max_retries=retries,
        http_client=openai.DefaultAsyncHttpxClient(verify=_certificates()),
    )


@cache
def _certificates() -> SSLContext:
    """Those that the client takes by itself, read once a process: that takes some 40 ms."""
    return create_ssl_context()
