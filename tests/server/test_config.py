"""What the options mean and which of them contradict each other."""

import base64
from pathlib import Path

import pytest

from kyanite.server import config
from kyanite.server.accounts.settings import SettingsChange
from kyanite.server.config import AccountKeys, StatedAccount
from kyanite.server.failures import BadUsage
from kyanite.server.store.api import MEMORY, StoreKind, choose_kind

KEY = base64.b64encode(b"a key of an account").decode()
OTHER = base64.b64encode(b"another").decode()


def test_account_with_one_key_and_with_two() -> None:
    assert config.parse_account(f"alpha:{KEY}") == AccountKeys("alpha", (b"a key of an account",))
    assert config.parse_account(f"beta2:{KEY}:{OTHER}") == AccountKeys(
        "beta2", (b"a key of an account", b"another")
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "NAME:KEY"),
        (f"ab:{KEY}", "3 to 24"),
        (f"{'a' * 25}:{KEY}", "3 to 24"),
        (f"Alpha:{KEY}", "3 to 24"),
        (f"al-pha:{KEY}", "3 to 24"),
        ("alpha", "needs one key or two"),
        (f"alpha:{KEY}:{KEY}:{KEY}", "needs one key or two"),
        ("alpha:", "not base64"),
        ("alpha:not base64!", "not base64"),
        (f"alpha:{KEY}:", "not base64"),
        ("alpha:éé==", "not base64"),
    ],
)
def test_bad_account(text: str, says: str) -> None:
    with pytest.raises(BadUsage, match=says):
        config.parse_account(text)


def test_a_bad_account_does_not_tell_its_key() -> None:
    with pytest.raises(BadUsage) as raised:
        config.parse_account("alpha:secret!")
    assert "secret" not in raised.value.sentence


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_development_key_stays_on_loopback(host: str) -> None:
    given = [AccountKeys("alpha", (config.DEVELOPMENT_KEY,))]
    assert config.choose_accounts(given, host=host, allow_development_key=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "localhost.example", "example.org", ""])
def test_development_key_elsewhere_must_be_allowed(host: str) -> None:
    given = [AccountKeys("alpha", (b"other", config.DEVELOPMENT_KEY))]
    with pytest.raises(BadUsage, match="--allow-development-key"):
        config.choose_accounts(given, host=host, allow_development_key=False)
    assert config.choose_accounts(given, host=host, allow_development_key=True)


def test_a_key_of_its_own_may_be_served_anywhere() -> None:
    given = (AccountKeys("alpha", (b"key",)),)
    (stated,) = config.choose_accounts(given, host="0.0.0.0", allow_development_key=False)
    assert (stated.name, stated.keys, stated.stated_by) == ("alpha", (b"key",), {"keys": "--account"})


def test_options_count_before_the_file() -> None:
    """For the keys. What the file says besides is kept, and accounts of the options come first."""
    off = SettingsChange(versioning=False)
    in_file = [
        StatedAccount("beta2", (b"b",), stated_by={"keys": "the file x"}),
        StatedAccount("alpha", (b"a",), off, {"keys": "the file x", "versioning": "the file x"}),
    ]
    given = [AccountKeys("alpha", (b"key",))]
    stated = config.choose_accounts(
        given, in_file, stated_by="KYANITE_ACCOUNTS", host="127.0.0.1", allow_development_key=False
    )
    by = {"keys": "KYANITE_ACCOUNTS", "versioning": "the file x"}
    assert stated == (StatedAccount("alpha", (b"key",), off, by), in_file[0])


def test_an_account_is_given_once() -> None:
    given = [AccountKeys("alpha", (b"key",)), AccountKeys("alpha", (b"other",))]
    with pytest.raises(BadUsage, match="alpha is given twice"):
        config.choose_accounts(given, host="127.0.0.1", allow_development_key=False)


def test_services() -> None:
    assert "blob" in config.choose_services(None)
    assert config.choose_services("blob") == ("blob",)
    assert config.choose_services(" blob ,blob,") == ("blob",)
    assert "dfs" not in config.choose_services(None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no service"),
        (" , ", "no service"),
        ("bob", "There is no service 'bob'"),
        ("blob,dfs", "dfs service is not"),
    ],
)
def test_bad_services(text: str, says: str) -> None:
    with pytest.raises(BadUsage, match=says):
        config.choose_services(text)


def test_ports() -> None:
    ports = {"blob": 1, "queue": 1, "table": 0}
    assert config.choose_ports(["blob"], ports, {"admin": None}) == {"blob": 1}
    assert config.choose_ports(["blob", "table"], ports, {"admin": 0}) == {"blob": 1, "table": 0}
    with pytest.raises(BadUsage, match="Port 1 is used twice, by blob and by queue"):
        config.choose_ports(["blob", "queue"], ports, {})
    with pytest.raises(BadUsage, match="by blob and by admin"):
        config.choose_ports(["blob"], ports, {"admin": 1})


def test_workers() -> None:
    assert 1 <= config.choose_workers(None, in_memory=False) <= 8
    assert config.choose_workers(12, in_memory=False) == 12
    assert config.choose_workers(None, in_memory=True) == 1
    assert config.choose_workers(1, in_memory=True) == 1
    with pytest.raises(BadUsage, match="one worker only"):
        config.choose_workers(2, in_memory=True)


def test_tls() -> None:
    cert, key = Path("cert"), Path("key")
    assert config.choose_tls(None, None) is None
    assert config.choose_tls(cert, key) == config.Tls(cert, key)
    for given in ((cert, None), (None, key)):
        with pytest.raises(BadUsage, match="both"):
            config.choose_tls(*given)


def test_kinds_of_stores() -> None:
    assert choose_kind(None, None, in_memory=False) == StoreKind()
    assert choose_kind("embedded", "local", in_memory=False) == StoreKind("embedded", "local")
    assert choose_kind(None, None, in_memory=True) == StoreKind(MEMORY)
    for engine in ("mysql://host/db", "memory", "embedded2", "sqlite:x", ":"):
        with pytest.raises(BadUsage, match="--engine"):
            choose_kind(engine, None, in_memory=False)
    for extents in ("ftp://bucket", "files", ":"):
        with pytest.raises(BadUsage, match="--extents"):
            choose_kind(None, extents, in_memory=False)


def test_a_testing_server_has_an_admin_port() -> None:
    assert config.choose_admin_port(None, testing=False, host="0.0.0.0") is None
    assert config.choose_admin_port(7, testing=False, host="0.0.0.0") == 7
    assert config.choose_admin_port(None, testing=True, host="127.0.0.1") == 0
    assert config.choose_admin_port(7, testing=True, host="::1") == 7
    for host in ("0.0.0.0", "192.0.2.1", "example.org"):
        with pytest.raises(BadUsage, match="--testing"):
            config.choose_admin_port(7, testing=True, host=host)
