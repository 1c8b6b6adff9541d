"""Find Blobs by Tags over REST: its document, pages, permissions, and what is refused."""

import re
from datetime import timedelta
from itertools import product
from urllib.parse import quote

import pytest
from azure.storage.blob import (
    AccountSasPermissions,
    ContainerSasPermissions,
    ResourceTypes,
    generate_account_sas,
    generate_container_sas,
)

from kyanite.model.blobs import tag_search
from kyanite.services.rest.paging import encode_marker
from tests.services.harness import ACCOUNT, Answer, Harness
from tests.services.tokens import KEY, blob_token, in_an_hour

BLOCK = {"x-ms-blob-type": "BlockBlob"}
WHERE = quote("a='1'")
ACCOUNT_SCOPE, BOX_SCOPE = "/?comp=blobs", "/box?restype=container&comp=blobs"


async def put(blobs: Harness, path: str, form: str) -> None:
    await blobs("PUT", f"/{path.partition('/')[0]}?restype=container")
    assert (await blobs("PUT", f"/{path}", BLOCK | {"x-ms-tags": form}, b"")).status == 201


async def find(
    blobs: Harness, where: str, scope: str = ACCOUNT_SCOPE, more: str = "", **headers: str
) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await blobs("GET", f"{scope}&where={quote(where)}{more}", named)


def names(answer: Answer) -> list[str]:
    assert answer.status == 200, answer.body
    found = re.findall(r"<Name>([^<]*)</Name><ContainerName>([^<]*)<", answer.body.decode())
    return [f"{container}/{name}" for name, container in found]


async def test_the_document(blobs: Harness) -> None:
    await put(blobs, "box/a&b", "colour=red&size=1&other=x")
    answer = await find(blobs, "colour = 'red' AND size < '5'")
    assert answer.headers["content-type"] == "application/xml"
    assert answer.body.decode() == (
        '<?xml version="1.0" encoding="utf-8"?>'
        '<EnumerationResults ServiceEndpoint="http://localhost:10000/acme/">'
        "<Where>colour = 'red' AND size &lt; '5'</Where><Blobs>"
        "<Blob><Name>a&amp;b</Name><ContainerName>box</ContainerName>"
        "<Tags><TagSet><Tag><Key>colour</Key><Value>red</Value></Tag>"
        "<Tag><Key>size</Key><Value>1</Value></Tag></TagSet></Tags></Blob>"
        "</Blobs><NextMarker></NextMarker></EnumerationResults>"
    )


async def test_the_first_versions_returned_one_value(blobs: Harness) -> None:
    await put(blobs, "box/a", "colour=red&size=1")
    answer = await find(blobs, "size = '1'", x_ms_version="2019-12-12")
    assert "<ContainerName>box</ContainerName><TagValue>1</TagValue></Blob>" in answer.body.decode()
    answer = await find(blobs, "size = '1'", x_ms_version="2020-04-08")
    assert "<ContainerName>box</ContainerName><Tags>" in answer.body.decode()


async def test_both_scopes(blobs: Harness) -> None:
    await put(blobs, "box/a", "colour=red")
    await put(blobs, "bin/b", "colour=red")
    assert names(await find(blobs, "colour='red'")) == ["box/a", "bin/b"]
    assert names(await find(blobs, "colour='red'", BOX_SCOPE)) == ["box/a"]
    assert names(await find(blobs, "@container='bin' and colour='red'")) == ["bin/b"]
    assert names(await find(blobs, "colour='blue'")) == []
    assert (await find(blobs, "a='1'", "/none?restype=container&comp=blobs")).code == "ContainerNotFound"


@pytest.mark.parametrize("where", ["k = '1'", "k > '0'", "k = '1' AND l >= '00'"])
@pytest.mark.parametrize("size", [1, 3, 10])
async def test_pages(blobs: Harness, size: int, where: str) -> None:
    expected = []
    for number in range(10):
        name = f"b{number} \u00e9"
        await put(blobs, quote(f"box/{name}"), f"k=1&l={number:02}")
        expected.append(f"box/{name}")
    found, marker = [], ""
    for _ in range(20):
        answer = await find(blobs, where, more=f"&maxresults={size}&marker={quote(marker)}")
        page = names(answer)
        assert len(page) <= size
        found += page
        marker = re.findall(r"<NextMarker>(.*)</NextMarker>", answer.body.decode())[0]
        if not marker:
            break
    assert found == expected


async def test_a_page_may_end_early_and_then_has_a_marker(
    blobs: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tag_search, "ROWS_MAX", 20)
    for number in range(40):
        await put(blobs, f"box/b{number:02}", f"a=1&b={number}")
    answer = await find(blobs, "a='1' AND b>='0'")
    marker = re.findall(r"<NextMarker>(.+)</NextMarker>", answer.body.decode())[0]
    first = names(answer)
    assert 0 < len(first) < 40
    monkeypatch.undo()
    rest = names(await find(blobs, "a='1' AND b>='0'", more=f"&marker={quote(marker)}"))
    assert first + rest == [f"box/b{number:02}" for number in range(40)]


