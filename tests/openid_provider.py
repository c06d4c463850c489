"""An OpenID provider for tests: discovery, authorization at once, tokens for codes with PKCE, keys; over real HTTP."""

import asyncio
import hashlib
import secrets
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from joserfc import jwt
from joserfc.jwk import RSAKey

from mindbus.testing.wait import until

CLIENT, SECRET = "mindbus", "a secret of the client"


@dataclass
class Provider:
    """What it says of whoever signs in; `changes` replace claims of the tokens."""

    url: str = ""
    person: str = "anna"
    changes: dict[str, Any] = field(default_factory=dict)
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, parameters={"kid": "1"}))
    signing: RSAKey | None = None
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def id_token(self, asked: dict[str, str]) -> str:
        claims = {
            "iss": self.url,
            "aud": CLIENT,
            "sub": "1",
            "exp": int(time.time()) + 60,
            "iat": int(time.time()),
            "nonce": asked.get("nonce", ""),
            "preferred_username": self.person,
        }
        return jwt.encode({"alg": "RS256", "kid": "1"}, claims | self.changes, self.signing or self.key)

    def tokens(self, form: dict[str, str], authorization: str) -> Response:
        """The answer to a code: once, with its verifier, to the client with its secret."""
        asked = self.codes.pop(form.get("code", ""), None)
        login = b64decode(authorization.removeprefix("Basic ")).decode()
        proof = urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest()).rstrip(b"=").decode()
        if asked is None or proof != asked["code_challenge"] or login.partition(":")[0] != CLIENT:
            return JSONResponse({"error": "invalid_grant"}, 400)
        if asked["redirect_uri"] != form["redirect_uri"]:
            return JSONResponse({"error": "invalid_grant"}, 400)
        return JSONResponse({"access_token": "x", "token_type": "Bearer", "id_token": self.id_token(asked)})

    def app(self) -> FastAPI:
        app = FastAPI()

        @app.get("/.well-known/openid-configuration")
        async def about() -> dict[str, Any]:
            paths = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
            return {"issuer": self.url} | {name: f"{self.url}/{path}" for name, path in paths.items()}

        @app.get("/keys")
        async def keys() -> dict[str, Any]:
            return {"keys": [self.key.as_dict(private=False)]}

        @app.get("/authorize")
        async def authorize(request: Request) -> Response:
            asked = dict(request.query_params)
            assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
            code = secrets.token_urlsafe(8)
            self.codes[code] = asked
            return RedirectResponse(f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}")

        @app.post("/token")
        async def token(request: Request) -> Response:
            form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
            return self.tokens(form, request.headers.get("authorization", ""))

        return app


@asynccontextmanager
async def running_provider() -> AsyncIterator[Provider]:
    provider = Provider()
    server = uvicorn.Server(uvicorn.Config(provider.app(), port=0, log_config=None))
    serving = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    provider.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    try:
        yield provider
    finally:
        server.should_exit = True
        await serving
