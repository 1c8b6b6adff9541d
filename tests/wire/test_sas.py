from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import pytest
from azure.storage.blob import generate_account_sas, generate_blob_sas, generate_container_sas
from azure.storage.blob._shared.shared_access_signature import SharedAccessSignature
from azure.storage.blob._shared_access_signature import BlobSharedAccessSignature

from kyanite.edm import SasKeyRange
from kyanite.values import instant_from_datetime
from kyanite.wire import sas, shared_key
from kyanite.wire.malformed import Malformed
from kyanite.wire.sas import AccountSas, ResponseOverrides, ServiceSas, UserDelegationSas
from kyanite.wire.uri import decode_query
from tests.wire.sdk_signing import ACCOUNT, KEY, KEY_TEXT, OTHER_KEY

EXPIRY = datetime(2030, 1, 1, tzinfo=UTC)
START = datetime(2020, 1, 1, tzinfo=UTC)
SNAPSHOT = "2024-05-01T12:34:56.1234567Z"


def read(token: str, service: str = "blob") -> sas.Sas | None:
    return sas.decode(decode_query(token), service)


def read_service(token: str, service: str = "blob") -> ServiceSas:
    found = read(token, service)
    assert isinstance(found, ServiceSas)
    return found


def read_account(token: str) -> AccountSas:
    found = read(token)
    assert isinstance(found, AccountSas)
    return found


def account_is_right(found: AccountSas, keys: tuple[bytes, ...] = (KEY,)) -> bool:
    return sas.verify(keys, found.string_to_sign(ACCOUNT), found.signature)


def is_right(
    found: ServiceSas, container: str, name: str = "", moment: str = "", account: str = ACCOUNT
) -> bool:
    return sas.verify((KEY,), found.string_to_sign(account, container, name, moment), found.signature)


# Account SAS, made by the official client.

ACCOUNT_TOKENS: dict[str, dict[str, Any]] = {
    "least": {},
    "start": {"start": START},
    "address": {"ip": "10.0.0.1"},
    "addresses": {"ip": "10.0.0.1-10.0.0.9"},
    "protocol": {"protocol": "https"},
    "both protocols": {"protocol": "https,http"},
    "encryption scope": {"encryption_scope": "scope1"},
    "services": {"services": "bqtf"},
    "everything": {
        "start": START,
        "ip": "10.0.0.1",
        "protocol": "https",
        "services": "fb",
        "encryption_scope": "s",
    },
}


@pytest.mark.parametrize("case", ACCOUNT_TOKENS)
def test_account_tokens_of_the_client(case: str) -> None:
    token = generate_account_sas(ACCOUNT, KEY_TEXT, "sco", "rwdlac", EXPIRY, **ACCOUNT_TOKENS[case])
    found = read_account(token)
    assert account_is_right(found)
    assert account_is_right(found, (OTHER_KEY, KEY))
    assert not account_is_right(found, (OTHER_KEY,))
    assert not sas.verify((KEY,), found.string_to_sign("otheraccount"), found.signature)


def test_what_an_account_token_says() -> None:
    token = generate_account_sas(
        ACCOUNT, KEY_TEXT, "co", "rl", EXPIRY, START, "10.0.0.1-10.0.1.0", services="bq", protocol="https"
    )
    found = read_account(token)
    assert (found.services, found.resource_types, found.permissions) == ("bq", "co", "rl")
    assert found.terms == sas.Terms(
        instant_from_datetime(START), instant_from_datetime(EXPIRY), (0x0A000001, 0x0A000100), https_only=True
    )


def test_letters_of_an_account_token_come_in_any_order_and_are_signed_as_sent() -> None:
    token = SharedAccessSignature(ACCOUNT, KEY_TEXT).generate_account("fb", "os", "lwr", EXPIRY)  # type: ignore[no-untyped-call]
    found = read_account(token)
    assert account_is_right(found)
    assert found.permissions == "lwr"


def test_account_tokens_before_encryption_scopes() -> None:
    text = f"{ACCOUNT}\nr\nb\no\n\n2030-01-01\n\n\n2020-10-02\n"
    signature = shared_key.sign(KEY, text)
    token = urlencode(
        {"sv": "2020-10-02", "ss": "b", "srt": "o", "sp": "r", "se": "2030-01-01", "sig": signature}
    )
    assert account_is_right(read_account(token))
    assert not account_is_right(read_account(token.replace("2020-10-02", "2020-12-06")))


