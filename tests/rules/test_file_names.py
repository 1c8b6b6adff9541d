"""Legal names of files and directories, and which of them are one."""

import pytest

from kyanite.rules.file_names import SmbPath, fold, is_short, split, split_smb
from kyanite.rules.refusals import Reason, Refused

LEGAL = [
    ("", ()),
    ("a", ("a",)),
    ("a/b/c", ("a", "b", "c")),
    ("a/", ("a",)),
    ("a b/ c", ("a b", " c")),
    ("x" * 255, ("x" * 255,)),
    ("#%&+=[]{}!@$^()~`',;-_", ("#%&+=[]{}!@$^()~`',;-_",)),
    ("ÄÖÜ/日本語/😀", ("ÄÖÜ", "日本語", "😀")),
    ("CON1/COM0/console/LPT10", ("CON1", "COM0", "console", "LPT10")),
    ("nul.txt", ("nul.txt",)),
    (".hidden/..b", (".hidden", "..b")),
    ("a./b..", ("a", "b")),
    ("/".join("d" * 250), tuple("d" * 250)),
]


@pytest.mark.parametrize(("path", "names"), LEGAL)
def test_a_path_is_its_names(path: str, names: tuple[str, ...]) -> None:
    assert split(path) == names


ILLEGAL = [
    *((f"a{character}b", Reason.INVALID_RESOURCE_NAME) for character in '"\\:|<>*?\x00\x1f\x7f'),
    *((f"dir/{name}", Reason.INVALID_RESOURCE_NAME) for name in ("CON", "prn", "Aux", "NUL", "com1", "LPT9")),
    ("CLOCK$", Reason.INVALID_RESOURCE_NAME),
    ("NUL.", Reason.INVALID_RESOURCE_NAME),
    ("x\ud800", Reason.INVALID_RESOURCE_NAME),
    (".", Reason.INVALID_PATH_NAME),
    ("a/../b", Reason.INVALID_PATH_NAME),
    ("...", Reason.INVALID_PATH_NAME),
    ("a//b", Reason.INVALID_PATH_NAME),
    ("/a", Reason.INVALID_PATH_NAME),
    ("x" * 256, Reason.INVALID_PATH_NAME),
    ("😀" * 128, Reason.INVALID_PATH_NAME),
    ("/".join("d" * 251), Reason.INVALID_PATH_NAME),
    ("/".join(["x" * 250] * 9), Reason.INVALID_PATH_NAME),
]


@pytest.mark.parametrize(("path", "reason"), ILLEGAL)
def test_what_cannot_be_a_name_is_refused(path: str, reason: Reason) -> None:
    with pytest.raises(Refused) as refusal:
        split(path)
    assert refusal.value.reason is reason


def test_trailing_dots_stay_if_the_request_wants_them() -> None:
    assert split("a./b..", keeps_trailing_dots=True) == ("a.", "b..")
    assert split("...", keeps_trailing_dots=True) == ("...",)
    with pytest.raises(Refused):
        split("a/..", keeps_trailing_dots=True)


@pytest.mark.parametrize(
    ("one", "other"), [("abc", "ABC"), ("Größe", "GRÖßE"), ("éñж", "ÉÑЖ"), ("readme.TXT", "ReadMe.txt")]
)
def test_names_that_differ_in_case_are_one(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("a", "b"), ("straße", "STRASSE"), ("ı", "I"), ("ſ", "S"), ("𐐨", "𐐀"), ("é", "e\u0301")],
)
def test_names_that_differ_otherwise_are_two(one: str, other: str) -> None:
    assert fold(one) != fold(other)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("README", True),
        ("file.txt", True),
        ("a~1.b", True),
        ("12345678.123", True),
        ("123456789", False),
        ("a.1234", False),
        ("a.b.c", False),
        (".a", False),
        ("a.", False),
        ("a b", False),
        ("ä", False),
        ("", False),
    ],
)
def test_names_in_the_form_of_dos(name: str, expected: bool) -> None:
    assert is_short(name) == expected


# --- Over SMB

SMB_PATHS: list[tuple[str, SmbPath]] = [
    ("", SmbPath(())),
    ("a", SmbPath(("a",))),
    ("a\\b.txt", SmbPath(("a", "b.txt"))),
    ("a\\", SmbPath(("a",), is_marked_directory=True)),
    ("a.\\b ..", SmbPath(("a.", "b .."))),
    ("a\\..\\b", SmbPath(("b",))),
    ("a\\..", SmbPath(())),
    ("a::$DATA", SmbPath(("a",), names_data=True)),
    ("a\\b::$data", SmbPath(("a", "b"), names_data=True)),
    ("x" * 255, SmbPath(("x" * 255,))),
    ("\\".join("d" * 250), SmbPath(("d",) * 250)),
]


@pytest.mark.parametrize(("path", "expected"), SMB_PATHS)
def test_paths_over_smb(path: str, expected: SmbPath) -> None:
    assert split_smb(path) == expected


SMB_ILLEGAL: list[tuple[str, Reason]] = [
    ("\\a", Reason.INVALID_PARAMETER),
    ("/a", Reason.INVALID_PARAMETER),
    ("\\", Reason.INVALID_PARAMETER),
    ("a/", Reason.INVALID_PATH_NAME),
    ("a/b", Reason.INVALID_RESOURCE_NAME),
    ("a\\\\b", Reason.INVALID_PATH_NAME),
    (".", Reason.INVALID_PATH_NAME),
    ("a\\.", Reason.INVALID_PATH_NAME),
    ("a\\.\\b", Reason.PARENT_NOT_FOUND),
    ("..", Reason.PATH_OUTSIDE_SHARE),
    ("a\\..\\..\\b", Reason.PATH_OUTSIDE_SHARE),
    ("::$DATA", Reason.INVALID_PATH_NAME),
    ("a:b", Reason.INVALID_RESOURCE_NAME),
    ("a:b:$DATA", Reason.INVALID_RESOURCE_NAME),
    ("a*", Reason.INVALID_RESOURCE_NAME),
    ("a\0", Reason.INVALID_RESOURCE_NAME),
    ("NUL", Reason.INVALID_RESOURCE_NAME),
    ("x" * 256, Reason.INVALID_PATH_NAME),
    ("\\".join("d" * 251), Reason.INVALID_PATH_NAME),
    ("\\".join(["x" * 250] * 9), Reason.INVALID_PATH_NAME),
]


@pytest.mark.parametrize(("path", "reason"), SMB_ILLEGAL)
def test_what_is_no_path_over_smb(path: str, reason: Reason) -> None:
    with pytest.raises(Refused) as refusal:
        split_smb(path)
    assert refusal.value.reason is reason
