"""The console: who may see it, then the page or the change that was asked for.

The order of the checks: the host that the browser names, then the session, then for a change the form's token, then the
route. ``routes.py`` is the table of pages.
"""

import json
import logging
from urllib.parse import parse_qsl

from kyanite.engine.api import EngineError
from kyanite.model.accounts import Account
from kyanite.services.console import hosts, rendering, sessions, sign_in
from kyanite.services.console.attempts import Attempts
from kyanite.services.console.client import BadInput, ServiceError
from kyanite.services.console.environment import ConsoleEnvironment
from kyanite.services.console.rendering import Templates
from kyanite.services.console.route import Route
from kyanite.services.console.routes import ROUTES
from kyanite.services.console.sessions import Kind, Session
from kyanite.services.console.visit import NotFound, Visit
from kyanite.wire import uri
from kyanite.wire.http import Request, Response
from kyanite.wire.malformed import Malformed

_FORM_BYTES_MAX = 8 * 1024 * 1024
"""The largest form has an entity of 1 MiB, which percent-encoding makes longer."""
_FORM_FIELDS_MAX = 1000
_SAFE = ("GET", "HEAD")
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
_STATIC = "/static/"
_OPERATION = "Console"
_log = logging.getLogger("kyanite.console")


class Console:
    def __init__(self, environment: ConsoleEnvironment) -> None:
        self._environment = environment
        self._templates = Templates()
        self._attempts = Attempts()

    async def __call__(self, request: Request) -> Response:
        request.operation = _OPERATION
        request.request_id = self._environment.fresh_guid()
        host = hosts.host_name(request.headers.get("host", ""))
        is_on_loopback = not self._environment.needs_sign_in
        if not hosts.is_allowed(host, self._environment.hosts, is_on_loopback=is_on_loopback):
            return _plain(
                421,
                "This console does not answer to that host name. Use its address, or state the name with "
                "--console-names.",
            )
        if request.path.startswith(_STATIC):
            found = rendering.static_file(request.path.removeprefix(_STATIC))
            return found or _plain(404, "There is no such file.")
        session = self._session_of(request)
        is_new = session is None
        if session is None:
            session = self._new_session()
        must_sign_in = self._must_sign_in(request, host)
        try:
            query = dict(uri.decode_query(request.query).pairs)
        except Malformed:
            return _plain(400, "The address is not well formed.")
        is_signed_in = session.kind is not Kind.OPEN
        visit = Visit(self._environment, self._templates, request, query, session, is_signed_in)
        response = await self._answer(visit, is_new=is_new, must_sign_in=must_sign_in and not is_signed_in)
        if is_new and request.method in _SAFE:
            response.headers.append(sign_in.cookie_of(request, session))
        return response

    # Admission

    def _must_sign_in(self, request: Request, host: str) -> bool:
        """On loopback nobody must, unless a proxy has passed the request on from elsewhere."""
        if self._environment.needs_sign_in or host in self._environment.proxied:
            return True
        return any(name in request.headers for name in _FORWARDED)

    def _session_of(self, request: Request) -> Session | None:
        cookie = sign_in.cookie_in(request)
        if cookie is None:
            return None
        account: Account | None = self._environment.accounts.get(sessions.account_of(cookie))
        return sessions.load(self._environment.secret, cookie, account, self._environment.clock())

    def _new_session(self) -> Session:
        environment = self._environment
        return sessions.begin(
            environment.secret, "", Kind.OPEN, environment.fresh_guid(), environment.clock()
        )

    # Pages

    async def _answer(self, visit: Visit, *, is_new: bool, must_sign_in: bool) -> Response:
        try:
            return await self._routed(visit, is_new=is_new, must_sign_in=must_sign_in)
        except NotFound:
            return _failure(visit, 404, "There is no such page", "Or none that you may see.")
        except BadInput as problem:
            return _failure(visit, 400, "That cannot be done", str(problem))
        except ServiceError as refusal:
            title = f"{refusal.status} {refusal.code}".strip()
            return _failure(visit, refusal.status, title, refusal.message, refusal.request_id)
        except EngineError:
            _log.exception("the store failed")
            return _failure(visit, 503, "The store does not answer", "Please try again.")

    async def _routed(self, visit: Visit, *, is_new: bool, must_sign_in: bool) -> Response:
        request = visit.request
        route = ROUTES.get(("GET" if request.method == "HEAD" else request.method, request.path))
        if route is None:
            route = sign_in.ROUTES.get((request.method, request.path))
            if route is None:
                raise NotFound
        elif must_sign_in:
            if request.method not in _SAFE:
                return _failure(visit, 403, "You are not signed in", "The session is over.")
            return visit.go_to("/sign-in")
        if request.method not in _SAFE:
            visit = await self._with_form(visit, route, is_new=is_new)
        if route.is_sign_in:
            return await sign_in.answer(visit, route, self._attempts)
        return await route.handle(visit)

    async def _with_form(self, visit: Visit, route: Route, *, is_new: bool) -> Visit:
        """Check that the change was asked for by a page of this console, in this session."""
        request = visit.request
        form: dict[str, str] = {}
        if not route.is_upload:
            body = await request.body.read_all(_FORM_BYTES_MAX)
            if body is None:
                raise BadInput("The form is too large.")
            try:
                text = body.decode("utf-8")
                form = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_FORM_FIELDS_MAX))
            except (ValueError, UnicodeError):
                raise BadInput("The form is not well formed.") from None
        given = request.headers.get("x-csrf-token") or form.get("csrf", "")
        secret = self._environment.secret
        is_ours = (
            not is_new and _is_same_site(request) and sessions.is_form_token(secret, visit.session, given)
        )
        if not is_ours:
            raise BadInput("The form does not belong to this session, or is too old. Load the page again.")
        return Visit(
            visit.environment, visit.templates, request, visit.query, visit.session, visit.is_signed_in, form
        )


def _is_same_site(request: Request) -> bool:
    """As far as the browser tells: the token decides as well."""
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2].lower() != request.headers.get("host", "").lower():
        return False
    return request.headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")


def _failure(visit: Visit, status: int, title: str, message: str, request_id: str = "") -> Response:
    """In the form that the caller understands: a page, or what the script shows."""
    if "application/json" in visit.request.headers.get("accept", ""):
        text = json.dumps({"error": title, "message": message, "request_id": request_id})
        headers = [("Content-Type", "application/json"), *rendering.SECURITY_HEADERS]
        return Response(status, headers, text.encode())
    values = {"title": title, "message": message, "request_id": request_id}
    return visit.failed_page(status, "failure.html", **values)


def _plain(status: int, sentence: str) -> Response:
    headers = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Security-Policy", rendering.POLICY),
        *rendering.SECURITY_HEADERS,
    ]
    return Response(status, headers, f"{sentence}\n".encode())