# Service SAS for blobs and containers, made by the official client.

BLOB_TOKENS: dict[str, dict[str, Any]] = {
    "least": {},
    "start": {"start": START},
    "address": {"ip": "10.0.0.1"},
    "protocol": {"protocol": "https"},
    "policy": {"policy_id": "policy one", "permission": None, "expiry": None},
    "encryption scope": {"encryption_scope": "scope1"},
    "one override": {"content_type": "text/html; charset=utf-8"},
    "every override": {
        "cache_control": "no-cache",
        "content_disposition": 'attachment; filename="a b+c.txt"',
        "content_encoding": "gzip",
        "content_language": "de",
        "content_type": "text/plain",
    },
}

BLOB_NAMES = ["b", "a b+c", "dir/é€/x", "100%", "a//b", "?&=#"]


@pytest.mark.parametrize("case", BLOB_TOKENS)
@pytest.mark.parametrize("name", BLOB_NAMES)
def test_blob_tokens_of_the_client(case: str, name: str) -> None:
    options = {"permission": "racwd", "expiry": EXPIRY, **BLOB_TOKENS[case]}
    found = read_service(generate_blob_sas(ACCOUNT, "cont", name, account_key=KEY_TEXT, **options))
    assert found.resource == "b"
    assert is_right(found, "cont", name)
    assert is_right(found, "cont", name, moment=SNAPSHOT), "a blob's token is not bound to a moment"
    assert not is_right(found, "cont", name + "x")
    assert not is_right(found, "cont2", name)
    assert not is_right(found, "cont", name, account="otheraccount")
    assert not is_right(found, "cont")


@pytest.mark.parametrize("case", BLOB_TOKENS)
def test_container_tokens_of_the_client(case: str) -> None:
    options = {"permission": "racwdl", "expiry": EXPIRY, **BLOB_TOKENS[case]}
    found = read_service(generate_container_sas(ACCOUNT, "cont", account_key=KEY_TEXT, **options))
    assert found.resource == "c"
    assert is_right(found, "cont")
    assert is_right(found, "cont", "any/blob")
    assert not is_right(found, "cont2")


@pytest.mark.parametrize(("option", "resource"), [("snapshot", "bs"), ("version_id", "bv")])
def test_tokens_for_one_moment(option: str, resource: str) -> None:
    moment: dict[str, Any] = {option: SNAPSHOT}
    token = generate_blob_sas(
        ACCOUNT, "cont", "b", account_key=KEY_TEXT, permission="r", expiry=EXPIRY, **moment
    )
    found = read_service(token)
    assert found.resource == resource
    assert is_right(found, "cont", "b", SNAPSHOT)
    assert not is_right(found, "cont", "b"), "the base blob is not shared"
    assert not is_right(found, "cont", "b", SNAPSHOT.replace("7Z", "8Z"))


@pytest.mark.parametrize(
    ("name", "right"),
    [("d1/d2/file", True), ("d1/d2", True), ("d1/d2/d3/f", True), ("d1/x/f", False), ("d1", False)],
)
def test_a_directory_opens_all_below_it(name: str, right: bool) -> None:
    token = BlobSharedAccessSignature(ACCOUNT, KEY_TEXT).generate_blob(
        "cont", "d1/d2", permission="r", expiry=EXPIRY, is_directory=True
    )
    found = read_service(token)
    assert (found.resource, found.directory_depth) == ("d", 2)
    assert is_right(found, "cont", name) == right


def test_what_a_service_token_says() -> None:
    token = generate_blob_sas(
        ACCOUNT, "cont", "b", account_key=KEY_TEXT, permission="rw", expiry=EXPIRY, content_type="a/b"
    )
    found = read_service(token)
    assert (found.permissions, found.identifier) == ("rw", None)
    assert found.overrides == ResponseOverrides(None, None, None, None, "a/b")
    assert found.terms.expires_at == instant_from_datetime(EXPIRY)
    policy = read_service(generate_blob_sas(ACCOUNT, "cont", "b", account_key=KEY_TEXT, policy_id="p"))
    assert (policy.permissions, policy.identifier, policy.overrides) == (None, "p", None)


