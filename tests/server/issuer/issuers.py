"""An issuer for tests, and requests to its endpoints without a socket."""

import asyncio
import json
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any
from urllib.parse import urlencode

from cryptography.hazmat.primitives.asymmetric import rsa

from kyanite.server.guids import FreshGuids
from kyanite.server.issuer.clients import DEVELOPMENT_CLIENT, DEVELOPMENT_TENANT, Client, Clients
from kyanite.server.issuer.config import DEFAULT_TOKEN_SECONDS
from kyanite.server.issuer.endpoints import Endpoints
from kyanite.server.issuer.issuer import Issuer
from kyanite.server.issuer.signing_key import SigningKey, signing_key
from kyanite.values import Instant, instant_from_unix_seconds, later
from kyanite.wire.http import Request, Response

TENANT = DEVELOPMENT_TENANT
OTHER_TENANT = "99999999-9999-4999-8999-999999999999"
BASE = "https://127.0.0.1:10020"
NOW = 1_800_000_000
CLIENT_ID = DEVELOPMENT_CLIENT.id
SECRET = DEVELOPMENT_CLIENT.secrets[0]
STORAGE = "https://storage.azure.com"
HOST = {"host": "localhost:10020"}


@cache
def key() -> SigningKey:
    return signing_key(rsa.generate_private_key(public_exponent=65537, key_size=2048))


@cache
def other_key() -> SigningKey:
    return signing_key(rsa.generate_private_key(public_exponent=65537, key_size=2048))


def issuer(
    clients: Iterable[Client] = (DEVELOPMENT_CLIENT,),
    *,
    now: Callable[[], int] = lambda: NOW,
    moved_seconds: int = 0,
    token_seconds: int = DEFAULT_TOKEN_SECONDS,
) -> Issuer:
    def clock() -> Instant:
        return instant_from_unix_seconds(now())

    return Issuer(
        BASE,
        (TENANT, OTHER_TENANT),
        key(),
        Clients(clients),
        clock=lambda: later(clock(), moved_seconds),
        wall_clock=clock,
        token_seconds=token_seconds,
    )


class WholeBody:
    """The body of a request that has arrived."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.length: int | None = len(content)

    async def read(self) -> bytes:
        content, self._content = self._content, b""
        return content

    async def read_all(self, limit: int) -> bytes | None:
        return self._content if len(self._content) <= limit else None


def request(
    method: str, target: str, headers: dict[str, str], body: bytes = b"", *, secure: bool = True
) -> Request:
    path, _, query = target.partition("?")
    return Request(method, path, query, headers, [], WholeBody(body), "127.0.0.1", secure, 10020)


def fields_of(response: Response) -> Any:
    assert isinstance(response.body, bytes)
    return json.loads(response.body)


def answer_to(
    of: Issuer,
    method: str,
    target: str,
    headers: dict[str, str] | None = None,
    body: bytes = b"",
) -> Response:
    """What the TLS port answers."""

    async def answer() -> Response:
        return await Endpoints(of, FreshGuids())(request(method, target, {**HOST, **(headers or {})}, body))

    return asyncio.run(answer())


def send_form(
    of: Issuer,
    form: dict[str, str],
    headers: dict[str, str] | None = None,
    path: str = f"/{TENANT}/oauth2/v2.0/token",
) -> Response:
    headers = {"content-type": "application/x-www-form-urlencoded", **(headers or {})}
    return answer_to(of, "POST", path, headers, urlencode(form).encode())


def with_secret(**changes: str | None) -> dict[str, str]:
    """The form of a good request, with changes; None leaves a parameter out."""
    form: dict[str, str | None] = {
        "grant_type": "client_credentials",
        "client_id": CLIENT_ID,
        "client_secret": SECRET,
        "scope": f"{STORAGE}/.default",
        **changes,
    }
    return {name: value for name, value in form.items() if value is not None}
