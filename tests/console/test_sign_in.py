"""Which proofs open the console: keys but well-known ones, and tokens of those who manage the account."""

import base64
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import pytest

from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.roles import Caller, Grant, role_of
from kyanite.services.console.attempts import PER_CLIENT, WINDOW_SECONDS
from kyanite.services.console.service import Console
from kyanite.values import TICKS_PER_SECOND, Instant
from kyanite.wire.http import Request, Response
from tests.console.consoles import console_of
from tests.services.harness import ACCOUNT, OTHER, BytesBody, Harness


class Roles:
    """Takes every token but one for that of a caller who has this role."""

    challenge = "Bearer"
    assigned_claims: Collection[str] = ()

    def __init__(self, role: str, account: str = "", container: str = "") -> None:
        found = role_of(role)
        assert found is not None
        self._role, self._account, self._container = found, account, container

    async def caller(self, token: str, account: str, now: Instant) -> Caller:
        if token == "forged":
            raise Refused(Reason.AUTHENTICATION_FAILED)
        return Caller("issuer", "someone", "someone", "tenant")

    def grants(self, caller: Caller, account: str, service: str) -> tuple[Grant, ...]:
        if self._account not in ("", account):
            return ()
        return (Grant(self._role.actions, self._container),)

    def fresh_secret(self) -> bytes:
        raise AssertionError

    def delegation_secret(self, account: str, stored: bytes) -> bytes:
        raise AssertionError


class Client:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._cookie = ""

    async def request(
        self, method: str, path: str, form: dict[str, str] | None = None, *, secure: bool = False
    ) -> Response:
        headers = {"host": "127.0.0.1", "cookie": self._cookie}
        body = BytesBody(urlencode(form or {}).encode())
        request = Request(
            method, path, "account=" + ACCOUNT.name, headers, [], body, "192.0.2.1", secure, 10010
        )
        response = await self._console(request)
        for name, value in response.headers:
            if name == "Set-Cookie":
                self._cookie = value.partition(";")[0]
        return response

    async def sign_in(self, **form: str) -> int:
        page = await self.request("GET", "/sign-in")
        assert isinstance(page.body, bytes)
        token = page.body.decode().split('name="csrf" value="')[1].partition('"')[0]
        return (await self.request("POST", "/sign-in", {"csrf": token, "name": ACCOUNT.name, **form})).status


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


KEY = base64.b64encode(ACCOUNT.keys[0]).decode()


async def test_a_key_that_everyone_knows_opens_nothing(harness: Harness) -> None:
    console = console_of(harness, needs_sign_in=True, well_known_keys=frozenset(ACCOUNT.keys))
    assert await Client(console).sign_in(key=KEY) == 403
    assert await Client(console_of(harness, needs_sign_in=True)).sign_in(key=KEY) == 303


async def test_a_key_opens_nothing_where_keys_do_not(harness: Harness) -> None:
    accounts = dict(harness.environment.accounts)
    console = console_of(harness, needs_sign_in=True)
    client = Client(console)
    assert await client.sign_in(key=KEY) == 303
    assert (await client.request("GET", "/containers")).status == 200
    assert isinstance(harness.environment.accounts, dict)
    account = accounts[ACCOUNT.name]
    settings = type(account.settings)(shared_key_access=False)
    harness.environment.accounts[ACCOUNT.name] = replace(account, settings=settings)
    assert (await client.request("GET", "/containers")).status == 303
    assert await Client(console).sign_in(key=KEY) == 403


@pytest.mark.parametrize(
    ("roles", "token", "status"),
    [
        (Roles("Owner"), "good", 303),
        (Roles("Contributor"), "good", 303),
        (Roles("Storage Account Contributor"), "good", 303),
        (Roles("Owner", ACCOUNT.name), "good", 303),
        (Roles("Owner", OTHER.name), "good", 403),
        (Roles("Owner", container="box"), "good", 403),
        (Roles("Owner"), "forged", 403),
        (Roles("Reader"), "good", 403),
        (Roles("Storage Blob Data Owner"), "good", 403),
        (None, "good", 403),
    ],
)
async def test_tokens(harness: Harness, roles: Roles | None, token: str, status: int) -> None:
    client = Client(console_of(harness, needs_sign_in=True, identity=roles))
    assert await client.sign_in(token=token) == status
    assert (await client.request("GET", "/containers")).status == (200 if status == 303 else 303)


async def test_who_fails_too_often_has_to_wait(harness: Harness) -> None:
    client = Client(console_of(harness, needs_sign_in=True))
    for _ in range(PER_CLIENT):
        assert await client.sign_in(key="AAAA") == 403
    assert await client.sign_in(key=KEY) == 429
    harness.clock.now = Instant(harness.clock.now + WINDOW_SECONDS * TICKS_PER_SECOND)
    assert await client.sign_in(key=KEY) == 303


async def test_over_tls_the_cookie_is_for_tls_only(harness: Harness) -> None:
    client = Client(console_of(harness, needs_sign_in=True))
    for secure in (False, True):
        page = await client.request("GET", "/sign-in", secure=secure)
        cookies = [value for name, value in page.headers if name == "Set-Cookie"]
        assert ["; Secure" in cookie for cookie in cookies] == [secure]
        client = Client(console_of(harness, needs_sign_in=True))
