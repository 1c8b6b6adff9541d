"""The command line: what is refused, with which sentence and exit code. Nothing here gets as far as serving."""

import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kyanite.model.store_format import FORMAT
from kyanite.server import cli as command_line

KEY = "a2V5"
CASES = [
    ("no such option", ["--nonsense"], "No such option"),
    ("a word too many", ["words"], "unexpected extra argument"),
    ("a port that is none", ["--blob-port", "65536"], "65536"),
    ("a port that is no number", ["--admin-port", "http"], "http"),
    ("no workers", ["--workers", "0"], "0"),
    ("an unknown service", ["--services", "blobs"], "There is no service 'blobs'"),
    ("a service to come", ["--services", "blob,dfs"], "The dfs service is not part of this version yet."),
    (
        "a port of a service that is left out",
        ["--services", "blob", "--queue-port", "0"],
        "--queue-port is for the queue service, but --services leaves it out.",
    ),
    (
        "a port of a service to come",
        ["--dfs-port", "0"],
        "--dfs-port is for the dfs service, but this version does not have it yet.",
    ),
    (
        "how SMB is to work, without SMB",
        ["--services", "file", "--smb-encryption", "required"],
        "--smb-encryption is for the smb service",
    ),
    (
        "a port of an issuer that is not there",
        ["--identity-port", "0", "--dev-identity", "any"],
        "--identity-port is for the built-in issuer, which needs --dev-identity builtin.",
    ),
    ("an unknown log format", ["--log-format", "xml"], "xml"),
    ("an unknown engine", ["--engine", "mysql://localhost/store"], "--engine names no engine"),
    ("unknown extents", ["--extents", "ftp://bucket"], "--extents names no store"),
    ("an account without a key", ["--account", "alpha"], "Account alpha needs one key or two"),
    ("a key that is not base64", ["--account", "alpha:?"], "A key of account alpha is not base64."),
    ("an account twice", ["--account", f"alpha:{KEY}", "--account", f"alpha:{KEY}"], "alpha is given twice"),
    ("the development key for all", ["--host", "0.0.0.0"], "--allow-development-key"),
    (
        "a host without an address",
        ["--host", "no.such.host.invalid", "--account", f"alpha:{KEY}"],
        "has no address",
    ),
    ("a certificate alone", ["--cert", "cert.pem"], "TLS needs both --cert and --key."),
    ("a key alone", ["--key", "key.pem"], "TLS needs both --cert and --key."),
    (
        "a certificate that is not there",
        ["--cert", "nowhere.pem", "--key", "nowhere.pem"],
        "Cannot read nowhere.pem",
    ),
    ("memory with workers", ["--in-memory", "--workers", "2"], "one worker only"),
    ("memory with a location", ["--in-memory", "--location", "x"], "takes no --location"),
    ("testing for all", ["--testing", "--host", "0.0.0.0", "--account", f"alpha:{KEY}"], "--testing"),
    ("an unknown level", ["--log-level", "loud"], "loud"),
    ("one port for two", ["--blob-port", "7", "--admin-port", "7"], "Port 7 is used twice"),
]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In a folder of its own, and with the signal handlers of the test's process put back."""
    monkeypatch.chdir(tmp_path)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["kyanite", *arguments])
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    return int(ended.value.code or 0)


@pytest.mark.parametrize(("options", "says"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_bad_options(
    options: list[str], says: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "serve", *options) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert says in err
    assert err.startswith("kyanite: ")
    assert err.count("\n") == 1


def test_a_bad_key_in_the_environment_is_not_printed(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KYANITE_ACCOUNTS", f"alpha:{KEY};beta:secret?")
    assert run(monkeypatch, "serve") == 2
    err = capfd.readouterr().err
    assert err == "kyanite: A key of account beta is not base64.\n"


def test_version_and_help(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--version") == 0
    assert capfd.readouterr().out.startswith("kyanite, version ")
    assert run(monkeypatch, "serve", "--help") == 0
    text = capfd.readouterr().out
    for option in ("--location", "--smb-port", "KYANITE_ACCOUNTS", "KYANITE_BLOB_PORT", "--stop-seconds"):
        assert option in text


def test_without_a_command(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch) == 2
    assert "Usage: kyanite" in capfd.readouterr().err


def test_a_port_in_use(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Also one whose listener would share it."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert run(monkeypatch, "serve", "--blob-port", str(port)) == 1
        sentence = (
            f"kyanite: Port {port} on 127.0.0.1, meant for the blob service, is taken by another program.\n"
        )
        assert capfd.readouterr().err == sentence


def test_an_address_of_another_machine(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "serve", "--host", "192.0.2.1", "--account", f"alpha:{KEY}") == 1
    assert capfd.readouterr().err == "kyanite: This machine has no address 192.0.2.1 to listen on.\n"


def test_a_location_that_cannot_be(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("file").write_text("not a folder")
    assert run(monkeypatch, "serve", "--location", "file/store") == 1
    assert capfd.readouterr().err == "kyanite: Cannot make the folder file/store: Not a directory.\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "kyanite store, format 999\n",
            f"has format 999, and this version of Kyanite knows format {FORMAT} at most.",
        ),
        ("something else", "does not say which format"),
        ("", "does not say which format"),
    ],
)
def test_a_store_of_another_format(
    text: str, says: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("store").mkdir()
    Path("store/format").write_text(text)
    assert run(monkeypatch, "serve", "--location", "store") == 1
    err = capfd.readouterr().err
    assert says in err
    assert err.count("\n") == 1


def test_verify_wants_a_store(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "verify", "--location", "nowhere") == 1
    assert capfd.readouterr().err == "kyanite: There is no store in nowhere.\n"
    assert not Path("nowhere").exists()
