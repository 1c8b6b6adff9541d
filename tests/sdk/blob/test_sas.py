"""Shared access signatures as the official client makes and uses them: each allows exactly what it says."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core.credentials import AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.storage.blob import (
    AccessPolicy,
    AccountSasPermissions,
    BlobSasPermissions,
    ContainerSasPermissions,
    ContentSettings,
    ResourceTypes,
    Services,
    generate_account_sas,
    generate_blob_sas,
    generate_container_sas,
)

from tests.sdk.accounts import OTHER_KEY, SECOND_KEY
from tests.sdk.clients import Sdk, content, done, fresh_name, items, names, refused

ACCOUNT = "devstoreaccount1"
LETTERS = "racwdxyltfmeopi"
HOUR = timedelta(hours=1)


def now() -> datetime:
    return datetime.now(UTC)


def container_sas(sdk: Sdk, container: str, permission: Any = None, **terms: Any) -> str:
    terms = {"account_key": sdk.key, "expiry": now() + HOUR, **terms}
    return generate_container_sas(ACCOUNT, container, permission=permission, **terms)


def blob_sas(sdk: Sdk, container: str, blob: str, permission: Any = None, **terms: Any) -> str:
    terms = {"account_key": sdk.key, "expiry": now() + HOUR, **terms}
    return generate_blob_sas(ACCOUNT, container, blob, permission=permission, **terms)


def account_sas(sdk: Sdk, types: Any = "sco", permission: Any = "racwdl", **terms: Any) -> str:
    terms = {"account_key": sdk.key, "expiry": now() + HOUR, **terms}
    return generate_account_sas(ACCOUNT, resource_types=types, permission=permission, **terms)


# What can be done to a blob: each takes a client of the blob.


async def _read(blob: Any) -> Any:
    return await content(blob)


async def _describe(blob: Any) -> Any:
    return await done(blob.get_blob_properties())


async def _create(blob: Any) -> Any:
    return await done(blob.upload_blob(b"new"))


async def _overwrite(blob: Any) -> Any:
    return await done(blob.upload_blob(b"new", overwrite=True))


async def _annotate(blob: Any) -> Any:
    return await done(blob.set_blob_metadata({"a": "b"}))


async def _label(blob: Any) -> Any:
    return await done(blob.set_http_headers(ContentSettings(content_type="text/plain")))


async def _delete(blob: Any) -> Any:
    return await done(blob.delete_blob())


Action = Callable[[Any], Awaitable[Any]]
BLOB_ACTIONS: list[tuple[Action, str]] = [
    (_read, "r"),
    (_describe, "r"),
    (_create, "cw"),
    (_overwrite, "w"),
    (_annotate, "w"),
    (_label, "w"),
    (_delete, "d"),
]


async def _prepare(sdk: Sdk, action: Action, *, exists: bool = True) -> tuple[str, str]:
    container = await sdk.new_container()
    if exists and action is not _create:
        await done(container.upload_blob("blob", b"data"))
    return container.container_name, f"{container.url}/blob"


@pytest.mark.parametrize("kind", ["blob", "container", "account"])
@pytest.mark.parametrize(("action", "letters"), BLOB_ACTIONS)
async def test_one_letter_allows_what_it_says_and_nothing_else(
    sdk: Sdk, kind: str, action: Action, letters: str
) -> None:
    container, url = await _prepare(sdk, action)
    owner = sdk.blob_at(url, sdk.key)

    def token(letter: str) -> str:
        if kind == "account":
            return account_sas(sdk, "o", letter)
        if kind == "container":
            return container_sas(sdk, container, letter)
        return blob_sas(sdk, container, "blob", letter)

    usable = "racwdxyltfpi" if kind == "account" else LETTERS
    for letter in usable:
        client = sdk.blob_at(f"{url}?{token(letter)}")
        if letter in letters:
            await action(client)
            if action is _create:
                await done(owner.delete_blob())
            elif action is _delete:
                await done(owner.upload_blob(b"data"))
            continue
        before = await done(owner.exists())
        with pytest.raises(HttpResponseError) as caught:
            await action(client)
        code = getattr(caught.value, "error_code", None)
        creates_over = action is _overwrite and letter == "c"
        assert code == ("UnauthorizedBlobOverwrite" if creates_over else "AuthorizationPermissionMismatch")
        assert caught.value.status_code == 403
        assert await done(owner.exists()) == before


async def test_create_without_write_makes_new_blobs_only(sdk: Sdk) -> None:
    container, url = await _prepare(sdk, _overwrite)
    client = sdk.blob_at(f"{url}?{blob_sas(sdk, container, 'blob', BlobSasPermissions(create=True))}")
    for data in (b"small", bytes(3_000_000)):
        with refused(403, "UnauthorizedBlobOverwrite"):
            await done(client.upload_blob(data, overwrite=True))
    assert await content(sdk.blob_at(url, sdk.key)) == b"data"


async def test_a_container_token_lists_and_reads_everything_in_it(sdk: Sdk) -> None:
    container = await sdk.new_container()
    for name in ("a", "b/c"):
        await done(container.upload_blob(name, name.encode()))
    token = container_sas(sdk, container.container_name, ContainerSasPermissions(read=True, list=True))
    shared = sdk.container_at(f"{container.url}?{token}")
    assert await names(shared.list_blobs()) == ["a", "b/c"]
    assert await content(shared.get_blob_client("b/c")) == b"b/c"
    with refused(403, "AuthorizationPermissionMismatch"):
        await done(shared.upload_blob("d", b""))
    only_read = sdk.container_at(
        f"{container.url}?{container_sas(sdk, container.container_name, ContainerSasPermissions(read=True))}"
    )
    with refused(403, "AuthorizationPermissionMismatch"):
        await names(only_read.list_blobs())


async def test_no_service_token_touches_the_container_itself(sdk: Sdk) -> None:
    container = await sdk.new_container()
    token = container_sas(sdk, container.container_name, LETTERS)
    shared = sdk.container_at(f"{container.url}?{token}")
    for attempt in (
        shared.get_container_properties,
        lambda: shared.set_container_metadata({"a": "b"}),
        shared.get_container_access_policy,
        lambda: shared.set_container_access_policy({}),
        shared.delete_container,
    ):
        with refused(403, "AuthorizationFailure"):
            await done(attempt())
    assert await done(container.exists()) is True


async def test_a_token_is_good_for_its_own_blob_and_container_only(sdk: Sdk) -> None:
    container, other = await sdk.new_container(), await sdk.new_container()
    for each in (container, other):
        await done(each.upload_blob("mine", b"mine"))
        await done(each.upload_blob("yours", b"yours"))
    token = blob_sas(sdk, container.container_name, "mine", "r")
    assert await content(sdk.blob_at(f"{container.url}/mine?{token}")) == b"mine"
    for url in (f"{container.url}/yours", f"{other.url}/mine"):
        with refused(403, "AuthenticationFailed", ClientAuthenticationError):
            await content(sdk.blob_at(f"{url}?{token}"))
    with refused(403, "AuthenticationFailed", ClientAuthenticationError):
        await names(sdk.container_at(f"{container.url}?{token}").list_blobs())
    whole = container_sas(sdk, container.container_name, "rl")
    with refused(403, "AuthenticationFailed", ClientAuthenticationError):
        await names(sdk.container_at(f"{other.url}?{whole}").list_blobs())


@pytest.mark.parametrize(
    ("terms", "code"),
    [
        ({}, None),
        ({"start": -HOUR}, None),
        ({"start": HOUR, "expiry": 2 * HOUR}, "AuthenticationFailed"),
        ({"start": -2 * HOUR, "expiry": -HOUR}, "AuthenticationFailed"),
        ({"expiry": timedelta(seconds=-1)}, "AuthenticationFailed"),
        ({"ip": "127.0.0.1"}, None),
        ({"ip": "127.0.0.0-127.0.0.9"}, None),
        ({"ip": "127.0.0.2-127.0.0.9"}, "AuthorizationSourceIPMismatch"),
        ({"ip": "10.1.2.3"}, "AuthorizationSourceIPMismatch"),
        ({"protocol": "https,http"}, None),
        ({"protocol": "https"}, "AuthorizationProtocolMismatch"),
        ({"account_key": SECOND_KEY}, None),
        ({"account_key": OTHER_KEY}, "AuthenticationFailed"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
@pytest.mark.parametrize("kind", ["blob", "account"])
async def test_terms(sdk: Sdk, kind: str, terms: dict[str, Any], code: str | None) -> None:
    container, url = await _prepare(sdk, _read)
    terms = {name: now() + value if isinstance(value, timedelta) else value for name, value in terms.items()}
    if kind == "blob":
        token = blob_sas(sdk, container, "blob", BlobSasPermissions(read=True), **terms)
    else:
        token = account_sas(sdk, ResourceTypes(object=True), AccountSasPermissions(read=True), **terms)
    client = sdk.blob_at(f"{url}?{token}")
    if code is None:
        assert await content(client) == b"data"
        return
    with refused(403, code):
        await content(client)


async def test_a_token_that_was_tampered_with_is_void(sdk: Sdk) -> None:
    container, url = await _prepare(sdk, _delete)
    token = blob_sas(sdk, container, "blob", "r")
    for changed in (
        token.replace("sp=r", "sp=rd"),
        token.replace("sr=b", "sr=c"),
        token.replace("se=20", "se=21"),
        token[:-6] + "AAA%3D",
    ):
        assert changed != token
        with refused(403, "AuthenticationFailed", ClientAuthenticationError):
            await content(sdk.blob_at(f"{url}?{changed}"))
    assert await content(sdk.blob_at(f"{url}?{token}")) == b"data"


async def test_a_token_can_say_how_the_answer_describes_itself(sdk: Sdk) -> None:
    container = await sdk.new_container()
    settings = ContentSettings(content_type="text/plain", cache_control="no-cache", content_language="en")
    await done(container.upload_blob("blob", b"data", content_settings=settings))
    token = blob_sas(
        sdk,
        container.container_name,
        "blob",
        BlobSasPermissions(read=True),
        content_disposition='attachment; filename="a b.csv"',
        content_type="text/csv; charset=utf-8",
        content_encoding="identity",
        cache_control="max-age=1",
    )
    client = sdk.blob_at(f"{container.url}/blob?{token}")
    found = (await done(client.get_blob_properties())).content_settings
    assert found.content_disposition == 'attachment; filename="a b.csv"'
    assert found.content_type == "text/csv; charset=utf-8"
    assert (found.content_encoding, found.cache_control) == ("identity", "max-age=1")
    assert found.content_language == "en"
    stream = await done(client.download_blob())
    assert stream.properties.content_settings.content_disposition == 'attachment; filename="a b.csv"'
    plain = (await done(sdk.blob_at(f"{container.url}/blob", sdk.key).get_blob_properties())).content_settings
    assert (plain.content_type, plain.content_disposition) == ("text/plain", None)


@pytest.mark.parametrize("name", ["with space", "a/b+c%d", "ünï/日本 😀", "quote'\"&<>#?"])
async def test_blobs_with_odd_names_can_be_shared(sdk: Sdk, name: str) -> None:
    container = await sdk.new_container()
    blob = await done(container.upload_blob(name, b"data"))
    token = blob_sas(sdk, container.container_name, name, BlobSasPermissions(read=True))
    assert await content(sdk.blob_at(f"{blob.url}?{token}")) == b"data"


async def test_a_token_as_a_credential(sdk: Sdk) -> None:
    container, url = await _prepare(sdk, _read)
    token = blob_sas(sdk, container, "blob", "r")
    assert await content(sdk.blob_at(url, token)) == b"data"
    assert await content(sdk.blob_at(url, AzureSasCredential(token))) == b"data"


# Stored access policies


async def test_a_stored_policy_sets_the_terms_of_a_token_and_revokes_them(sdk: Sdk) -> None:
    container = await sdk.new_container()
    await done(container.upload_blob("blob", b"data"))

    async def store(**policies: AccessPolicy) -> None:
        await done(container.set_container_access_policy(policies))

    read = AccessPolicy(ContainerSasPermissions(read=True), now() + HOUR, now() - HOUR)
    token = generate_blob_sas(
        ACCOUNT, container.container_name, "blob", account_key=sdk.key, policy_id="reader"
    )
    client = sdk.blob_at(f"{container.url}/blob?{token}")
    with refused(403, "AuthenticationFailed", ClientAuthenticationError):
        await content(client)
    await store(reader=read)
    assert await content(client) == b"data"
    with refused(403, "AuthorizationPermissionMismatch"):
        await done(client.delete_blob())

    await store(reader=AccessPolicy(ContainerSasPermissions(write=True), now() + HOUR))
    with refused(403, "AuthorizationPermissionMismatch"):
        await content(client)
    for expiry, start in ((now() - HOUR, None), (now() + 2 * HOUR, now() + HOUR)):
        await store(reader=AccessPolicy(ContainerSasPermissions(read=True), expiry, start))
        with refused(403, "AuthenticationFailed", ClientAuthenticationError):
            await content(client)
    await store(reader=read)
    assert await content(client) == b"data"
    await store(other=read)
    with refused(403, "AuthenticationFailed", ClientAuthenticationError):
        await content(client)


async def test_policy_and_token_complete_each_other_but_do_not_overlap(sdk: Sdk) -> None:
    container = await sdk.new_container()
    await done(container.upload_blob("blob", b"data"))
    policies = {
        "times": AccessPolicy(expiry=now() + HOUR),
        "letters": AccessPolicy(permission=ContainerSasPermissions(read=True, list=True)),
        "nothing": AccessPolicy(),
    }
    await done(container.set_container_access_policy(policies))

    def shared(policy: str, **terms: Any) -> Any:
        token = generate_container_sas(
            ACCOUNT, container.container_name, account_key=sdk.key, policy_id=policy, **terms
        )
        return sdk.container_at(f"{container.url}?{token}")

    assert await names(shared("times", permission="l").list_blobs()) == ["blob"]
    assert await names(shared("letters", expiry=now() + HOUR).list_blobs()) == ["blob"]
    assert await names(shared("nothing", permission="l", expiry=now() + HOUR).list_blobs()) == ["blob"]
    for policy, terms in (
        ("times", {}),
        ("letters", {}),
        ("nothing", {"permission": "l"}),
        ("times", {"permission": "l", "expiry": now() + HOUR}),
        ("letters", {"permission": "l", "expiry": now() + HOUR}),
    ):
        with refused(403, "AuthenticationFailed", ClientAuthenticationError):
            await names(shared(policy, **terms).list_blobs())


# Account tokens


async def test_an_account_token_works_from_the_service_down(sdk: Sdk) -> None:
    token = account_sas(
        sdk,
        ResourceTypes(service=True, container=True, object=True),
        AccountSasPermissions(read=True, write=True, delete=True, list=True, create=True),
    )
    service = sdk.service(f"{sdk.url}?{token}", credential=None)
    name = fresh_name()
    container = await done(service.create_container(name))
    await done(container.set_container_metadata({"a": "b"}))
    await done(container.upload_blob("blob", b"data"))
    assert await content(container.get_blob_client("blob")) == b"data"
    assert await names(container.list_blobs()) == ["blob"]
    assert await names(service.list_containers(name_starts_with=name)) == [name]
    await done(service.get_service_properties())
    for attempt in (container.get_container_access_policy, lambda: container.set_container_access_policy({})):
        with refused(403, "AuthorizationFailure"):
            await done(attempt())
    await done(container.delete_container())


async def test_resource_types_and_services_bound_an_account_token(sdk: Sdk) -> None:
    container = await sdk.new_container()
    await done(container.upload_blob("blob", b"data"))

    def client(types: str, **terms: Any) -> Any:
        return sdk.service(f"{sdk.url}?{account_sas(sdk, types, **terms)}", credential=None)

    async def list_containers(service: Any) -> None:
        await items(service.list_containers(name_starts_with=container.container_name))

    async def list_blobs(service: Any) -> None:
        await items(service.get_container_client(container.container_name).list_blobs())

    async def read(service: Any) -> None:
        await content(service.get_blob_client(container.container_name, "blob"))

    needs = {"s": list_containers, "c": list_blobs, "o": read}
    for types in ("s", "c", "o", "sc", "co", "so"):
        for needed, action in needs.items():
            if needed in types:
                await action(client(types))
            else:
                with refused(403, "AuthorizationResourceTypeMismatch"):
                    await action(client(types))
    with refused(403, "AuthorizationServiceMismatch"):
        await read(client("sco", services=Services(queue=True, fileshare=True)))
    await read(client("sco", services=Services(blob=True, queue=True)))


async def test_a_key_counts_and_not_the_token_beside_it(sdk: Sdk) -> None:
    container = await sdk.new_container()
    await done(container.upload_blob("blob", b"data"))
    url = f"{container.url}/blob?{blob_sas(sdk, container.container_name, 'blob', 'r')}"
    await done(sdk.blob_at(url, sdk.key).set_blob_metadata({"a": "1"}))
    with refused(403, "AuthenticationFailed", ClientAuthenticationError):
        await content(sdk.blob_at(url, OTHER_KEY))
