"""Sign-in by an OpenID provider: authorization code with PKCE; who comes back has an account, or is turned away."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from typing import Any, Final

from cachetools import LRUCache
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from bus_schema.identities import is_user_id
from bus_schema.replies import Code
from config.settings import FleetSettings
from gateway.access_control import OIDC_BACK, OIDC_START
from gateway.access_tokens import AccessKeys
from gateway.login import own_path, set_session
from gateway.problems import problem_response
from mindbus.accounts import Account
from mindbus.errors import MindBusError
from mindbus.logs import logger

_COOKIE: Final = "mindbus_signing_in"
_WITHIN: Final = timedelta(minutes=10)
_ANSWER_WITHIN_S: Final = 10.0
_MAX_PENDING: Final = 10_000
_ALGORITHMS: Final = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"]
_NOT_SIGNED_IN: Final = (
    "the provider has signed nobody in whom MindBus knows: ask an operator for `mindbus users add NAME --role user`"
)


class NotSignedIn(MindBusError, code=Code.UNAUTHORIZED):
    """The provider has not signed anybody in; the gateway's log says why."""


@dataclass(frozen=True, slots=True)
class SignIn:
    """A sign-in under way: what only this browser and the provider know, and where it leads."""

    verifier: str
    nonce: str
    target: str
    redirect_uri: str
    ends_at: datetime


class OpenIdProvider:
    """The provider of the settings; authlib is imported when the first person signs in."""

    def __init__(self, settings: FleetSettings, clock: Callable[[], datetime]) -> None:
        self._settings, self._clock = settings, clock
        self._metadata: dict[str, Any] = {}

    def new_sign_in(self, target: str, redirect_uri: str) -> SignIn:
        ends_at = self._clock() + _WITHIN
        return SignIn(secrets.token_urlsafe(48), secrets.token_urlsafe(24), target, redirect_uri, ends_at)

    async def address(self, sign_in: SignIn, state: str) -> str:
        """The address of the provider to which the browser goes. Raises NotSignedIn."""
        async with self._client(sign_in) as client:
            endpoint = (await self._about(client))["authorization_endpoint"]
            url, _ = client.create_authorization_url(
                endpoint, state=state, nonce=sign_in.nonce, code_verifier=sign_in.verifier
            )
        return str(url)

    async def name(self, sign_in: SignIn, code: str) -> str:
        """The name by which the provider knows whoever has come back with a code. Raises NotSignedIn."""
        from authlib.common.errors import AuthlibBaseError
        from httpx import HTTPError
        from joserfc.errors import JoseError

        try:
            async with self._client(sign_in) as client:
                about = await self._about(client)
                token = await client.fetch_token(about["token_endpoint"], code=code, code_verifier=sign_in.verifier)
                keys = (await client.request("GET", about["jwks_uri"], withhold_token=True)).raise_for_status().json()
            claims = self._claims(token["id_token"], keys, sign_in.nonce)
        except (AuthlibBaseError, HTTPError, JoseError, KeyError, ValueError) as error:
            raise NotSignedIn(f"{type(error).__name__}: {error}") from error
        name = claims.get(self._settings.oidc_claim)
        if not is_user_id(name) or (self._settings.oidc_claim == "email" and claims.get("email_verified") is not True):
            raise NotSignedIn(f"the claim {self._settings.oidc_claim} is not a verified user name")
        return str(name)

    def _claims(self, id_token: str, keys: Any, nonce: str) -> dict[str, Any]:
        """Claims of a token that the provider has signed, for this client and this sign-in."""
        from joserfc import jwt
        from joserfc.jwk import KeySet

        decoded = jwt.decode(id_token, KeySet.import_key_set(keys), algorithms=_ALGORITHMS)
        client_id = str(self._settings.oidc_client_id)
        registry = jwt.JWTClaimsRegistry(
            now=int(self._clock().timestamp()),
            leeway=60,
            iss={"essential": True, "value": self._metadata["issuer"]},
            aud={"essential": True, "value": client_id},
            exp={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        registry.validate(decoded.claims)
        if decoded.claims.get("azp", client_id) != client_id:
            raise ValueError("the token is for another client")
        return dict(decoded.claims)

    def _client(self, sign_in: SignIn) -> Any:
        from authlib.integrations.httpx_client import AsyncOAuth2Client

        settings = self._settings
        return AsyncOAuth2Client(
            settings.oidc_client_id,
            settings.oidc_client_secret,
            scope=settings.oidc_scope,
            redirect_uri=sign_in.redirect_uri,
            code_challenge_method="S256",
            token_endpoint_auth_method="client_secret_basic" if settings.oidc_client_secret else "none",
            timeout=_ANSWER_WITHIN_S,
        )

    async def _about(self, client: Any) -> dict[str, Any]:
        if not self._metadata:
            from httpx import HTTPError

            issuer = str(self._settings.oidc_issuer)
            where = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
            try:
                found = (await client.request("GET", where, withhold_token=True)).raise_for_status().json()
            except (HTTPError, ValueError) as error:
                raise NotSignedIn(f"{where} does not answer: {error}") from error
            if found.get("issuer", "").rstrip("/") != issuer.rstrip("/"):
                raise NotSignedIn(f"{where} is about another issuer")
            self._metadata = found
        return self._metadata


def openid_routes(settings: FleetSettings, keys: AccessKeys, clock: Callable[[], datetime]) -> APIRouter:
    """The way to the provider and back; each sign-in belongs to one browser, by a cookie, and is used once."""
    router = APIRouter(include_in_schema=False)
    provider, pending = OpenIdProvider(settings, clock), LRUCache[str, SignIn](_MAX_PENDING)

    @router.get(OIDC_START)
    async def start(request: Request, next: str = "/") -> Response:
        sign_in = provider.new_sign_in(own_path(next), str(request.base_url).rstrip("/") + OIDC_BACK)
        state = secrets.token_urlsafe(24)
        response = RedirectResponse(await provider.address(sign_in, state), 303)
        pending[state] = sign_in
        is_secure = request.url.scheme == "https"
        lasts_s = int(_WITHIN.total_seconds())
        response.set_cookie(_COOKIE, state, lasts_s, path=OIDC_BACK, httponly=True, samesite="lax", secure=is_secure)
        return response

    @router.get(OIDC_BACK)
    async def back(request: Request, code: str = "", state: str = "") -> Response:
        sign_in = pending.pop(state, None)
        is_same_browser = secrets.compare_digest(request.cookies.get(_COOKIE, "").encode(), state.encode())
        if sign_in is None or not code or not is_same_browser or clock() > sign_in.ends_at:
            return _turned_away("no sign-in of this browser is under way")
        try:
            account = keys.of_identity(f"user.{await provider.name(sign_in, code)}")
        except NotSignedIn as error:
            return _turned_away(str(error))
        if account is None or not account.can_write:
            return _turned_away("no account of this name")
        return _let_in(request, sign_in.target, keys, account)

    return router


def _let_in(request: Request, target: str, keys: AccessKeys, account: Account) -> Response:
    # A page of our own: with a redirect that began at the provider browsers send no strict cookie.
    response = HTMLResponse(f'<meta http-equiv="refresh" content="0;url={escape(target)}">')
    set_session(request, response, keys, account)
    response.delete_cookie(_COOKIE, path=OIDC_BACK)
    return response


def _turned_away(reason: str) -> Response:
    logger().warning("not signed in", reason=reason)
    return problem_response(Code.UNAUTHORIZED, _NOT_SIGNED_IN, 401)
