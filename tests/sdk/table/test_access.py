"""Ways into tables with the official client: tokens, policies, keys, and Shared Key Lite, which it does not speak."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableAccessPolicy,
    TableSasPermissions,
    generate_account_sas,
    generate_table_sas,
)

from tests.sdk.accounts import SECOND_KEY
from tests.sdk.clients import Sdk, done, items, refused
from tests.sdk.raw_http import fetch


def key_of(sdk: Sdk) -> AzureNamedKeyCredential:
    return AzureNamedKeyCredential(sdk.server.account, sdk.key)


def later(**ago: float) -> datetime:
    return datetime.now(UTC) + timedelta(**(ago or {"hours": 1}))


def with_token(sdk: Sdk, table: Any, token: str) -> Any:
    service = sdk.table_service(credential=AzureSasCredential(token))
    return service.get_table_client(table.table_name)


async def rows(table: Any) -> list[str]:
    return [each["RowKey"] for each in await items(table.list_entities())]


async def test_a_token_for_a_table(sdk: Sdk) -> None:
    table = await sdk.new_table()
    token = generate_table_sas(
        key_of(sdk), table.table_name, permission=TableSasPermissions(read=True, add=True), expiry=later()
    )
    shared = with_token(sdk, table, token)
    await done(shared.create_entity({"PartitionKey": "p", "RowKey": "r"}))
    assert await rows(shared) == ["r"]
    with refused(403, "AuthorizationPermissionMismatch"):
        await done(shared.update_entity({"PartitionKey": "p", "RowKey": "r"}))
    with refused(403, "AuthorizationPermissionMismatch"):
        await done(shared.submit_transaction([("delete", {"PartitionKey": "p", "RowKey": "r"})]))
    await done(shared.submit_transaction([("create", {"PartitionKey": "p", "RowKey": "s"})]))
    assert await rows(table) == ["r", "s"]


async def test_a_token_for_some_entities(sdk: Sdk) -> None:
    table = await sdk.new_table()
    for key in ("a", "b", "c"):
        await done(table.create_entity({"PartitionKey": "p", "RowKey": key}))
    token = generate_table_sas(
        key_of(sdk),
        table.table_name,
        permission=TableSasPermissions(read=True, add=True, update=True, delete=True),
        expiry=later(),
        start_pk="p",
        start_rk="b",
        end_pk="p",
        end_rk="bz",
    )
    shared = with_token(sdk, table, token)
    assert await rows(shared) == ["b"]
    await done(shared.create_entity({"PartitionKey": "p", "RowKey": "b1"}))
    assert await rows(shared) == ["b", "b1"]
    outside = [{"PartitionKey": "p", "RowKey": key} for key in ("b", "c")]
    forbidden: list[Callable[[], Any]] = [
        partial(shared.create_entity, {"PartitionKey": "p", "RowKey": "d"}),
        partial(shared.upsert_entity, {"PartitionKey": "p", "RowKey": "a", "n": 1}),
        partial(shared.submit_transaction, [("upsert", each) for each in outside]),
    ]
    for call in forbidden:
        with refused(403, "AuthorizationFailure"):
            await done(call())
    assert await rows(table) == ["a", "b", "b1", "c"]


async def test_a_token_with_a_stored_policy(sdk: Sdk) -> None:
    table = await sdk.new_table()
    policy = TableAccessPolicy(start=later(hours=-1), expiry=later(), permission="r")
    await done(table.set_table_access_policy({"reading": policy}))
    token = generate_table_sas(key_of(sdk), table.table_name, policy_id="reading")
    shared = with_token(sdk, table, token)
    assert await rows(shared) == []
    with refused(403, "AuthorizationPermissionMismatch"):
        await done(shared.create_entity({"PartitionKey": "p", "RowKey": "r"}))
    await done(table.set_table_access_policy({}))
    with pytest.raises(ClientAuthenticationError):
        await rows(shared)


async def test_a_token_for_the_account(sdk: Sdk) -> None:
    token = generate_account_sas(
        key_of(sdk),
        ResourceTypes(object=True, container=True),
        AccountSasPermissions(read=True, list=True, create=True, add=True, update=True, delete=True),
        later(),
    )
    service = sdk.table_service(credential=AzureSasCredential(token))
    table = await done(service.create_table(f"a{datetime.now(UTC):%H%M%S%f}"))
    await done(table.upsert_entity({"PartitionKey": "p", "RowKey": "r"}))
    await done(table.submit_transaction([("upsert", {"PartitionKey": "p", "RowKey": "s"})]))
    assert await rows(table) == ["r", "s"]
    await done(service.delete_table(table.table_name))


async def test_tokens_that_do_not_hold(sdk: Sdk) -> None:
    table = await sdk.new_table()
    reading = TableSasPermissions(read=True)
    name = table.table_name
    wrong = AzureNamedKeyCredential(sdk.server.account, base64.b64encode(b"another key").decode())
    for token in (
        generate_table_sas(key_of(sdk), name, permission=reading, expiry=later(hours=-1)),
        generate_table_sas(
            key_of(sdk), name, permission=reading, start=later(hours=1), expiry=later(hours=2)
        ),
        generate_table_sas(wrong, name, permission=reading, expiry=later()),
        generate_table_sas(key_of(sdk), "another", permission=reading, expiry=later()),
    ):
        with pytest.raises(ClientAuthenticationError):
            await rows(with_token(sdk, table, token))


async def test_both_keys_open_the_account_and_no_other(sdk: Sdk) -> None:
    table = await sdk.new_table()
    second = sdk.table_service(credential=AzureNamedKeyCredential(sdk.server.account, SECOND_KEY))
    assert await rows(second.get_table_client(table.table_name)) == []
    wrong = AzureNamedKeyCredential(sdk.server.account, base64.b64encode(b"another key").decode())
    with pytest.raises(ClientAuthenticationError):
        await rows(sdk.table_service(credential=wrong).get_table_client(table.table_name))


async def test_shared_key_lite(sdk: Sdk) -> None:
    """Made as the reference describes it: the date and the resource, with ``comp`` as the only parameter."""
    table = await sdk.new_table()
    await done(table.create_entity({"PartitionKey": "p", "RowKey": "it's", "n": 1}))
    for path, parameters in (
        (f"/{table.table_name}(PartitionKey='p',RowKey='it%27%27s')", ""),
        (f"/{table.table_name}()", "?$filter=n%20eq%201"),
        (f"/{table.table_name}", "?comp=acl"),
    ):
        answer = fetch(sdk.server.endpoints["table"] + path + parameters, headers=lite(sdk, path, parameters))
        assert answer.status == 200, answer.body
    forged = lite(sdk, "/Tables", "", key=base64.b64encode(b"another key").decode())
    refusal = fetch(sdk.server.endpoints["table"] + "/Tables", headers=forged)
    assert (refusal.status, json.loads(refusal.body)["odata.error"]["code"]) == (403, "AuthenticationFailed")


def lite(sdk: Sdk, path: str, parameters: str, key: str = "") -> dict[str, str]:
    date = format_datetime(datetime.now(UTC), usegmt=True)
    comp = parameters if parameters.startswith("?comp=") else ""
    base = urlsplit(sdk.server.endpoints["table"]).path
    text = f"{date}\n/{sdk.server.account}{base}{path}{comp}"
    mac = hmac.new(base64.b64decode(key or sdk.key), text.encode(), hashlib.sha256).digest()
    signature = base64.b64encode(mac).decode()
    return {
        "x-ms-date": date,
        "x-ms-version": "2019-02-02",
        "Authorization": f"SharedKeyLite {sdk.server.account}:{signature}",
    }
