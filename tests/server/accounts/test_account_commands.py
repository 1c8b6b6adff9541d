"""``kyanite account …`` against a real server: keys, settings, what is fixed, and what survives a restart."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError

from kyanite.server.failures import Failure
from kyanite.server.management.client import call
from tests.server.accounts.running import blob_service, kyanite, opens, toml
from tests.server_process import DEVELOPMENT_KEY, ServerFailed, ServerProcess

KEY = base64.b64encode(b"a key of an account").decode()
OTHER = base64.b64encode(b"another").decode()
DEVELOPMENT = "devstoreaccount1"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess("--workers", "2", "--services", "blob", location=tmp_path / "store") as started:
        yield started


def refused(location: Path, command: str, **arguments: Any) -> str:
    with pytest.raises(Failure) as failed:
        call(location, command, **arguments)
    return failed.value.sentence


def names(location: Path) -> list[str]:
    return [each["name"] for each in call(location, "account list")]


def test_an_account_from_its_beginning_to_its_end(server: ServerProcess) -> None:
    at = server.location
    added = call(at, "account add", name="alpha")
    assert added["name"] == "alpha"
    first, second = added["keys"]
    assert len(base64.b64decode(first)) == 64
    assert first != second
    assert "devstoreaccount1 is not served any more" in added["note"]
    assert names(at) == ["alpha"]
    assert opens(server, "alpha", first)
    assert opens(server, "alpha", second)
    assert not opens(server, DEVELOPMENT, DEVELOPMENT_KEY)
    rotated = call(at, "account rotate-key", name="alpha", number=1)
    assert rotated["keys"][1] == second
    assert not opens(server, "alpha", first)
    assert opens(server, "alpha", rotated["keys"][0])
    call(at, "account rotate-key", name="alpha", number=2, key=KEY)
    assert opens(server, "alpha", KEY)
    assert not opens(server, "alpha", second)
    server.restart()
    assert server.endpoints["blob"].endswith("/alpha")
    assert opens(server, "alpha", KEY)
    assert opens(server, "alpha", rotated["keys"][0])
    assert call(at, "account remove", name="alpha") == "Account alpha is removed."
    assert not opens(server, "alpha", KEY)
    # Without any other the development account is there again.
    assert names(at) == [DEVELOPMENT]
    assert opens(server, DEVELOPMENT, DEVELOPMENT_KEY)


def test_keys_are_nowhere_in_the_store(server: ServerProcess) -> None:
    call(server.location, "account add", name="alpha", keys=[KEY])
    server.stop()
    for path in server.location.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert KEY.encode() not in content
            assert base64.b64decode(KEY) not in content
    assert KEY not in server.errors


def test_the_command_line(server: ServerProcess, tmp_path: Path) -> None:
    at = ("--location", str(server.location))
    key = tmp_path / "key"
    key.write_text(f"{KEY}\n")
    ended = kyanite("account", "add", "alpha", *at, "--key-file", str(key), "--versioning", "on", "--json")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["keys"] == [KEY]
    ended = kyanite("account", "set", "alpha", *at, "--sas-policy", "log 1.00:00:00", "--require-https", "on")
    assert ended.returncode == 0, ended.stderr
    assert "sas_policy=log 1.00:00:00" in ended.stdout
    ended = kyanite("account", "list", *at)
    assert "versioning=on" in ended.stdout
    assert KEY not in ended.stdout
    assert "public_access" not in ended.stdout  # It is as usual.
    ended = kyanite("account", "rotate-key", "alpha", "2", *at)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(f"name: alpha\nkey 1: {KEY}\nkey 2: ")
    ended = kyanite("account", "remove", "alpha", *at)
    assert ended.stdout == "Account alpha is removed.\n"
    ended = kyanite("account", "remove", "alpha", *at)
    assert (ended.returncode, ended.stderr) == (1, "kyanite: There is no account 'alpha'.\n")


@pytest.mark.parametrize(
    ("command", "arguments", "says"),
    [
        ("account add", {"name": "Alpha"}, "3 to 24 lower-case letters"),
        ("account add", {"name": "a" * 25}, "3 to 24 lower-case letters"),
        ("account add", {"name": "beta2"}, "There is an account beta2 already."),
        ("account add", {"name": "gamma", "keys": [KEY] * 3}, "2 keys at most"),
        ("account add", {"name": "gamma", "keys": ["secret!"]}, "A key is not base64."),
        (
            "account add",
            {"name": "gamma", "settings": {"kind": "FileStorage"}},
            "The setting kind cannot be used",
        ),
        ("account add", {"name": "gamma", "settings": {"colour": "red"}}, "unknown field `colour`"),
        (
            "account add",
            {"name": "gamma", "settings": {"version_level_immutability": True}},
            "Account gamma cannot have these settings: version_level_immutability needs versioning.",
        ),
        ("account set", {"name": "gamma", "settings": {"versioning": True}}, "There is no account 'gamma'."),
        ("account set", {"name": "beta2", "settings": {}}, "names no setting"),
        (
            "account set",
            {"name": "beta2", "settings": {"sku": "Premium_LRS"}},
            "The setting sku cannot be used",
        ),
        (
            "account set",
            {"name": "beta2", "settings": {"version_level_immutability": True}},
            "needs versioning",
        ),
        ("account set", {"name": "beta2", "settings": {"versioning": "on"}}, "Expected `bool`"),
        ("account rotate-key", {"name": "beta2", "number": 3}, "<= 2"),
        ("account rotate-key", {"name": "beta2", "number": 1, "key": "secret!"}, "A key is not base64."),
        ("account rotate-key", {"name": "gamma", "number": 1}, "There is no account 'gamma'."),
        ("account remove", {"name": "gamma"}, "There is no account 'gamma'."),
    ],
)
def test_what_is_refused(shared: ServerProcess, command: str, arguments: dict[str, Any], says: str) -> None:
    sentence = refused(shared.location, command, **arguments)
    assert says in sentence
    assert "secret" not in sentence
    assert names(shared.location) == ["beta2"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    location = tmp_path_factory.mktemp("store")
    with ServerProcess("--workers", "1", "--services", "blob", location=location) as started:
        call(location, "account add", name="beta2", keys=[KEY])
        yield started


def test_settings_are_kept(server: ServerProcess) -> None:
    at = server.location
    changes = {
        "sku": "Standard_LRS",
        "versioning": True,
        "version_level_immutability": True,
        "blob_soft_delete_days": 7,
        "container_soft_delete_days": 3,
        "allow_permanent_delete": True,
        "last_access_tracking": True,
    }
    for setting, value in changes.items():
        described = call(at, "account set", name=DEVELOPMENT, settings={setting: value})
        assert described["settings"][setting] == value
    server.restart()
    (described,) = call(at, "account list")
    assert {name: described["settings"][name] for name in changes} == changes
    assert described["stated_by"] == {}
    assert "needs versioning" in refused(at, "account set", name=DEVELOPMENT, settings={"versioning": False})


def test_what_is_stated_is_applied_and_fixed(tmp_path: Path) -> None:
    text = f"""