FULL_TOKEN = generate_blob_sas(
    ACCOUNT,
    "cont",
    "b",
    account_key=KEY_TEXT,
    permission="r",
    expiry=EXPIRY,
    start=START,
    ip="10.0.0.1",
    protocol="https",
    cache_control="cc",
    content_disposition="cd",
    content_encoding="ce",
    content_language="cl",
    content_type="ct",
    encryption_scope="es",
)
CHANGES = {
    "sp": "rw",
    "st": "2020-01-01T00:00:01Z",
    "se": "2031-01-01T00:00:00Z",
    "sip": "10.0.0.2",
    "spr": "https,http",
    "sv": "2026-06-06",
    "sr": "c",
    "ses": "x",
    "rscc": "x",
    "rscd": "x",
    "rsce": "x",
    "rscl": "x",
    "rsct": "x",
    "si": "x",
    "sig": "x" * 43 + "=",
}


@pytest.mark.parametrize("field", CHANGES)
def test_a_changed_field_is_refused(field: str) -> None:
    fields = dict(parse_qsl(FULL_TOKEN))
    assert is_right(read_service(urlencode(fields)), "cont", "b")
    assert fields.get(field) != CHANGES[field]
    fields[field] = CHANGES[field]
    assert not is_right(read_service(urlencode(fields)), "cont", "b")


@pytest.mark.parametrize("field", ["st", "sip", "spr", "ses", "rscc", "rscd", "rsce", "rscl", "rsct", "sv"])
def test_a_dropped_field_is_refused(field: str) -> None:
    fields = dict(parse_qsl(FULL_TOKEN))
    del fields[field]
    assert not is_right(read_service(urlencode(fields)), "cont", "b")


# The rows of the reference's tables: service, version, the lines that are signed.

LINES = {
    "sp": "r",
    "st": "2020-01-01",
    "se": "2030-01-01",
    "si": "p",
    "sip": "10.0.0.1",
    "spr": "https",
    "sr": "b",
    "ses": "scope",
    "rscc": "cc",
    "rscd": "cd",
    "rsce": "ce",
    "rscl": "cl",
    "rsct": "ct",
    "spk": "k1",
    "srk": "k2",
    "epk": "k3",
    "erk": "k4",
}
OVERRIDES = "rscc rscd rsce rscl rsct"
LAYOUTS = [
    ("blob", "2026-10-06", "/blob/acc/cont/b", f"sp st se R si sip spr sv sr - ses {OVERRIDES}"),
    ("blob", "2020-12-06", "/blob/acc/cont/b", f"sp st se R si sip spr sv sr - ses {OVERRIDES}"),
    ("blob", "2020-10-02", "/blob/acc/cont/b", f"sp st se R si sip spr sv sr - {OVERRIDES}"),
    ("blob", "2018-11-09", "/blob/acc/cont/b", f"sp st se R si sip spr sv sr - {OVERRIDES}"),
    ("blob", "2018-03-28", "/blob/acc/cont/b", f"sp st se R si sip spr sv {OVERRIDES}"),
    ("blob", "2015-04-05", "/blob/acc/cont/b", f"sp st se R si sip spr sv {OVERRIDES}"),
    ("blob", "2015-02-21", "/blob/acc/cont/b", f"sp st se R si sv {OVERRIDES}"),
    ("blob", "2014-02-14", "/acc/cont/b", f"sp st se R si sv {OVERRIDES}"),
    ("blob", "2013-08-15", "/acc/cont/b", f"sp st se R si sv {OVERRIDES}"),
    ("blob", "2012-02-12", "/acc/cont/b", "sp st se R si sv"),
    ("blob", "2011-08-18", "/acc/cont/b", "sp st se R si"),
    ("blob", "", "/acc/cont/b", "sp st se R si"),
    ("dfs", "2020-12-06", "/blob/acc/cont/b", f"sp st se R si sip spr sv sr - ses {OVERRIDES}"),
    ("file", "2026-10-06", "/file/acc/cont/b", f"sp st se R si sip spr sv {OVERRIDES}"),
    ("file", "2015-04-05", "/file/acc/cont/b", f"sp st se R si sip spr sv {OVERRIDES}"),
    ("file", "2015-02-21", "/file/acc/cont/b", f"sp st se R si sv {OVERRIDES}"),
    ("queue", "2026-10-06", "/queue/acc/cont", "sp st se R si sip spr sv"),
    ("queue", "2015-04-05", "/queue/acc/cont", "sp st se R si sip spr sv"),
    ("queue", "2014-02-14", "/acc/cont", "sp st se R si sv"),
    ("table", "2019-02-02", "/table/acc/cont", "sp st se R si sip spr sv spk srk epk erk"),
    ("table", "2015-04-05", "/table/acc/cont", "sp st se R si sip spr sv spk srk epk erk"),
    ("table", "2014-02-14", "/acc/cont", "sp st se R si sv spk srk epk erk"),
]