@pytest.mark.parametrize(
    ("scope", "where", "more", "code"),
    [
        (ACCOUNT_SCOPE, "", "", "InvalidQueryParameterValue"),
        (ACCOUNT_SCOPE, "a", "", "InvalidQueryParameterValue"),
        (ACCOUNT_SCOPE, "a='1' OR b='1'", "", "InvalidQueryParameterValue"),
        (ACCOUNT_SCOPE, "a<>'1'", "", "InvalidQueryParameterValue"),
        (ACCOUNT_SCOPE, "@container='box'", "", "InvalidQueryParameterValue"),
        (BOX_SCOPE, "@container='box' AND a='1'", "", "InvalidQueryParameterValue"),
        (ACCOUNT_SCOPE, "a='1'", "&maxresults=0", "OutOfRangeQueryParameterValue"),
        (ACCOUNT_SCOPE, "a='1'", "&maxresults=x", "InvalidQueryParameterValue"),
        (ACCOUNT_SCOPE, "a='1'", "&marker=x", "InvalidQueryParameterValue"),
        *[
            (ACCOUNT_SCOPE, "a='1'", f"&marker={quote(encode_marker(text))}", "InvalidQueryParameterValue")
            for text in (
                "0",
                "0:x",
                "1:1:64:0:0:0:",  # There is no second way.
                "0:1:0:0:0:0:",  # Tried with no rows.
                "0:0:64:0:0:0:",
                "0:2:64:0:0:0:",
                "-1:1:64:0:0:0:",
                "0:1:9999999999999:0:0:0:",
                "0:1:64:0:0:0:\u2713",
                f"0:1:64:0:9999:0:{'x' * 9999}",
                f"0:1:64:0:0:0:{'x' * 9999}",
            )
        ],
        (ACCOUNT_SCOPE, "a='1'", "&include=other", "InvalidQueryParameterValue"),
        (ACCOUNT_SCOPE, "a='1'", "&include=versions", "NotImplemented"),
    ],
)
async def test_what_is_refused(blobs: Harness, scope: str, where: str, more: str, code: str) -> None:
    await put(blobs, "box/a", "a=1")
    answer = await find(blobs, where, scope, more)
    assert answer.code == code


async def test_a_marker_leads_nowhere_else(blobs: Harness) -> None:
    """Whatever position a marker has, the search stays within its account and its containers."""
    await put(blobs, "box/a", "a=1&b=1")
    await put(blobs, "bin/b", "a=1&b=1")
    for way, at in product("01", ("", "\0", "1", "1\0", "\xff", "z", "1\0\x7f")):
        marker = quote(encode_marker(f"{way}:1:64:0:{len(at)}:0:{at}"))
        for where in ("a='1' AND b>'0'", "a>'0' AND b='1'"):
            found = names(await find(blobs, where, BOX_SCOPE, f"&marker={marker}"))
            assert set(found) <= {"box/a"}


async def test_the_expression_is_needed(blobs: Harness) -> None:
    answer = await blobs("GET", ACCOUNT_SCOPE)
    assert (answer.status, answer.code) == (400, "MissingRequiredQueryParameter")


@pytest.mark.parametrize(
    ("scope", "version", "status"),
    [
        (ACCOUNT_SCOPE, "2019-10-10", 400),
        (ACCOUNT_SCOPE, "2019-12-12", 200),
        (BOX_SCOPE, "2020-12-06", 400),
        (BOX_SCOPE, "2021-04-10", 200),
    ],
)
async def test_older_versions(blobs: Harness, scope: str, version: str, status: int) -> None:
    await put(blobs, "box/a", "a=1")
    assert (await find(blobs, "a='1'", scope, x_ms_version=version)).status == status


async def test_renamed_and_restored_containers(blobs: Harness) -> None:
    await put(blobs, "box/a", "a=1")
    await blobs("PUT", "/new?restype=container&comp=rename", {"x-ms-source-container-name": "box"})
    assert names(await find(blobs, "a='1'")) == ["new/a"]
    await blobs("DELETE", "/new?restype=container")
    assert names(await find(blobs, "a='1'")) == []


# Permissions


def account_token(blobs: Harness, permission: str, types: str) -> str:
    return str(
        generate_account_sas(
            ACCOUNT.name,
            KEY,
            ResourceTypes.from_string(types),  # type: ignore[no-untyped-call]
            AccountSasPermissions.from_string(permission),  # type: ignore[no-untyped-call]
            in_an_hour(blobs),
        )
    )


def container_token(blobs: Harness, permission: str) -> str:
    return str(
        generate_container_sas(
            ACCOUNT.name,
            "box",
            account_key=KEY,
            permission=ContainerSasPermissions.from_string(permission),
            expiry=in_an_hour(blobs) + timedelta(hours=1),
        )
    )


async def test_a_search_needs_its_own_permission(blobs: Harness) -> None:
    await put(blobs, "box/a", "a=1")

    async def sent(scope: str, token: str) -> tuple[int, str]:
        answer = await blobs("GET", f"{scope}&where={WHERE}&{token}", sign=False)
        return answer.status, answer.headers.get("x-ms-error-code", "")

    mismatch = (403, "AuthorizationPermissionMismatch")
    for scope in (ACCOUNT_SCOPE, BOX_SCOPE):
        assert await sent(scope, account_token(blobs, "f", "o")) == (200, "")
        assert await sent(scope, account_token(blobs, "rlt", "sco")) == mismatch
        assert await sent(scope, account_token(blobs, "f", "sc")) == (
            403,
            "AuthorizationResourceTypeMismatch",
        )
    assert await sent(BOX_SCOPE, container_token(blobs, "f")) == (200, "")
    assert await sent(BOX_SCOPE, container_token(blobs, "rlt")) == mismatch
    assert (await sent(ACCOUNT_SCOPE, container_token(blobs, "f")))[0] == 403
    assert (await sent(BOX_SCOPE, blob_token(blobs, "a", permission="rt")))[0] == 403
    assert (await blobs("GET", f"{BOX_SCOPE}&where={WHERE}", sign=False)).status == 401
