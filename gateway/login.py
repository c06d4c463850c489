"""The login page: exchanges the token for a session cookie."""

from html import escape
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from gateway.access_control import COOKIE, LOGIN, address_of, throttled
from gateway.access_tokens import SESSION_FOR, AccessKeys, LoginThrottle

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
_MESSAGES = {
    "en": ("Sign in", "Access token", "Sign in", "Wrong token.", "`mindbus up` showed it once; it is stored in"),
    "ru": ("Вход", "Токен доступа", "Войти", "Неверный токен.", "`mindbus up` показал его один раз; он сохранён в"),
}
_TOKEN_FILE = "gateway_token"


def login_routes(keys: AccessKeys, throttle: LoginThrottle) -> APIRouter:
    """Routes of the login page and of log-out."""
    router = APIRouter(include_in_schema=False)

    @router.get(LOGIN)
    async def page(request: Request, next: str = "/") -> Response:  # the name in the query
        return RedirectResponse(_safe(next), 303) if keys.is_open else _page(request, _safe(next))

    @router.post(LOGIN)
    async def enter(request: Request) -> Response:
        address = address_of(request)
        if wait_s := throttle.wait_s(address):
            return throttled(wait_s)
        form = parse_qs((await request.body()).decode("utf-8", "replace"))
        target = _safe(form.get("next", ["/"])[0])
        if not keys.is_token(form.get("token", [""])[0].strip()):
            throttle.count(address)
            return _page(request, target, is_wrong=True)
        entered = RedirectResponse(target, 303)
        is_secure = request.url.scheme == "https"
        lasts_s = int(SESSION_FOR.total_seconds())
        entered.set_cookie(COOKIE, keys.session(), lasts_s, httponly=True, samesite="strict", secure=is_secure)
        return entered

    @router.post("/logout")
    async def leave() -> Response:
        left = RedirectResponse(LOGIN, 303)
        left.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return left

    return router


def _safe(target: str) -> str:
    """The target path if it is one of this site, else the start page."""
    is_own = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if is_own and not target.startswith(LOGIN) else "/"


def _page(request: Request, target: str, *, is_wrong: bool = False) -> Response:
    language = "ru" if request.headers.get("accept-language", "").lower().startswith("ru") else "en"
    title, label, button, wrong, where = _MESSAGES[language]
    page = _PAGE.format(
        language=language,
        title=title,
        label=label,
        button=button,
        wrong=f'<p role="alert">{wrong}</p>' if is_wrong else "",
        where=escape(f"{where} {_TOKEN_FILE}.").replace("`mindbus up`", "<code>mindbus up</code>"),
        target=escape(target),
    )
    headers = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-store"}
    return HTMLResponse(page, 401 if is_wrong else 200, headers)


_PAGE = """<!doctype html>
<html lang="{language}"><head><meta charset="utf-8"><title>{title} · MindBus</title>
<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
<style>
:root {{ color-scheme: light dark; --bg: #f5f6f8; --panel: #fff; --line: #c9ced8; --text: #171a21; --dim: #5b6476;
  --accent: #4858df; --error: #b32531 }}
@media (prefers-color-scheme: dark) {{ :root {{ --bg: #0d0f13; --panel: #13161b; --line: #363d4a; --text: #e8eaef;
  --dim: #8b94a5; --accent: #5263e6; --error: #f2707a }} }}
body {{ margin: 0; min-height: 100dvh; display: grid; place-items: center; background: var(--bg); color: var(--text);
  font: 14px/22px Inter, Roboto, system-ui, sans-serif }}
form {{ box-sizing: border-box; width: min(360px, calc(100vw - 32px)); padding: 24px; background: var(--panel);
  border: 1px solid var(--line); border-radius: 10px }}
h1 {{ margin: 0 0 16px; font-size: 15px; line-height: 24px; font-weight: 600 }}
label {{ display: block; font-size: 12px; color: var(--dim) }}
input {{ box-sizing: border-box; width: 100%; height: 40px; margin: 4px 0 12px; padding: 0 12px; font-size: 16px;
  color: inherit; background: var(--bg); border: 1px solid var(--line); border-radius: 6px }}
button {{ width: 100%; height: 40px; font: inherit; font-weight: 500; color: #fff; background: var(--accent); border: 0;
  border-radius: 6px; cursor: pointer }}
:focus-visible {{ outline: 2px solid var(--accent); outline-offset: 2px }}
p {{ margin: 12px 0 0; font-size: 12px; line-height: 18px; color: var(--dim) }}
[role=alert] {{ margin: 0 0 12px; color: var(--error) }}
</style></head>
<body><form method="post" action="/login"><h1>MindBus</h1>{wrong}
<label for="token">{label}</label>
<input id="token" name="token" type="password" autocomplete="current-password" autofocus required>
<input name="next" type="hidden" value="{target}"><button>{button}</button>
<p>{where}</p></form></body></html>
"""