@pytest.mark.parametrize(("service", "version", "resource", "lines"), LAYOUTS)
def test_the_string_to_sign_of_every_version(service: str, version: str, resource: str, lines: str) -> None:
    fields = {**LINES, "sv": version, "sig": "c2ln", "tn": "Cont"}
    if service == "file":
        fields["sr"] = "f"
    elif service in {"queue", "table"}:
        del fields["sr"]
    if not version:
        del fields["sv"]
    found = read_service(urlencode(fields), service)
    texts = {**fields, "R": resource, "-": ""}
    expected = "\n".join(texts[name] for name in lines.split())
    assert found.string_to_sign("acc", "Cont" if service == "table" else "cont", "b") == expected


@pytest.mark.parametrize(("service", "version", "resource", "lines"), LAYOUTS)
def test_only_signed_overrides_count(service: str, version: str, resource: str, lines: str) -> None:
    """What the signature does not cover, anyone can add to the URL."""
    fields = {**LINES, "sv": version, "sig": "c2ln", "tn": "Cont", "sr": "f" if service == "file" else "b"}
    if service in {"queue", "table"}:
        del fields["sr"]
    if not version:
        del fields["sv"]
    signed = ResponseOverrides("cc", "cd", "ce", "cl", "ct") if "rsct" in lines else None
    assert read_service(urlencode(fields), service).overrides == signed


def test_absent_fields_are_empty_lines() -> None:
    found = read_service("sv=2020-12-06&sr=c&sp=r&se=2030-01-01&sig=c2ln")
    expected = "r\n\n2030-01-01\n/blob/acc/cont\n\n\n\n2020-12-06\nc\n\n\n\n\n\n\n"
    assert found.string_to_sign("acc", "cont", "b") == expected
    table = read_service("sv=2019-02-02&tn=T&sp=r&se=2030-01-01&sig=c2ln", "table")
    assert table.string_to_sign("acc", "T") == "r\n\n2030-01-01\n/table/acc/t\n\n\n\n2019-02-02\n\n\n\n"


def test_the_keys_a_table_token_opens() -> None:
    token = "sv=2019-02-02&tn=T&sp=r&se=2030-01-01&sig=c2ln"
    assert read_service(token, "table").keys == SasKeyRange(None, None, None, None)
    assert read_service(f"{token}&spk=a&epk=b&erk=c", "table").keys == SasKeyRange("a", None, "b", "c")
    assert read_service(f"{token}&spk=&epk=", "table").keys == SasKeyRange(None, None, None, None)


# What is no token, and what is a broken one.

GOOD = {"sv": "2020-12-06", "sr": "b", "sp": "r", "se": "2030-01-01", "sig": "c2ln"}
GOOD_ACCOUNT = {"sv": "2020-12-06", "ss": "b", "srt": "o", "sp": "r", "se": "2030-01-01", "sig": "c2ln"}
GOOD_QUEUE = {"sv": "2020-12-06", "sp": "r", "se": "2030-01-01", "sig": "c2ln"}
GOOD_TABLE = {**GOOD_QUEUE, "tn": "t"}
GOOD_FILE = {**GOOD_QUEUE, "sr": "f"}


@pytest.mark.parametrize("query", ["", "comp=list", "sv=2020-12-06&se=2030-01-01", "SIG=c2ln&sv=2020-12-06"])
def test_queries_without_a_token(query: str) -> None:
    assert read(query) is None


