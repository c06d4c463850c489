"""The login page: exchanges the token for a session cookie."""

import re
from functools import cache, partial
from html import escape
from importlib.resources import files
from string import Template
from urllib.parse import parse_qs, quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from gateway.access_control import COOKIE, OIDC_START, address_of, too_many_attempts
from gateway.access_tokens import LOGIN, OWNER, SESSION_FOR, AccessKeys, Throttle
from mindbus.accounts import Account

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
_MESSAGES = {
    "en": (
        *("Sign in", "Access token", "Sign in", "Wrong token, or a link that has been used."),
        "`mindbus open` signs you in; `mindbus status --show-secrets` shows the token.",
        "Sign in with your organisation's account",
    ),
    "ru": (
        *("Вход", "Токен доступа", "Войти", "Неверный токен или ссылка уже использована."),
        "Чтобы войти, наберите `mindbus open`; токен показывает `mindbus status --show-secrets`.",
        "Войти с учётной записью организации",
    ),
}


def login_routes(keys: AccessKeys, throttle: Throttle, *, has_provider: bool) -> APIRouter:
    page_of = partial(_page, has_provider=has_provider)
    router = APIRouter(include_in_schema=False)

    @router.get(LOGIN)
    async def page(request: Request, next: str = "/", ticket: str = "") -> Response:  # the names in the query
        if keys.is_open:
            return RedirectResponse(own_path(next), 303)
        if not ticket:
            return page_of(request, own_path(next))
        address = address_of(request)
        if wait_s := throttle.wait_s(address):
            return too_many_attempts(wait_s)
        if not keys.take_ticket(ticket):
            throttle.count(address)
            return page_of(request, own_path(next), is_wrong=True)
        return set_session(request, RedirectResponse(own_path(next), 303), keys, OWNER)

    @router.post(LOGIN)
    async def enter(request: Request) -> Response:
        address = address_of(request)
        if wait_s := throttle.wait_s(address):
            return too_many_attempts(wait_s)
        form = parse_qs((await request.body()).decode("utf-8", "replace"))
        target = own_path(form.get("next", ["/"])[0])
        account = keys.of_token(form.get("token", [""])[0].strip())
        if account is None or not account.can_write:
            throttle.count(address)
            return page_of(request, target, is_wrong=True)
        return set_session(request, RedirectResponse(target, 303), keys, account)

    @router.post("/logout")
    async def leave(request: Request) -> Response:
        keys.close_session(request.cookies.get(COOKIE))
        response = RedirectResponse(LOGIN, 303)
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return response

    return router


def set_session(request: Request, response: Response, keys: AccessKeys, account: Account) -> Response:
    """The response with the cookie of a new session of the account."""
    is_secure = request.url.scheme == "https"
    lasts_s = int(SESSION_FOR.total_seconds())
    secret = keys.open_session(account)
    response.set_cookie(COOKIE, secret, lasts_s, httponly=True, samesite="strict", secure=is_secure)
    return response


@cache
def _template() -> Template:
    return Template(files("gateway").joinpath("login.html").read_text(encoding="utf-8"))


def own_path(target: str) -> str:
    """The target path if it is one of this site, else the start page."""
    is_own = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if is_own and not target.startswith(LOGIN) else "/"


def _page(request: Request, target: str, *, is_wrong: bool = False, has_provider: bool) -> Response:
    language = "ru" if request.headers.get("accept-language", "").lower().startswith("ru") else "en"
    title, label, button, error, where, provider = _MESSAGES[language]
    link = f'<p><a href="{OIDC_START}?next={quote(target)}">{provider}</a></p>' if has_provider else ""
    page = _template().substitute(
        language=language,
        title=title,
        label=label,
        button=button,
        wrong=f'<p role="alert">{error}</p>' if is_wrong else "",
        provider=link,
        where=re.sub("`(.*?)`", r"<code>\1</code>", escape(where)),
        target=escape(target),
    )
    headers = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-store"}
    return HTMLResponse(page, 401 if is_wrong else 200, headers)
