from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.rules import names
from kyanite.rules.refusals import Reason, Refused

LABELS = [
    ("abc", None),
    ("a1b2", None),
    ("123", None),
    ("a-b-c", None),
    ("a" * 63, None),
    ("ab", Reason.NAME_LENGTH_OUT_OF_RANGE),
    ("", Reason.NAME_LENGTH_OUT_OF_RANGE),
    ("a" * 64, Reason.NAME_LENGTH_OUT_OF_RANGE),
    ("Abc", Reason.INVALID_RESOURCE_NAME),
    ("-abc", Reason.INVALID_RESOURCE_NAME),
    ("abc-", Reason.INVALID_RESOURCE_NAME),
    ("a--b", Reason.INVALID_RESOURCE_NAME),
    ("a_b", Reason.INVALID_RESOURCE_NAME),
    ("a.b", Reason.INVALID_RESOURCE_NAME),
    ("a b", Reason.INVALID_RESOURCE_NAME),
    ("caf\u00e9", Reason.INVALID_RESOURCE_NAME),
    ("abc\n", Reason.INVALID_RESOURCE_NAME),
    ("٣٣٣", Reason.INVALID_RESOURCE_NAME),
    ("$other", Reason.INVALID_RESOURCE_NAME),
]


@pytest.mark.parametrize("check", [names.check_container, names.check_queue, names.check_share])
@pytest.mark.parametrize(("name", "reason"), LABELS)
def test_labels(check: Callable[[str], None], name: str, reason: Reason | None) -> None:
    if reason is None:
        check(name)
        return
    with pytest.raises(Refused) as caught:
        check(name)
    assert caught.value.reason is reason


@pytest.mark.parametrize("name", ["$root", "$web", "$logs", "$blobchangefeed"])
def test_special_names_are_containers_only(name: str) -> None:
    names.check_container(name)
    for check in (names.check_queue, names.check_share):
        with pytest.raises(Refused):
            check(name)


@pytest.mark.parametrize(
    ("name", "legal"),
    [
        ("abc", True),
        ("devstoreaccount1", True),
        ("a" * 24, True),
        ("ab", False),
        ("a" * 25, False),
        ("Abc", False),
        ("a-b", False),
        ("", False),
        ("abc\n", False),
    ],
)
def test_accounts(name: str, legal: bool) -> None:
    assert names.is_account(name) == legal


LONG, BAD = Reason.NAME_LENGTH_OUT_OF_RANGE, Reason.INVALID_RESOURCE_NAME
BLOBS = [
    ("b", None),
    ("a b+c/é€/\U0001f600", None),
    ("a//b/", None),
    ("trailing.", None),
    ("dir1/dir2/file\uffff.blob", None),
    ("a" * 1024, None),
    ("é" * 1024, None),
    ("\U0001f600" * 512, None),
    ("/".join("a" * 254), None),
    ("\x7f", None),
    ("\x81", None),
    ("", LONG),
    ("a" * 1025, LONG),
    ("\U0001f600" * 513, LONG),
    ("/".join("a" * 255), BAD),
    ("a\x00", BAD),
    ("a\nb", BAD),
    ("\x1f", BAD),
    ("\x80", BAD),
    ("\x9f", BAD),
]


@pytest.mark.parametrize(("name", "reason"), BLOBS)
def test_blobs(name: str, reason: Reason | None) -> None:
    if reason is None:
        names.check_blob(name)
        return
    with pytest.raises(Refused) as caught:
        names.check_blob(name)
    assert caught.value.reason is reason


def test_the_root_container_has_no_folders() -> None:
    names.check_blob("plain", "$root")
    names.check_blob("with/slash", "cont")
    with pytest.raises(Refused):
        names.check_blob("with/slash", "$root")


@given(st.text("ab1-", max_size=66))
def test_labels_by_their_definition(name: str) -> None:
    legal = 3 <= len(name) <= 63 and "--" not in name and not name.startswith("-") and not name.endswith("-")
    if legal:
        names.check_queue(name)
    else:
        with pytest.raises(Refused):
            names.check_queue(name)


def test_a_backslash_is_a_slash() -> None:
    assert names.blob_name("a\\b/c\\") == "a/b/c/"