BROKEN: list[tuple[str, dict[str, str], dict[str, str | None]]] = [
    ("blob", GOOD, {"sv": "yesterday"}),
    ("blob", GOOD, {"sv": "2020-12-6"}),
    ("blob", GOOD, {"sr": None}),
    ("blob", GOOD, {"sr": "x"}),
    ("blob", GOOD, {"sr": "f"}),
    ("blob", GOOD, {"sr": "bs", "sv": "2018-03-28"}),
    ("blob", GOOD, {"sr": "d", "sv": "2019-12-12", "sdd": "1"}),
    ("blob", GOOD, {"sr": "d"}),
    ("blob", GOOD, {"sr": "d", "sdd": "-1"}),
    ("blob", GOOD, {"sp": "wr"}),
    ("blob", GOOD, {"sp": "rr"}),
    ("blob", GOOD, {"sp": "rz"}),
    ("blob", GOOD, {"sp": "R"}),
    ("blob", GOOD, {"sp": None}),
    ("blob", GOOD, {"sp": ""}),
    ("blob", GOOD, {"se": None}),
    ("blob", GOOD, {"se": ""}),
    ("blob", GOOD, {"se": "tomorrow"}),
    ("blob", GOOD, {"st": "tomorrow"}),
    ("blob", GOOD, {"spr": "http"}),
    ("blob", GOOD, {"spr": "ftp"}),
    ("blob", GOOD, {"spr": ""}),
    ("blob", GOOD, {"sip": ""}),
    ("blob", GOOD, {"sip": "10.0.0"}),
    ("blob", GOOD, {"sip": "10.0.0.256"}),
    ("blob", GOOD, {"sip": "10.0.0.2-10.0.0.1"}),
    ("blob", GOOD, {"sip": "10.0.0.1-"}),
    ("blob", GOOD, {"sip": "::1"}),
    ("blob", GOOD, {"si": "a\nb"}),
    ("blob", GOOD, {"rsct": "a\n"}),
    ("blob", GOOD_ACCOUNT, {"sv": "2015-02-21"}),
    ("blob", GOOD_ACCOUNT, {"sv": None}),
    ("blob", GOOD_ACCOUNT, {"ss": None}),
    ("blob", GOOD_ACCOUNT, {"ss": "x"}),
    ("blob", GOOD_ACCOUNT, {"srt": None}),
    ("blob", GOOD_ACCOUNT, {"srt": ""}),
    ("blob", GOOD_ACCOUNT, {"srt": "so1"}),
    ("blob", GOOD_ACCOUNT, {"sp": None}),
    ("blob", GOOD_ACCOUNT, {"sp": "rz"}),
    ("blob", GOOD_ACCOUNT, {"se": None}),
    ("blob", GOOD_ACCOUNT, {"si": "p"}),
    ("blob", GOOD_ACCOUNT, {"sr": "b"}),
    ("queue", GOOD_QUEUE, {"sr": "b"}),
    ("queue", GOOD_QUEUE, {"sp": "rar"}),
    ("queue", GOOD_QUEUE, {"sp": "w"}),
    ("table", GOOD_TABLE, {"tn": None}),
    ("table", GOOD_TABLE, {"sp": "rua"}),
    ("table", GOOD_TABLE, {"srk": "a"}),
    ("table", GOOD_TABLE, {"erk": "a"}),
    ("file", GOOD_FILE, {"sr": "b"}),
    ("file", GOOD_FILE, {"sp": "rl"}),
    ("file", GOOD_FILE, {"sr": None}),
]


@pytest.mark.parametrize(
    ("service", "token"),
    [
        ("blob", GOOD),
        ("blob", GOOD_ACCOUNT),
        ("queue", GOOD_QUEUE),
        ("table", GOOD_TABLE),
        ("file", GOOD_FILE),
    ],
)
def test_the_whole_tokens_that_are_broken_below(service: str, token: dict[str, str]) -> None:
    assert read(urlencode(token), service) is not None


