"""Who may do what to shares, directories and files with a shared access signature."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.fileshare import (
    FileSasPermissions,
    ShareSasPermissions,
    generate_account_sas,
    generate_file_sas,
    generate_share_sas,
)

from tests.services.files.builders import ACQUIRE, FILE, make
from tests.services.harness import ACCOUNT, Harness

KEY = base64.b64encode(ACCOUNT.keys[0]).decode()
HERE = "http://localhost:10000/acme"
DENIED = {
    "AuthenticationFailed",
    "AuthorizationFailure",
    "AuthorizationPermissionMismatch",
    "AuthorizationResourceTypeMismatch",
}
SIZED = FILE | {"x-ms-content-length": "1"}
CLEAR = {"x-ms-write": "clear", "x-ms-range": "bytes=0-0"}
BREAK = {"x-ms-lease-action": "break"}

IN_SHARE = [
    # What is asked for, the letters of which one is enough.
    ("PUT", "/box/new", SIZED, "cw"),
    ("GET", "/box/f?", {}, "r"),
    ("HEAD", "/box/f?", {}, "r"),
    ("PUT", "/box/f?comp=properties", {}, "w"),
    ("GET", "/box/f?comp=metadata", {}, "r"),
    ("PUT", "/box/f?comp=metadata", {}, "w"),
    ("PUT", "/box/f?comp=range", CLEAR, "w"),
    ("GET", "/box/f?comp=rangelist", {}, "r"),
    ("PUT", "/box/f?comp=lease", ACQUIRE, "w"),
    ("PUT", "/box/f?comp=lease", BREAK, "wd"),
    ("PUT", "/box/f?comp=rename", {"x-ms-file-rename-source": f"{HERE}/box/none"}, "w"),
    ("DELETE", "/box/f?", {}, "d"),
    ("PUT", "/box/new?restype=directory", {}, "cw"),
    ("GET", "/box/d?restype=directory", {}, "r"),
    ("PUT", "/box/d?restype=directory&comp=metadata", {}, "w"),
    ("GET", "/box/d?restype=directory&comp=list", {}, "l"),
    ("DELETE", "/box/d?restype=directory", {}, "d"),
    ("GET", "/box/d?comp=listhandles", {}, "r"),
    ("PUT", "/box/d?comp=forceclosehandles", {"x-ms-handle-id": "*"}, "w"),
]
OF_SHARE = [
    ("GET", "/box?restype=share", {}, "r"),
    ("GET", "/box?restype=share&comp=stats", {}, "r"),
    ("PUT", "/box?restype=share&comp=metadata", {}, "w"),
    ("PUT", "/box?restype=share&comp=properties", {}, "w"),
    ("PUT", "/box?restype=share&comp=snapshot", {}, "cw"),
    ("PUT", "/box?restype=share&comp=lease", BREAK, "wd"),
    ("DELETE", "/box?restype=share", {}, "d"),
    ("GET", "/box?restype=share&comp=acl", {}, ""),
]


def later(files: Harness) -> datetime:
    return datetime(1, 1, 1, tzinfo=UTC) + timedelta(microseconds=files.clock.now // 10, hours=1)


def share_token(files: Harness, letters: str) -> str:
    allowed = ShareSasPermissions.from_string(letters)
    return str(generate_share_sas("acme", "box", KEY, permission=allowed, expiry=later(files)))


def account_token(files: Harness, letters: str, kinds: str) -> str:
    return str(generate_account_sas("acme", KEY, kinds, letters, later(files)))


async def furnish(files: Harness) -> None:
    await files("PUT", "/box/f?comp=lease", BREAK)
    await make(files, data=b"1")
    await files("PUT", "/box/d?restype=directory")


async def is_allowed(
    files: Harness, method: str, target: str, headers: dict[str, str], token: str, body: bytes = b""
) -> bool:
    joined = f"{target}{'' if target.endswith('?') else '&' if '?' in target else '?'}{token}"
    answer = await files(method, joined, headers, body, sign=False)
    assert answer.status < 500
    return answer.code not in DENIED


@pytest.mark.parametrize("letter", "rcwdl")
async def test_a_signature_for_the_share_opens_what_its_letters_say(files: Harness, letter: str) -> None:
    for method, target, headers, letters in IN_SHARE:
        await furnish(files)
        allowed = await is_allowed(files, method, target, headers, share_token(files, letter))
        assert allowed == (letter in letters), (method, target)
    for method, target, headers, _ in OF_SHARE:
        assert not await is_allowed(files, method, target, headers, share_token(files, letter)), target


@pytest.mark.parametrize("letter", "rcwdl")
async def test_a_signature_for_the_account_opens_what_its_letters_and_types_say(
    files: Harness, letter: str
) -> None:
    for kind, table in (("o", IN_SHARE), ("c", OF_SHARE)):
        for method, target, headers, letters in table:
            await furnish(files)
            needed = "c" if "comp=list" in target and "handles" not in target else kind
            for kinds in "sco":
                token = account_token(files, letter, kinds)
                allowed = await is_allowed(files, method, target, headers, token)
                assert allowed == (letter in letters and kinds == needed), (method, target, kinds)


@pytest.mark.parametrize("letter", "rcwd")
async def test_a_signature_for_a_file_opens_no_other(files: Harness, letter: str) -> None:
    allowed = FileSasPermissions.from_string(letter)
    for method, target, headers, letters in IN_SHARE:
        await furnish(files)
        for name in ("f", "d", "new", "other"):
            token = generate_file_sas("acme", "box", [name], KEY, permission=allowed, expiry=later(files))
            named = target.split("?")[0] == f"/box/{name}"
            found = await is_allowed(files, method, target, headers, token)
            assert found == (named and letter in letters), (method, target, name)


async def test_who_may_only_create_does_not_overwrite(files: Harness) -> None:
    await furnish(files)
    creator, writer = share_token(files, "c"), share_token(files, "w")
    copy = {"x-ms-copy-source": f"{HERE}/box/f?{share_token(files, 'r')}"}
    for headers, status in ((SIZED, 201), (copy, 202)):
        refused = await files("PUT", f"/box/f?{creator}", headers, sign=False)
        assert (refused.status, refused.code) == (403, "AuthorizationPermissionMismatch")
        assert (await files("PUT", f"/box/f?{writer}", headers, sign=False)).status == status


async def test_a_rename_needs_a_signature_at_both_ends(files: Harness) -> None:
    await furnish(files)
    write, read, both_letters = (share_token(files, letters) for letters in ("w", "r", "rw"))
    for token, source, status in (
        (write, "", 401),
        (read, both_letters, 403),
        (write, read, 403),
        (write, write, 403),
    ):
        moved = {"x-ms-file-rename-source": f"{HERE}/box/f?{source}"}
        refused = await files("PUT", f"/box/g?comp=rename&{token}", moved, sign=False)
        assert refused.status == status, refused.code
    both = {"x-ms-file-rename-source": f"{HERE}/box/f?{both_letters}"}
    assert (await files("PUT", f"/box/g?comp=rename&{write}", both, sign=False)).status == 200