[accounts.alpha]
keys = ["{KEY}"]
versioning = true
shared_key_access = true
blob_soft_delete_days = 5
"""
    path = toml(tmp_path, text)
    where = f"the file {path}"
    at = tmp_path / "store"
    with ServerProcess("--config", str(path), "--services", "blob", location=at) as server:
        assert server.endpoints["blob"].endswith("/alpha")
        (described,) = call(at, "account list")
        assert described["settings"]["versioning"]
        assert described["settings"]["blob_soft_delete_days"] == 5
        stated = ("keys", "versioning", "shared_key_access", "blob_soft_delete_days")
        assert described["stated_by"] == dict.fromkeys(stated, where)
        for setting, value in (
            ("versioning", False),
            ("shared_key_access", False),
            ("blob_soft_delete_days", 6),
        ):
            assert refused(at, "account set", name="alpha", settings={setting: value}) == (
                f"The setting {setting} of account alpha is stated by {where} and cannot be changed here."
            )
        # The same value changes nothing, and the others can be set.
        call(at, "account set", name="alpha", settings={"versioning": True, "require_https": False})
        call(
            at, "account set", name="alpha", settings={"sku": "Standard_LRS", "container_soft_delete_days": 9}
        )
        assert refused(at, "account rotate-key", name="alpha", number=1) == (
            f"The keys of account alpha are stated by {where} and cannot be changed here."
        )
        assert refused(at, "account remove", name="alpha", with_data=True) == (
            f"Account alpha is stated by {where}, so the next start would make it again: remove it there."
        )
        assert refused(at, "account add", name="alpha") == "There is an account alpha already."
        # Others may be added beside it.
        call(at, "account add", name="beta2", keys=[OTHER])
        assert opens(server, "beta2", OTHER)
        server.stop()
        path.write_text(text.replace("5", "6"))
        server.start()
        settings = {each["name"]: each["settings"] for each in call(at, "account list")}
        assert settings.keys() == {"alpha", "beta2"}
        assert settings["alpha"]["blob_soft_delete_days"] == 6
        assert settings["alpha"]["sku"] == "Standard_LRS"
        assert settings["alpha"]["container_soft_delete_days"] == 9


@pytest.mark.parametrize("where", ["--account", "KYANITE_ACCOUNTS"])
def test_keys_of_options_and_the_environment_are_fixed(tmp_path: Path, where: str) -> None:
    option = ("--account", f"alpha:{KEY}") if where == "--account" else ()
    environment = {} if option else {"KYANITE_ACCOUNTS": f"alpha:{KEY}"}
    options = ("--workers", "1", "--services", "blob", *option)
    with ServerProcess(*options, location=tmp_path, environment=environment):
        assert refused(tmp_path, "account rotate-key", name="alpha", number=2) == (
            f"The keys of account alpha are stated by {where} and cannot be changed here."
        )
        call(tmp_path, "account set", name="alpha", settings={"versioning": True})


def test_a_lost_or_wrong_key_file(server: ServerProcess) -> None:
    at = server.location
    call(at, "account add", name="alpha", keys=[KEY])
    path = at / "account-keys.key"
    content = path.read_bytes()
    lost = f"The key file {path} is missing, and without it the keys of accounts in the store cannot be read."
    wrong = f"The key file {path} is not the one that the key of account alpha was stored with."
    for damage, sentence in ((None, lost), (b"x" * 64, wrong)):
        path.unlink()
        if damage is not None:
            path.write_bytes(damage)
        # The keys that are in memory go on to work. No other is stored.
        assert opens(server, "alpha", KEY)
        assert refused(at, "account add", name="beta2") == sentence
        assert refused(at, "account rotate-key", name="alpha", number=2) == sentence
        server.stop()
        with pytest.raises(ServerFailed) as failed:
            server.start()
        assert failed.value.code == 1
        assert failed.value.errors.splitlines()[-1] == f"kyanite: {sentence}"
        path.write_bytes(content)
        server.start()
        assert opens(server, "alpha", KEY)
    # Whoever knows the keys can state them, and needs no key file.
    path.unlink()
    server.stop()
    server.start("--account", f"alpha:{OTHER}")
    assert opens(server, "alpha", OTHER)


def test_a_key_file_of_the_operator(tmp_path: Path) -> None:
    path = tmp_path / "seal"
    options = ("--workers", "1", "--services", "blob", "--key-file", str(path))
    with ServerProcess(*options, location=tmp_path / "store") as server:
        at = server.location
        assert refused(at, "account add", name="alpha").startswith(f"The key file {path} is missing")
        path.write_text("a secret of the operator, long enough")
        call(at, "account add", name="alpha", keys=[KEY])
        assert not (at / "account-keys.key").exists()
        server.restart()
        assert opens(server, "alpha", KEY)


def test_an_account_without_keys(tmp_path: Path) -> None:
    path = toml(tmp_path, "[accounts.alpha]\nversioning = true\n")
    options = ("--workers", "1", "--services", "blob")
    with ServerProcess(*options, location=tmp_path / "store") as server:
        server.stop()
        with pytest.raises(ServerFailed) as failed:
            server.start("--config", str(path))
        assert "Account alpha has no key" in failed.value.errors
        server.start()
        call(server.location, "account add", name="alpha", keys=[KEY])
        server.stop()
        server.start("--config", str(path))
        assert opens(server, "alpha", KEY)


def test_other_machines_and_the_well_known_key(tmp_path: Path) -> None:
    options = ("--workers", "1", "--services", "blob")
    with ServerProcess(*options, location=tmp_path) as server:
        server.stop()
        with pytest.raises(ServerFailed) as failed:
            server.start("--host", "0.0.0.0")
        assert "--allow-development-key" in failed.value.errors
        server.start()
        call(tmp_path, "account add", name="alpha", keys=[KEY])
        server.stop()
        # Now there is an account with a key of its own.
        server.start("--host", "0.0.0.0")
        assert "well-known" in refused(tmp_path, "account add", name="beta2", keys=[DEVELOPMENT_KEY])
        assert opens(server, "alpha", KEY)


def test_in_memory() -> None:
    with ServerProcess("--in-memory", "--services", "blob") as server:
        (at,) = [Path(str(line["management"])).parent for line in server.log if "management" in line]
        call(at, "account add", name="alpha", keys=[KEY])
        assert opens(server, "alpha", KEY)


def test_remove_needs_leave_to_remove_data(server: ServerProcess) -> None:
    at = server.location
    call(at, "account add", name="alpha", keys=[KEY])
    with blob_service(server, "alpha", KEY) as client:
        client.create_container("box").upload_blob("name", b"old")
        sentence = refused(at, "account remove", name="alpha")
        assert sentence == "Account alpha has data, which is removed with --with-data only."
        assert client.get_blob_client("box", "name").download_blob().readall() == b"old"
        assert call(at, "account remove", name="alpha", with_data=True) == "Account alpha is removed."
        with pytest.raises(HttpResponseError):
            client.get_blob_client("box", "name").download_blob()
        call(at, "account add", name="alpha", keys=[KEY])
        with pytest.raises(ResourceNotFoundError):
            client.get_blob_client("box", "name").download_blob()
        assert list(client.list_containers()) == []