@pytest.mark.parametrize(("service", "token", "change"), BROKEN)
def test_broken_tokens(service: str, token: dict[str, str], change: dict[str, str | None]) -> None:
    fields = {name: value for name, value in {**token, **change}.items() if value is not None}
    with pytest.raises(Malformed) as caught:
        read(urlencode(fields), service)
    assert caught.value.code == "AuthenticationFailed"
    assert caught.value.detail == {"AuthenticationErrorDetail": "Signature fields not well formed."}


@pytest.mark.parametrize("name", ["sig", "sp", "se", "rsct"])
def test_a_field_given_twice_is_refused(name: str) -> None:
    fields = {**GOOD, "rsct": "a"}
    with pytest.raises(Malformed):
        read(f"{urlencode(fields)}&{name}={quote(fields[name])}")


def test_other_parameters_do_not_matter() -> None:
    assert read(f"comp=list&{urlencode(GOOD)}&prefix=a&prefix=b") == read(urlencode(GOOD))


@pytest.mark.parametrize("letters", ["r", "racwdxyltfmeopi", "rl", "wd", "rt"])
def test_letters_in_order(letters: str) -> None:
    assert read_service(urlencode({**GOOD, "sp": letters})).permissions == letters


def test_a_share_can_be_listed() -> None:
    assert read_service(urlencode({**GOOD_FILE, "sr": "s", "sp": "rcwdl"}), "file").permissions == "rcwdl"


# User delegation tokens: the lines of each version, written out from the clients' releases.

DELEGATED = {
    "sp": "r", "st": "2024-01-01", "se": "2025-01-01T00:00:00Z", "sr": "b", "sig": "c2ln",
    "skoid": "OID", "sktid": "TID", "skt": "2024-01-01T00:00:00Z", "ske": "2024-01-07T00:00:00Z", "sks": "b",
    "skv": "2018-11-09", "rscc": "cc", "rsct": "ct",
}  # fmt: skip
FIRST_LINES = ["r", "2024-01-01", "2025-01-01T00:00:00Z", "/blob/acme/cont/dir/b", "OID", "TID"]
KEY_LINES = ["2024-01-01T00:00:00Z", "2024-01-07T00:00:00Z", "b", "2018-11-09"]
END = ["cc", "", "", "", "ct"]
DELEGATED_LINES = [
    ("2018-11-09", {}, ["", ""], ["b", ""]),
    ("2019-12-12", {}, ["", ""], ["b", ""]),
    ("2020-02-10", {}, ["", "", "", "", ""], ["b", ""]),
    ("2020-10-02", {"saoid": "A", "scid": "C"}, ["A", "", "C", "", ""], ["b", ""]),
    ("2020-12-06", {"ses": "scope"}, ["", "", "", "", ""], ["b", "", "scope"]),
    ("2025-05-05", {}, ["", "", "", "", ""], ["b", "", ""]),
    ("2025-07-05", {"sduoid": "U", "skdutid": "T"}, ["", "", "", "T", "U", "", ""], ["b", "", ""]),
    ("2026-02-06", {}, ["", "", "", "", "", "", ""], ["b", "", ""]),
    ("2026-04-06", {}, ["", "", "", "", "", "", ""], ["b", "", "", "", ""]),
    ("2026-10-06", {"spr": "https"}, ["", "", "", "", "", "", "https"], ["b", "", "", "", ""]),
]  # fmt: skip


def read_delegated(fields: dict[str, str], service: str = "blob") -> UserDelegationSas:
    found = read(urlencode(fields), service)
    assert isinstance(found, UserDelegationSas)
    return found


@pytest.mark.parametrize(
    ("version", "more", "middle", "tail"), DELEGATED_LINES, ids=[row[0] for row in DELEGATED_LINES]
)
def test_the_lines_of_a_user_delegation_token(
    version: str, more: dict[str, str], middle: list[str], tail: list[str]
) -> None:
    token = read_delegated({**DELEGATED, **more, "sv": version})
    lines = [*FIRST_LINES, *KEY_LINES, *middle, version, *tail, *END]
    assert token.string_to_sign("acme", "cont", "dir/b", "", {}, {}) == "\n".join(lines)


