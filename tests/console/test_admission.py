"""Who may see the console: hosts, sign-in, sessions, forms, and the headers of every answer."""

import base64
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kyanite.model.accounts import Account
from kyanite.services.console import hosts, sessions
from kyanite.services.console.attempts import IN_ALL, PER_CLIENT, WINDOW_SECONDS, Attempts
from kyanite.services.console.routes import ROUTES
from kyanite.services.console.sessions import Kind
from kyanite.values import TICKS_PER_SECOND, Instant
from tests.console.visitor import Visitor
from tests.server_process import ServerFailed, ServerProcess

KEYS = {name: base64.b64encode(name.encode() * 8).decode() for name in ("alpha", "beta")}
NOW = Instant(638_000_000_000_000_000)


@pytest.fixture(scope="module")
def protected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server whose console listens on all addresses, with two workers."""
    accounts = [part for name, key in KEYS.items() for part in ("--account", f"{name}:{key}")]
    folder = tmp_path_factory.mktemp("store")
    options = ("--console-port", "0", "--console-host", "0.0.0.0", "--console-names", "store.example")
    with ServerProcess(*options, *accounts, "--workers", "2", location=folder) as started:
        yield started


@pytest.fixture
def stranger(protected: ServerProcess) -> Visitor:
    return Visitor(protected.endpoints["console"])


# Hosts


@pytest.mark.parametrize(
    ("header", "is_on_loopback", "is_allowed"),
    [
        ("127.0.0.1:10010", True, True),
        ("localhost", True, True),
        ("LOCALHOST:10010", True, True),
        ("[::1]:10010", True, True),
        ("127.1.2.3", True, True),
        ("store.example:10010", True, True),
        ("evil.example", True, False),
        ("localhost.evil.example", True, False),
        ("127.0.0.1.evil.example", True, False),
        ("192.168.1.5", True, False),
        ("192.168.1.5:80", False, True),
        ("evil.example", False, False),
        ("", True, False),
        ("a@127.0.0.1", True, False),
        ("127.0.0.1/x", True, False),
    ],
)
def test_hosts(header: str, is_on_loopback: bool, is_allowed: bool) -> None:
    name = hosts.host_name(header)
    assert hosts.is_allowed(name, {"store.example"}, is_on_loopback=is_on_loopback) is is_allowed


def test_another_host_name_gets_nothing(server: ServerProcess) -> None:
    visitor = Visitor(server.endpoints["console"], host="rebound.example")
    for path in ("/", "/static/console.js", "/containers?account=devstoreaccount1"):
        page = visitor.request("GET", path)
        assert page.status == 421
        assert "devstoreaccount1" not in page.text


def test_a_name_of_a_service_is_the_console_on_its_port_and_the_console_on_no_other(
    server: ServerProcess,
) -> None:
    console = Visitor(server.endpoints["console"], host="devstoreaccount1.blob.localhost")
    assert console.request("GET", "/").status == 421
    blob = Visitor(server.endpoints["blob"], host="devstoreaccount1.console.localhost")
    assert "Kyanite" not in blob.request("GET", "/sign-in").text


# Headers


def test_every_answer_has_the_headers_that_browsers_obey(server: ServerProcess) -> None:
    visitor = Visitor(server.endpoints["console"])
    for path in ("/sign-in", "/nothing", "/account?account=devstoreaccount1", "/static/console.css", "/"):
        headers = visitor.request("GET", path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        if path != "/":
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy


def test_no_template_has_inline_script_or_style() -> None:
    folder = Path(sessions.__file__).parent / "templates"
    for template in folder.glob("*.html"):
        text = template.read_text()
        for forbidden in ("style=", "<style", "onclick", "onload", "javascript:", "|safe", "autoescape"):
            assert forbidden not in text, template.name
        assert text.count("<script") == text.count("<script src=")


# Forms


def test_a_form_without_its_token_changes_nothing(server: ServerProcess) -> None:
    visitor = Visitor(server.endpoints["console"])
    other = Visitor(server.endpoints["console"])
    values = {"account": "devstoreaccount1", "container": "forged"}
    for token in ("", "x", "ж", other.token()):
        page = visitor.send("/containers/create", csrf=token, **values)
        assert page.status == 400
        assert "does not belong to this session" in page.words
    assert "forged" not in visitor.get("/containers", account="devstoreaccount1").words


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_form_of_another_site_changes_nothing(server: ServerProcess, headers: dict[str, str]) -> None:
    visitor = Visitor(server.endpoints["console"])
    body = f"csrf={visitor.token()}&account=devstoreaccount1&container=forged".encode()
    assert visitor.request("POST", "/containers/create", body, headers).status == 400
    assert "forged" not in visitor.get("/containers", account="devstoreaccount1").words


def test_every_change_needs_a_token(server: ServerProcess) -> None:
    """Whatever is no GET: so a route that forgets it cannot exist."""
    visitor = Visitor(server.endpoints["console"])
    visitor.get("/")
    changes = [route for route in ROUTES.values() if route.method != "GET"]
    assert changes
    for route in changes:
        page = visitor.request(route.method, f"{route.path}?account=devstoreaccount1", b"x=1")
        assert (page.status, "does not belong" in page.words) == (400, True), route.path


def test_an_upload_without_its_token_stores_nothing(server: ServerProcess) -> None:
    visitor = Visitor(server.endpoints["console"])
    visitor.send("/containers/create", account="devstoreaccount1", container="noupload")
    path = "/blob/upload?account=devstoreaccount1&container=noupload&name=x"
    assert visitor.request("PUT", path, b"1", {"X-CSRF-Token": "x"}).status == 400
    assert "Download" not in visitor.get("/blobs", account="devstoreaccount1", container="noupload").words


# Signing in


def sign_in(visitor: Visitor, name: str, key: str) -> int:
    return visitor.send("/sign-in", name=name, key=key).status


def test_elsewhere_every_page_leads_to_the_sign_in(stranger: Visitor) -> None:
    for route in ROUTES.values():
        page = stranger.request(
            route.method, f"{route.path}?account=alpha", b"" if route.method == "GET" else b"x=1"
        )
        if route.method == "GET":
            assert (page.status, page.headers["location"]) == (303, "/sign-in"), route.path
        else:
            assert page.status in (400, 403), route.path


def test_one_who_signs_in_sees_one_account(stranger: Visitor) -> None:
    assert sign_in(stranger, "alpha", KEYS["alpha"]) == 200
    assert stranger.get("/").address == "/account?account=alpha"
    assert stranger.get("/containers", account="alpha").status == 200
    assert stranger.get("/containers", account="beta").status == 404
    assert stranger.send("/account/keys", account="beta").status == 404
    assert "beta" not in stranger.get("/containers", account="alpha").words
    # Whichever of the workers answers.
    assert {stranger.get("/account", account="alpha").status for _ in range(12)} == {200}
    before = dict(stranger.cookies)
    stranger.send("/sign-out")
    assert stranger.get("/containers", account="alpha").address == "/sign-in"
    assert KEYS["alpha"] not in str(before)


def test_the_cookie_is_for_the_server_alone(stranger: Visitor) -> None:
    body = f"csrf={stranger.token()}&name=alpha&key={KEYS['alpha'].replace('=', '%3D').replace('+', '%2B')}"
    page = stranger.request("POST", "/sign-in", body.encode())
    cookie = page.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert page.status == 303


@pytest.mark.parametrize(
    ("name", "key"),
    [("alpha", KEYS["beta"]), ("nobody", KEYS["alpha"]), ("alpha", "no base64"), ("", KEYS["alpha"])],
)
def test_a_wrong_key_opens_nothing(protected: ServerProcess, name: str, key: str) -> None:
    visitor = Visitor(protected.endpoints["console"])
    assert sign_in(visitor, name, key) in (403, 429)
    assert visitor.get("/containers", account="alpha").address == "/sign-in"


def test_a_proxy_on_this_machine_does_not_make_a_stranger_local(server: ServerProcess) -> None:
    visitor = Visitor(server.endpoints["console"])
    assert visitor.request("GET", "/containers?account=devstoreaccount1").status == 200
    for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
        page = visitor.request("GET", "/containers?account=devstoreaccount1", headers={name: "192.0.2.7"})
        assert (page.status, page.headers["location"]) == (303, "/sign-in")


def test_attempts_are_counted_for_a_while() -> None:
    attempts = Attempts()
    for _ in range(PER_CLIENT):
        assert attempts.may_try("192.0.2.1", NOW)
        attempts.failed("192.0.2.1")
    assert not attempts.may_try("192.0.2.1", NOW)
    assert attempts.may_try("192.0.2.2", NOW)
    for number in range(IN_ALL):
        attempts.failed(f"client {number}")
    assert not attempts.may_try("192.0.2.2", NOW)
    assert attempts.may_try("192.0.2.1", Instant(NOW + WINDOW_SECONDS * TICKS_PER_SECOND))


# Sessions


def test_a_session_is_signed_and_ends() -> None:
    session = sessions.begin(b"secret", "", Kind.OPEN, "nonce", NOW)
    assert sessions.load(b"secret", session.cookie, None, NOW) == session
    assert sessions.load(b"other", session.cookie, None, NOW) is None
    assert sessions.load(b"secret", session.cookie.replace(".o.", ".t."), None, NOW) is None
    assert sessions.load(b"secret", "alpha" + session.cookie, None, NOW) is None
    late = Instant(NOW + (sessions.SECONDS + 1) * TICKS_PER_SECOND)
    assert sessions.load(b"secret", session.cookie, None, late) is None
    for broken in ("", "....", "a.b.c.d.e", ".o.1e5.n.s", ".o.²." + session.signature, "x" * 9999):
        assert sessions.load(b"secret", broken, None, NOW) is None


def test_a_session_ends_with_the_key_it_began_with() -> None:
    old, new = Account("alpha", (b"old",), None), Account("alpha", (b"new",), None)  # type: ignore[arg-type]
    session = sessions.begin(b"secret", "alpha", Kind.KEY, "nonce", NOW, key=b"old")
    assert sessions.load(b"secret", session.cookie, old, NOW) == session
    assert sessions.load(b"secret", session.cookie, new, NOW) is None
    assert sessions.load(b"secret", session.cookie, None, NOW) is None


# Ports


def test_a_port_that_was_chosen_has_to_be_free() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as occupied:
        port = occupied.getsockname()[1]
        with (
            pytest.raises(ServerFailed) as failure,
            ServerProcess("--in-memory", "--console-port", str(port)),
        ):
            pass
        assert failure.value.code == 1
        assert f"Port {port} on 127.0.0.1, meant for the console, is taken" in failure.value.errors


def test_none_is_no_console(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text('[server]\nconsole_port = "none"\nin_memory = true\nworkers = 1\n')
    ports = [part for name in ("blob", "queue", "table", "file", "smb") for part in (f"--{name}-port", "0")]
    with ServerProcess("--config", str(file), *ports, defaults=False) as server:
        assert "console" not in server.endpoints
