"""Signing in and out: an account and one of its keys, or a bearer token of somebody who manages the account.

Azure lets the roles below read the keys of an account, so whoever has one of them is its owner here as well. Roles for
data alone do not open the console, which shows everything.
"""

import base64
import binascii
import hmac
from collections.abc import Collection
from http.cookies import CookieError, SimpleCookie

from kyanite.model.accounts import Account
from kyanite.rules.refusals import Refused
from kyanite.services.console import sessions
from kyanite.services.console.attempts import Attempts
from kyanite.services.console.client import BadInput
from kyanite.services.console.route import Route, table
from kyanite.services.console.sessions import Kind, Session
from kyanite.services.console.visit import Visit
from kyanite.wire.http import Request, Response

_TOKEN_SECONDS = 3600
"""How long a session lasts that a token has begun."""
_MANAGES = frozenset(("containers/*", "queues/*", "tables/*", "shares/*"))
"""Actions of Owner, Contributor and Storage Account Contributor, and of no role for data."""


def cookie_name(request: Request) -> str:
    """With the port, since browsers send cookies of one host to all its ports."""
    return f"kyanite-{request.local_port}"


def cookie_in(request: Request) -> str | None:
    try:
        found = SimpleCookie(request.headers.get("cookie", "")).get(cookie_name(request))
    except CookieError:
        return None
    return None if found is None else found.value


def cookie_of(request: Request, session: Session) -> tuple[str, str]:
    secure = "; Secure" if request.secure else ""
    name = cookie_name(request)
    return "Set-Cookie", f"{name}={session.cookie}; Path=/; HttpOnly; SameSite=Strict{secure}"


async def show(visit: Visit) -> Response:
    return _page(visit)


def _page(visit: Visit, problem: str = "", status: int = 200) -> Response:
    has_tokens = visit.environment.signs_in_by_token
    return visit.failed_page(status, "sign_in.html", problem=problem, has_tokens=has_tokens)


async def answer(visit: Visit, route: Route, attempts: Attempts) -> Response:
    """Of the routes below."""
    if route.handle is not sign_in:
        return await route.handle(visit)
    peer, now = visit.request.peer, visit.environment.clock()
    if not attempts.may_try(peer, now):
        return _page(visit, "There were too many attempts. Please wait some minutes.", 429)
    session = await _session_for(visit)
    if session is None:
        attempts.failed(peer)
        return _page(visit, "There is no such account, or the key or token is not right.", 403)
    response = visit.go_to("/")
    response.headers.append(cookie_of(visit.request, session))
    return response


async def sign_in(_: Visit) -> Response:
    raise AssertionError("answered above")


async def sign_out(visit: Visit) -> Response:
    response = visit.go_to("/sign-in")
    name = cookie_name(visit.request)
    response.headers.append(("Set-Cookie", f"{name}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"))
    return response


async def _session_for(visit: Visit) -> Session | None:
    environment = visit.environment
    account = environment.accounts.get(visit.get("name").strip())
    token, key = visit.get("token").strip(), visit.get("key").strip()
    if not token and not key:
        raise BadInput("A key or a token is needed.")
    if account is None:
        return None
    nonce, now = environment.fresh_guid(), environment.clock()
    if token:
        if not await _manages(visit, account, token):
            return None
        return sessions.begin(
            environment.secret, account.name, Kind.TOKEN, nonce, now, seconds=_TOKEN_SECONDS
        )
    proof = _key_of(account, key, environment.well_known_keys)
    if proof is None:
        return None
    return sessions.begin(environment.secret, account.name, Kind.KEY, nonce, now, key=proof)


def _key_of(account: Account, text: str, refused: Collection[bytes]) -> bytes | None:
    """The key of the account that the text is, unless the account may not be opened by keys."""
    try:
        given = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    if not account.settings.shared_key_access or given in refused:
        return None
    fitting = [key for key in account.keys if hmac.compare_digest(key, given)]
    return fitting[0] if fitting else None


async def _manages(visit: Visit, account: Account, token: str) -> bool:
    identity = visit.environment.identity
    if identity is None or not visit.environment.signs_in_by_token:
        return False
    try:
        caller = await identity.caller(token, account.name, visit.environment.clock())
    except Refused:
        return False
    grants = identity.grants(caller, account.name, "blob")
    return any(grant.actions >= _MANAGES and not grant.container for grant in grants)


ROUTES = table(
    Route("GET", "/sign-in", show, is_sign_in=True),
    Route("POST", "/sign-in", sign_in, is_sign_in=True),
    Route("POST", "/sign-out", sign_out, is_sign_in=True),
)