def test_signed_headers_and_parameters_stand_as_blocks() -> None:
    token = read_delegated({**DELEGATED, "sv": "2026-04-06", "srh": "X-One,two", "srq": "p,Q"})
    text = token.string_to_sign("acme", "cont", "b", "", {"x-one": "1", "two": "2"}, {"p": "3", "q": ""})
    assert "\nb\n\n\nX-One:1\ntwo:2\n\n\np:3\nQ:\ncc\n" in text
    for headers, parameters in (
        ({"x-one": "1"}, {"p": "3", "q": ""}),
        ({"x-one": "1", "two": "2"}, {"p": "a\nb", "q": ""}),
    ):
        with pytest.raises(Malformed):
            token.string_to_sign("acme", "cont", "b", "", headers, parameters)


@pytest.mark.parametrize(
    ("service", "more", "lines"),
    [
        ("queue", {}, ["/queue/acme/cont", "", "", "", "", "2026-02-06"]),
        ("file", {"sr": "f"}, ["/file/acme/cont/b", "", "", "", "", "2026-02-06", *END]),
        ("file", {"sr": "s", "sduoid": "U"}, ["/file/acme/cont", "", "U", "", "", "2026-02-06", *END]),
    ],
)
def test_the_lines_for_queues_and_files(service: str, more: dict[str, str], lines: list[str]) -> None:
    fields = {name: value for name, value in DELEGATED.items() if name != "sr"}
    token = read_delegated({**fields, **more, "sv": "2026-02-06"}, service)
    resource, *rest = lines
    expected = [*FIRST_LINES[:3], resource, *FIRST_LINES[4:], *KEY_LINES, *rest]
    assert token.string_to_sign("acme", "cont", "b", "", {}, {}) == "\n".join(expected)


@pytest.mark.parametrize(
    ("service", "changes"),
    [
        ("blob", {"sv": "2018-03-28"}),
        ("blob", {"sv": ""}),
        ("blob", {"si": "policy"}),
        ("blob", {"sp": ""}),
        ("blob", {"sp": "wr"}),
        ("blob", {"sr": "x"}),
        ("blob", {"skt": ""}),
        ("blob", {"skt": "now"}),
        ("blob", {"ske": "(absent)"}),
        ("blob", {"skv": "(absent)"}),
        ("blob", {"skv": "new"}),
        ("blob", {"se": "(absent)"}),
        ("blob", {"sv": "2019-12-12", "saoid": "a"}),
        ("blob", {"sv": "2025-05-05", "sduoid": "a"}),
        ("blob", {"sv": "2026-02-06", "srh": "a"}),
        ("blob", {"sr": "d"}),
        ("queue", {"sr": "(absent)", "sv": "2025-11-05"}),
        ("queue", {"sr": "(absent)", "sv": "2026-02-06", "saoid": "a"}),
        ("file", {"sr": "f", "sv": "2025-11-05"}),
        ("table", {"sr": "(absent)", "tn": "t", "sv": "2026-10-06"}),
    ],
)
def test_user_delegation_tokens_that_are_not_well_formed(service: str, changes: dict[str, str]) -> None:
    fields = {**DELEGATED, "sv": "2025-07-05", **changes}
    with pytest.raises(Malformed) as refused:
        read(urlencode({name: value for name, value in fields.items() if value != "(absent)"}), service)
    assert refused.value.code == "AuthenticationFailed"


# The memory of signatures found right.


def test_a_remembered_signature_opens_nothing_else() -> None:
    token = generate_blob_sas(ACCOUNT, "cont", "b", account_key=KEY_TEXT, permission="r", expiry=EXPIRY)
    found = read_service(token)
    text = found.string_to_sign(ACCOUNT, "cont", "b")
    for _ in range(2):
        assert sas.verify((KEY,), text, found.signature)
        assert not sas.verify((OTHER_KEY,), text, found.signature)
        assert not sas.verify((KEY,), text + " ", found.signature)
        assert not sas.verify((KEY,), text, shared_key.sign(OTHER_KEY, text))
        assert not is_right(replace(found, version="2011-08-18"), "cont", "b")


def test_the_memory_is_bounded_and_keeps_no_failures() -> None:
    sas._confirm.cache_clear()
    for number in range(50):
        assert not sas.verify((KEY,), f"text {number}", "c2ln")
    assert sas._confirm.cache_info().currsize == 0
    assert sas._confirm.cache_info().maxsize == 1024
