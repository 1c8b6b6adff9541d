"""Settings of an account that every request obeys."""

import base64
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from azure.storage.blob import (
    AccountSasPermissions,
    ContainerSasPermissions,
    ResourceTypes,
    generate_account_sas,
    generate_container_sas,
)

from kyanite.model import settings
from kyanite.model.accounts import Account, AccountSettings, SasPolicy
from kyanite.server.config import AccountKeys
from kyanite.service_properties import DeleteRetention, Retention, ServiceProperties
from kyanite.services.files.service import file_service
from kyanite.services.queue.service import queue_service
from kyanite.services.rest.environment import Environment
from kyanite.services.rest.service import Service
from kyanite.services.table.service import table_service
from tests.services.harness import ACCOUNT, OTHER, Harness
from tests.services.tokens import KEY, blob_token, in_an_hour

BUILDS: dict[str, Callable[[Environment], Service]] = {
    "queue": queue_service,
    "table": table_service,
    "file": file_service,
}
NOT_PERMITTED = (403, "KeyBasedAuthenticationNotPermitted")
BLOB = {"x-ms-blob-type": "BlockBlob"}
PUBLIC = {"x-ms-blob-public-access": "container"}


@pytest.fixture
def blobs(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


def use(harness: Harness, settings: AccountSettings, name: str = ACCOUNT.name, **more: object) -> None:
    """Replace an account by one with these settings, as the server does."""
    accounts = harness.environment.accounts
    assert isinstance(accounts, dict)
    accounts[name] = replace(accounts[name], settings=settings, **more)


def account_token(harness: Harness, *, hours: float = 1, start: bool = False) -> str:
    now = in_an_hour(harness) - timedelta(hours=1)
    return str(
        generate_account_sas(
            ACCOUNT.name,
            KEY,
            ResourceTypes(service=True, container=True, object=True),
            AccountSasPermissions(read=True, write=True, list=True, create=True),
            now + timedelta(hours=hours),
            start=now if start else None,
        )
    )


async def test_keys_and_what_they_sign_can_be_switched_off(blobs: Harness) -> None:
    await blobs("PUT", "/box?restype=container", PUBLIC)
    await blobs("PUT", "/box/blob", BLOB, b"data")
    account, service = account_token(blobs), blob_token(blobs, "blob")
    use(blobs, AccountSettings(shared_key_access=False))
    for target, sign in (
        (f"/box/blob?{account}", False),
        (f"/box/blob?{service}", False),
        ("/box/blob", True),
    ):
        answer = await blobs("GET", target, sign=sign)
        assert (answer.status, answer.code) == NOT_PERMITTED
        assert b"Key based authentication is not permitted on this storage account." in answer.body
    # A wrong signature gets the same answer, and public blobs are public.
    wrong = AccountKeys(ACCOUNT.name, (b"wrong",))
    answer = await blobs("GET", "/box/blob", account=wrong)
    assert (answer.status, answer.code) == NOT_PERMITTED
    assert (await blobs("GET", "/box/blob", sign=False)).body == b"data"
    use(blobs, AccountSettings())
    assert (await blobs("GET", f"/box/blob?{account}", sign=False)).body == b"data"


@pytest.mark.parametrize("word", BUILDS)
async def test_keys_are_off_in_every_service(tmp_path: Path, word: str) -> None:
    harness = Harness(tmp_path, BUILDS[word], word)
    use(harness, AccountSettings(shared_key_access=False))
    answer = await harness("GET", "/?restype=service&comp=properties")
    assert (answer.status, answer.code) == NOT_PERMITTED


async def test_shared_key_lite_is_off_too(blobs: Harness) -> None:
    use(blobs, AccountSettings(shared_key_access=False))
    headers = {"Authorization": f"SharedKeyLite {ACCOUNT.name}:{base64.b64encode(b'x' * 32).decode()}"}
    answer = await blobs("GET", "/?comp=list", headers, sign=False)
    assert (answer.status, answer.code) == NOT_PERMITTED


async def test_a_copy_source_of_an_account_without_keys(blobs: Harness) -> None:
    await blobs("PUT", "/box?restype=container")
    await blobs("PUT", "/box/blob", BLOB, b"data")
    await blobs("PUT", "/target?restype=container", account=OTHER)
    source = f"http://localhost:10000/{ACCOUNT.name}/box/blob?{blob_token(blobs, 'blob')}"
    use(blobs, AccountSettings(shared_key_access=False))
    answer = await blobs("PUT", "/target/copy", {"x-ms-copy-source": source}, account=OTHER)
    assert (answer.status, answer.code) == (403, "CannotVerifyCopySource")
    assert answer.headers["x-ms-copy-source-error-code"] == "KeyBasedAuthenticationNotPermitted"


async def test_a_part_of_a_batch_of_an_account_without_keys(blobs: Harness) -> None:
    """The batch itself is refused already."""
    use(blobs, AccountSettings(shared_key_access=False))
    headers = {"Content-Type": "multipart/mixed; boundary=b"}
    answer = await blobs("POST", f"/?comp=batch&{account_token(blobs)}", headers, b"--b--", sign=False)
    assert (answer.status, answer.code) == NOT_PERMITTED


@pytest.mark.parametrize(
    ("version", "status", "code"),
    [
        ("2025-05-05", 401, "NoAuthenticationInformation"),
        ("2019-12-12", 401, "NoAuthenticationInformation"),
        ("2019-07-07", 409, "PublicAccessNotPermitted"),
        ("(absent)", 409, "PublicAccessNotPermitted"),
    ],
)
async def test_public_access_can_be_switched_off(
    blobs: Harness, version: str, status: int, code: str
) -> None:
    await blobs("PUT", "/box?restype=container", PUBLIC)
    await blobs("PUT", "/box/blob", BLOB, b"data")
    use(blobs, AccountSettings(public_access=False))
    for target in ("/box/blob", "/box?restype=container&comp=list", "/none/blob"):
        answer = await blobs("GET", target, {"x-ms-version": version}, sign=False)
        assert (answer.status, answer.code) == (status, code)
    assert (await blobs("GET", "/box/blob")).body == b"data"
    use(blobs, AccountSettings())
    assert (await blobs("GET", "/box/blob", sign=False)).body == b"data"


@pytest.mark.parametrize("level", ["blob", "container"])
async def test_no_container_becomes_public(blobs: Harness, level: str) -> None:
    await blobs("PUT", "/box?restype=container")
    use(blobs, AccountSettings(public_access=False))
    for target in ("/new?restype=container", "/box?restype=container&comp=acl"):
        answer = await blobs("PUT", target, {"x-ms-blob-public-access": level})
        assert (answer.status, answer.code) == (409, "PublicAccessNotPermitted")
    assert (await blobs("PUT", "/new?restype=container")).status == 201
    assert (await blobs("PUT", "/box?restype=container&comp=acl")).status == 200


@pytest.mark.parametrize("word", ["blob", *BUILDS])
async def test_plain_http_can_be_refused(tmp_path: Path, word: str) -> None:
    harness = Harness(tmp_path) if word == "blob" else Harness(tmp_path, BUILDS[word], word)
    use(harness, AccountSettings(require_https=True))
    target = "/?restype=service&comp=properties"
    for method, sign in (("GET", True), ("GET", False), ("OPTIONS", False)):
        answer = await harness(method, target, {"Origin": "http://x"}, sign=sign)
        assert (answer.status, answer.code) == (400, "AccountRequiresHttps")
    assert (await harness("GET", target, secure=True)).status == 200
    other = await harness("GET", target, account=OTHER)
    assert other.status == 200


async def test_a_copy_source_over_plain_http(blobs: Harness) -> None:
    await blobs("PUT", "/box?restype=container", PUBLIC)
    await blobs("PUT", "/box/blob", BLOB, b"data")
    await blobs("PUT", "/target?restype=container", account=OTHER)
    use(blobs, AccountSettings(require_https=True))
    for scheme, status in (("http", 400), ("https", 202)):
        source = f"{scheme}://localhost:10000/{ACCOUNT.name}/box/blob"
        answer = await blobs("PUT", "/target/copy", {"x-ms-copy-source": source}, account=OTHER)
        assert answer.status == status


async def test_signatures_that_are_valid_for_too_long(
    blobs: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    short, long = account_token(blobs, hours=1), account_token(blobs, hours=2)
    since = account_token(blobs, hours=1.5, start=True)
    container = generate_container_sas(
        ACCOUNT.name,
        "box",
        account_key=KEY,
        permission=ContainerSasPermissions(read=True, list=True),
        expiry=in_an_hour(blobs) + timedelta(hours=1),
    )
    targets = [f"/?comp=list&{long}", f"/?comp=list&{since}", f"/box?restype=container&comp=list&{container}"]
    await blobs("PUT", "/box?restype=container")
    use(blobs, AccountSettings(sas_policy=SasPolicy(3600, blocks=True)))
    assert (await blobs("GET", f"/?comp=list&{short}", sign=False)).status == 200
    for target in targets:
        answer = await blobs("GET", target, sign=False)
        assert (answer.status, answer.code) == (403, "AuthenticationFailed")
        assert b"expiration policy" in answer.body
    assert (await blobs("GET", "/?comp=list")).status == 200
    use(blobs, AccountSettings(sas_policy=SasPolicy(3600)))
    with caplog.at_level(logging.WARNING, "kyanite.sas"):
        assert (await blobs("GET", f"/?comp=list&{short}", sign=False)).status == 200
        assert not caplog.records
        for target in targets:
            assert (await blobs("GET", target, sign=False)).status == 200
    assert len(caplog.records) == len(targets)
    assert not any("sig=" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(
    ("sku", "is_readable"), [("Standard_RAGRS", True), ("Standard_RAGZRS", True), ("Standard_LRS", False)]
)
async def test_sku_and_kind(blobs: Harness, sku: str, is_readable: bool) -> None:
    await blobs("PUT", "/box?restype=container", PUBLIC)
    await blobs("PUT", "/box/blob", BLOB, b"data")
    use(blobs, AccountSettings(sku=sku))
    for target in ("/?restype=account&comp=properties", "/box/blob?restype=account&comp=properties"):
        answer = await blobs("GET", target)
        assert (answer.headers["x-ms-sku-name"], answer.headers["x-ms-account-kind"]) == (sku, "StorageV2")
    secondary = AccountKeys(f"{ACCOUNT.name}-secondary", ())
    answer = await blobs("GET", "/box/blob", sign=False, account=secondary)
    # An account without a readable secondary has no such host, so it is an unknown one.
    assert (answer.status, answer.code or "") == ((200, "") if is_readable else (403, "AuthenticationFailed"))
    await blobs("PUT", "/target?restype=container", account=OTHER)
    source = f"http://localhost:10000/{ACCOUNT.name}-secondary/box/blob"
    answer = await blobs("PUT", "/target/copy", {"x-ms-copy-source": source}, account=OTHER)
    assert answer.status == (202 if is_readable else 404)


NO_SOFT_DELETE = (
    b"<StorageServiceProperties><DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy>"
    b"</StorageServiceProperties>"
)


async def test_what_the_operator_states_is_fixed_for_clients(blobs: Harness) -> None:
    target = "/?restype=service&comp=properties"
    account: Account = blobs.environment.accounts[ACCOUNT.name]
    where = "the file x.toml"
    use(blobs, account.settings, fixed={"blob_soft_delete_days": where, "versioning": where})
    # What is in force already may be set, as clients do that read, change and write everything.
    assert (await blobs("PUT", target, body=NO_SOFT_DELETE)).status == 202
    stated = ServiceProperties(delete_retention=DeleteRetention(Retention(5)))
    await settings.update(blobs.engine, ACCOUNT.name, "blob", stated)
    answer = await blobs("PUT", target, body=NO_SOFT_DELETE)
    assert (answer.status, answer.code) == (409, "SettingIsFixed")
    assert b"blob_soft_delete_days is stated by the file x.toml and cannot be changed here." in answer.body
    assert (
        await settings.get(blobs.engine, ACCOUNT.name, "blob")
    ).delete_retention == stated.delete_retention
    cors = b"<StorageServiceProperties><Cors/></StorageServiceProperties>"
    assert (await blobs("PUT", target, body=cors)).status == 202
    use(blobs, account.settings, fixed={})
    assert (await blobs("PUT", target, body=NO_SOFT_DELETE)).status == 202
