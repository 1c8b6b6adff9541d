"""The configuration file: what it may say, what is refused, and what counts before it."""

import base64
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from kyanite.server import cli as command_line
from kyanite.server import serve as serving
from kyanite.server.accounts.settings import SettingsChange
from kyanite.server.config import Config, StatedAccount
from kyanite.server.stamps.stamp import Stamp
from kyanite.server.store.api import StoreKind
from tests.server.test_cli import run

KEY = base64.b64encode(b"a key of an account").decode()
OTHER = base64.b64encode(b"another").decode()

BAD = [
    ("no TOML", "[server", "is not TOML"),
    ("not UTF-8", b"\xff\xff", "is not TOML"),
    ("an unknown section", "[servers]\n", "servers in x.toml is not known"),
    ("a section that is no table", "server = 1\n", "server in x.toml has to be a table"),
    ("an unknown option", "[server]\nhots = 'x'\n", "server.hots in x.toml is not known"),
    ("accounts among options", "[server]\naccounts = 'a:b'\n", "server.accounts in x.toml is not known"),
    ("a file in a file", "[server]\nconfig = 'y'\n", "server.config in x.toml is not known"),
    (
        "a port that is a text",
        "[server]\nblob_port = '1'\n",
        "server.blob_port in x.toml has to be a whole number",
    ),
    ("a port that is a truth value", "[server]\nblob_port = true\n", "server.blob_port in x.toml has to be"),
    (
        "a port out of range",
        "[server]\nblob_port = 70000\n",
        "server.blob_port in x.toml cannot be used: 70000",
    ),
    ("workers out of range", "[server]\nworkers = 0\n", "server.workers in x.toml cannot be used"),
    (
        "a flag that is a number",
        "[server]\nin_memory = 1\n",
        "server.in_memory in x.toml has to be true or false",
    ),
    (
        "seconds as a text",
        "[server]\nstop_seconds = '1'\n",
        "server.stop_seconds in x.toml has to be a number",
    ),
    ("a host that is a number", "[server]\nhost = 1\n", "server.host in x.toml has to be a text"),
    ("an unknown choice", "[server]\nlog_level = 'loud'\n", "server.log_level in x.toml cannot be used"),
    ("an unknown service", "[server]\nservices = ['bob']\n", "There is no service 'bob'"),
    ("services that are numbers", "[server]\nservices = [1]\n", "server.services in x.toml has to be a text"),
    ("memory and a location", "[server]\nin_memory = true\nlocation = 'x'\n", "takes no --location"),
    ("a certificate alone", "[server]\ncert = 'x'\n", "TLS needs both --cert and --key."),
    ("accounts that are no table", "accounts = []\n", "accounts in x.toml has to be a table"),
    ("an account that is no table", "[accounts]\nalpha = 1\n", "accounts.alpha in x.toml has to be a table"),
    ("a bad name", f"[accounts.Alpha]\nkeys = ['{KEY}']\n", "accounts.Alpha in x.toml is no name"),
    (
        "no list of keys",
        f"[accounts.alpha]\nkeys = '{KEY}'\n",
        "accounts.alpha.keys in x.toml has to be a list",
    ),
    ("no keys", "[accounts.alpha]\nkeys = []\n", "accounts.alpha.keys in x.toml has to have one key or two"),
    (
        "a key that is a number",
        "[accounts.alpha]\nkeys = [1]\n",
        "accounts.alpha.keys in x.toml has to be a list",
    ),
    (
        "three keys",
        f"[accounts.alpha]\nkeys = {[KEY] * 3}\n",
        "accounts.alpha.keys in x.toml has to have one",
    ),
    (
        "a bad key",
        "[accounts.alpha]\nkeys = ['secret!']\n",
        "accounts.alpha.keys in x.toml has a key that is not",
    ),
    ("both", f"[accounts.alpha]\nkeys = ['{KEY}']\nkey_files = ['k']\n", "has both keys and key_files"),
    (
        "no such file",
        "[accounts.alpha]\nkey_files = ['k']\n",
        "accounts.alpha.key_files in x.toml names k, which",
    ),
    (
        "an unknown setting",
        "[accounts.alpha]\nversions = true\n",
        "accounts.alpha.versions in x.toml is not known",
    ),
    (
        "a setting of the wrong type",
        "[accounts.alpha]\nversioning = 'yes'\n",
        "accounts.alpha.versioning in x.toml has the wrong type: expected bool",
    ),
    (
        "a truth value for days",
        "[accounts.alpha]\nblob_soft_delete_days = true\n",
        "has the wrong type: expected int",
    ),
    ("days out of range", "[accounts.alpha]\nblob_soft_delete_days = 366\n", "1 to 365 days"),
    (
        "a kind",
        "[accounts.alpha]\nkind = 'FileStorage'\n",
        "accounts.alpha.kind in x.toml cannot be used: accounts of",
    ),
    (
        "a sku",
        "[accounts.alpha]\nsku = 'Premium_LRS'\n",
        "accounts.alpha.sku in x.toml cannot be used: accounts with",
    ),
    (
        "a policy",
        "[accounts.alpha]\nsas_policy = 'x'\n",
        "accounts.alpha.sas_policy in x.toml cannot be used: it is",
    ),
    (
        "a contradiction",
        "[accounts.alpha]\nversioning = false\nversion_level_immutability = true\n",
        "accounts.alpha.version_level_immutability in x.toml cannot be used: it needs versioning",
    ),
    (
        "Data Lake",
        "[accounts.alpha]\nhierarchical_namespace = true\n",
        "accounts.alpha.hierarchical_namespace in x.toml cannot be used: this version has no Data Lake",
    ),
    ("a change feed", "[accounts.alpha]\nchange_feed = true\n", "alpha.change_feed in x.toml cannot be used"),
    (
        "scopes",
        "[accounts.alpha]\nencryption_scopes = ['a']\n",
        "alpha.encryption_scopes in x.toml cannot be used",
    ),
    ("another engine", "[stamps.b]\n[stamps.main]\nengine = 'oracle://x'\n", "--engine names no engine"),
    ("other extents", "[stamps.a]\n[stamps.b]\nextents = 'ftp://x'\n", "stamps.b in x.toml cannot be used"),
    (
        "an engine twice",
        "[server]\nengine = 'embedded'\n[stamps.main]\nengine = 'embedded'\n",
        "server.engine, too",
    ),
    ("a key of a stamp", "[stamps.a]\nlocation = 'x'\n", "stamps.a.location in x.toml is not known"),
    ("a stamp's type", "[stamps.a]\nengine = 1\n", "stamps.a.engine in x.toml has to be a text"),
    ("a stamp's name", "[stamps.A_]\n", "stamps.A_ in x.toml is no name of a stamp"),
    (
        "an account elsewhere",
        "[accounts.alpha]\nstamp = 'x'\n",
        "accounts.alpha.stamp in x.toml names no store",
    ),
    ("identity", "[identity]\nnonsense = 1\n", "identity"),
    ("the development key for all", "[server]\nhost = '0.0.0.0'\n", "--allow-development-key"),
]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("text", "says"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_what_is_refused(
    text: str | bytes, says: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("x.toml").write_bytes(text.encode() if isinstance(text, str) else text)
    assert run(monkeypatch, "serve", "--config", "x.toml") == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert says in err
    assert err.startswith("kyanite: ")
    assert err.count("\n") == 1
    assert "secret" not in err
    assert KEY not in err


def test_a_file_that_is_not_there(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "serve", "--config", "x.toml") == 2
    assert capfd.readouterr().err == "kyanite: Cannot read the file x.toml: No such file or directory.\n"


def served_with(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Config:
    """The configuration that the server would be started with."""
    configs: list[Config] = []
    monkeypatch.setattr(serving, "serve", configs.append)
    monkeypatch.setattr(sys, "argv", ["kyanite", "serve", *arguments])
    monkeypatch.setattr(signal, "signal", _ignore)
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    assert not ended.value.code
    (config,) = configs
    return config


def _ignore(*_arguments: Any) -> None:
    pass


WHOLE = f"""
[server]
host = "127.0.0.2"
blob_port = 0
workers = 3
services = ["blob", "queue"]
log_requests = true
stop_seconds = 2
location = "data"
key_file = "keys/seal"
admin_port = 7

[stamps.east]
engine = "embedded"

[accounts.alpha]
keys = ["{KEY}"]
stamp = "east"
versioning = true
blob_soft_delete_days = 7
sas_policy = "block 1.00:00:00"
hierarchical_namespace = false
encryption_scopes = []

[accounts.beta2]
key_files = ["keys/one", "keys/two"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "etc"
    (folder / "keys").mkdir(parents=True)
    (folder / "keys" / "one").write_text(f"{KEY}\n")
    (folder / "keys" / "two").write_text(OTHER)
    (folder / "k.toml").write_text(WHOLE)
    return folder


def test_everything_from_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = served_with(monkeypatch, "--config", "etc/k.toml")
    assert config.host == "127.0.0.2"
    assert config.ports == {"blob": 0, "queue": 10001}
    assert config.workers == 3
    assert config.log_requests
    assert config.stop_seconds == 2
    assert config.admin_port == 7
    # Paths are relative to the folder of the file.
    assert config.location == Path("etc/data")
    assert config.key_file == Path("etc/keys/seal")
    where = "the file etc/k.toml"
    settings = SettingsChange(versioning=True, blob_soft_delete_days=7, sas_policy="block 1.00:00:00")
    by = dict.fromkeys(("keys", "versioning", "blob_soft_delete_days", "sas_policy"), where)
    assert config.accounts == (
        StatedAccount("alpha", (b"a key of an account",), settings, by),
        StatedAccount("beta2", (b"a key of an account", b"another"), stated_by={"keys": where}),
    )


def test_options_and_the_environment_count_before_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KYANITE_WORKERS", "4")
    monkeypatch.setenv("KYANITE_HOST", "127.0.0.3")
    monkeypatch.setenv("KYANITE_CONFIG", "etc/k.toml")
    monkeypatch.setenv("KYANITE_ACCOUNTS", f"alpha:{OTHER}")
    config = served_with(monkeypatch, "--host", "127.0.0.4")
    assert (config.host, config.workers, config.stop_seconds) == ("127.0.0.4", 4, 2)
    first, second = config.accounts
    assert (first.name, first.keys) == ("alpha", (b"another",))
    assert first.stated_by["keys"] == "KYANITE_ACCOUNTS"
    assert first.stated_by["versioning"] == "the file etc/k.toml"
    assert second.name == "beta2"
    config = served_with(monkeypatch, "--account", f"gamma:{OTHER}")
    assert [account.name for account in config.accounts] == ["gamma", "alpha", "beta2"]
    assert config.accounts[0].stated_by == {"keys": "--account"}


def test_without_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    config = served_with(monkeypatch)
    assert config.accounts == ()
    assert config.location == Path("kyanite-data")


def test_stamps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is the store of the options, unless another one is called main."""
    path = tmp_path / "k.toml"
    path.write_text(
        "[stamps.east]\nengine = 'postgresql://e'\n[stamps.west]\nextents = 's3://w'\n"
        "[accounts.alpha]\n[accounts.beta2]\nstamp = 'west'\n[accounts.gamma]\nstamp = 'east'\n"
    )
    config = served_with(monkeypatch, "--config", str(path))
    assert config.store_kind == StoreKind("postgresql://e", "local")
    assert config.stamps == (Stamp("west", StoreKind("embedded", "s3://w")),)
    assert {account.name: account.stamp for account in config.accounts} == {
        "alpha": "main",
        "beta2": "west",
        "gamma": "main",
    }
    assert served_with(monkeypatch, "--config", str(path), "--engine", "embedded").store_kind == StoreKind()
