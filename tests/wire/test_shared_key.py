import hmac
from base64 import b64encode
from functools import cmp_to_key
from itertools import permutations

import pytest
from azure.storage.blob._shared.authentication import compare as sdk_compare
from hypothesis import given
from hypothesis import strategies as st

from kyanite.wire import shared_key
from kyanite.wire.malformed import Malformed
from kyanite.wire.shared_key import Bearer, SharedKey, Signable
from tests.wire.sdk_signing import DATE, KEY, OTHER_KEY, sign_with_sdk, signable

BASE = "http://127.0.0.1:10000/devstoreaccount1"
HOST = "https://devstoreaccount1.blob.localhost"

SIGNED_BY_THE_SDK = {
    "plain get": ("GET", f"{BASE}/c/b", DATE),
    "account root": ("GET", f"{BASE}/?comp=list", DATE),
    "no path at all": ("GET", f"{BASE}?comp=list", DATE),
    "host style": ("GET", f"{HOST}/c/b", DATE),
    "host style root": ("GET", f"{HOST}/?restype=service&comp=properties", DATE),
    "container list": ("GET", f"{BASE}/c?restype=container&comp=list&prefix=a%2Fb&maxresults=5", DATE),
    "space and plus in a value": ("GET", f"{BASE}/c?comp=list&prefix=a%20b%2Bc", DATE),
    "unicode in a value": ("GET", f"{BASE}/c?comp=list&prefix=%E2%82%AC", DATE),
    "empty value": ("GET", f"{BASE}/c?comp=list&prefix=&marker=", DATE),
    "upper case parameter": ("GET", f"{BASE}/c?Comp=list", DATE),
    "percent in a value": ("GET", f"{BASE}/c?comp=list&prefix=100%25", DATE),
    "unicode name": ("GET", f"{BASE}/c/%C3%A9%E2%82%AC", DATE),
    "spaces and pluses in a name": ("GET", f"{BASE}/c/a%20b+c%2Bd", DATE),
    "encoded slash": ("GET", f"{BASE}/c/a%2Fb", DATE),
    "unusual escapes": ("GET", f"{BASE}/c/%61%7Eb~!()*'", DATE),
    "upload": ("PUT", f"{BASE}/c/b", {**DATE, "Content-Length": "5", "Content-Type": "text/plain",
                                     "x-ms-blob-type": "BlockBlob", "Content-MD5": "XUFAKrxLKna5cZ2REBfFkg=="}),
    "empty upload": ("PUT", f"{BASE}/c/b", {**DATE, "Content-Length": "0", "x-ms-blob-type": "BlockBlob"}),
    "conditions": ("GET", f"{BASE}/c/b", {**DATE, "If-Match": '"0x1"', "If-None-Match": "*",
                                         "If-Modified-Since": "Wed, 01 May 2024 00:00:00 GMT",
                                         "If-Unmodified-Since": "Wed, 01 May 2024 00:00:00 GMT"}),
    "content headers": ("PUT", f"{BASE}/c/b", {**DATE, "Content-Encoding": "gzip", "Content-Language": "de",
                                              "Content-Length": "1", "Content-Type": "a/b; charset=utf-8"}),
    "x-ms-range": ("GET", f"{BASE}/c/b", {**DATE, "x-ms-range": "bytes=0-10"}),
    "metadata": ("PUT", f"{BASE}/c/b", {**DATE, "x-ms-meta-Foo": "Bar", "x-ms-meta-a": "1"}),
    "metadata of odd names": ("PUT", f"{BASE}/c/b", {**DATE, **{
        f"x-ms-meta-{name}": name for name in ("a", "a_c", "a1", "aa", "ab", "abc", "ac", "a-c", "A_B", "_x")}}),
    "empty header": ("PUT", f"{BASE}/c/b", {**DATE, "x-ms-meta-empty": ""}),
    "latin-1 in metadata": ("PUT", f"{BASE}/c/b", {**DATE, "x-ms-meta-a": "caf\u00e9"}),
    "inner spaces": ("PUT", f"{BASE}/c/b", {**DATE, "x-ms-meta-a": "a  b\tc"}),
    "quotes": ("PUT", f"{BASE}/c/b", {**DATE, "x-ms-meta-a": 'say "a  b"'}),
    "emulator's secondary": ("GET", f"{BASE}-secondary/c/b", DATE),
}  # fmt: skip


@pytest.mark.parametrize("case", SIGNED_BY_THE_SDK)
def test_accepts_what_the_client_signs(case: str) -> None:
    method, url, headers = SIGNED_BY_THE_SDK[case]
    authorization = shared_key.decode_authorization(sign_with_sdk(method, url, headers))
    assert isinstance(authorization, SharedKey)
    request = signable(method, url, headers)
    assert shared_key.verify(authorization, (KEY,), request)
    assert shared_key.verify(authorization, (OTHER_KEY, KEY), request)
    assert not shared_key.verify(authorization, (OTHER_KEY,), request)
    assert not shared_key.verify(authorization, (), request)


FULL = {
    **DATE,
    "Content-Encoding": "gzip",
    "Content-Language": "de",
    "Content-Length": "5",
    "Content-MD5": "XUFAKrxLKna5cZ2REBfFkg==",
    "Content-Type": "text/plain",
    "If-Modified-Since": "Wed, 01 May 2024 00:00:00 GMT",
    "If-Match": "a",
    "If-None-Match": "b",
    "If-Unmodified-Since": "Wed, 01 May 2024 00:00:00 GMT",
    "x-ms-meta-a": "1",
}
FULL_URL = f"{BASE}/c/b?comp=metadata&timeout=30"


@pytest.mark.parametrize("name", FULL)
@pytest.mark.parametrize("new", ["changed", None])
def test_a_changed_or_missing_header_is_refused(name: str, new: str | None) -> None:
    authorization = shared_key.decode_authorization(sign_with_sdk("PUT", FULL_URL, FULL))
    assert isinstance(authorization, SharedKey)
    changed = {**FULL, name: new} if new else {key: value for key, value in FULL.items() if key != name}
    assert shared_key.verify(authorization, (KEY,), signable("PUT", FULL_URL, FULL))
    assert not shared_key.verify(authorization, (KEY,), signable("PUT", FULL_URL, changed))


@pytest.mark.parametrize(
    ("method", "url"),
    [
        ("GET", FULL_URL),
        ("PUT", f"{BASE}/c/B?comp=metadata&timeout=30"),
        ("PUT", f"{BASE}/c/b?comp=metadata&timeout=31"),
        ("PUT", f"{BASE}/c/b?comp=metadata"),
        ("PUT", f"{BASE}/c/b?comp=metadata&timeout=30&x=1"),
        ("PUT", f"{BASE}/c/%62?comp=metadata&timeout=30"),
        ("PUT", "http://127.0.0.1:10000/otheraccount/c/b?comp=metadata&timeout=30"),
        ("PUT", f"{HOST}/c/b?comp=metadata&timeout=30"),
    ],
)
def test_a_changed_request_line_is_refused(method: str, url: str) -> None:
    authorization = shared_key.decode_authorization(sign_with_sdk("PUT", FULL_URL, FULL))
    assert isinstance(authorization, SharedKey)
    assert not shared_key.verify(authorization, (KEY,), signable(method, url, FULL))


@pytest.mark.parametrize("header", ["Range", "Date", "x-ms-copy-source", "X-MS-Extra"])
def test_an_added_signed_header_is_refused(header: str) -> None:
    headers = {"x-ms-version": DATE["x-ms-version"]}
    authorization = shared_key.decode_authorization(sign_with_sdk("GET", f"{BASE}/c/b", headers))
    assert isinstance(authorization, SharedKey)
    assert shared_key.verify(authorization, (KEY,), signable("GET", f"{BASE}/c/b", headers))
    assert not shared_key.verify(
        authorization, (KEY,), signable("GET", f"{BASE}/c/b", {**headers, header: "x"})
    )


def sign(text: str, *, lite: bool = False) -> SharedKey:
    return SharedKey(lite, "devstoreaccount1", shared_key.sign(KEY, text))


def accepts(text: str, request: Signable, *, lite: bool = False) -> bool:
    return shared_key.verify(sign(text, lite=lite), (KEY,), request)


# The examples of the reference, with its account in host style.
REFERENCE_URL = "http://myaccount.blob.core.windows.net/mycontainer?restype=container&comp=metadata"
REFERENCE = (
    "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n"
    "/myaccount/mycontainer\ncomp:metadata\nrestype:container"
)
REFERENCE_HEADERS = {"x-ms-date": "Fri, 26 Jun 2015 23:39:12 GMT", "x-ms-version": "2015-02-21"}


def test_the_texts_of_the_reference() -> None:
    request = signable("GET", REFERENCE_URL, REFERENCE_HEADERS, version="2015-02-21")
    assert shared_key.string_to_sign(request, lite=False) == REFERENCE
    secondary = REFERENCE_URL.replace("myaccount.", "myaccount-secondary.")
    request = signable("GET", secondary, REFERENCE_HEADERS, version="2015-02-21")
    assert shared_key.string_to_sign(request, lite=False) == REFERENCE
    blob = "http://myaccount.blob.core.windows.net/mycontainer/hello.txt?timeout=20"
    headers = {
        "Content-MD5": "md5==",
        "Content-Type": "text/plain; charset=UTF-8",
        "Date": "Sun, 20 Sep 2009 20:36:40 GMT",
        "x-ms-meta-m1": "v1",
        "x-ms-meta-m2": "v2",
    }
    assert shared_key.string_to_sign(signable("PUT", blob, headers), lite=True) == (
        "PUT\nmd5==\ntext/plain; charset=UTF-8\nSun, 20 Sep 2009 20:36:40 GMT\n"
        "x-ms-meta-m1:v1\nx-ms-meta-m2:v2\n/myaccount/mycontainer/hello.txt"
    )


def test_a_date_is_signed_unless_x_ms_date_is_sent() -> None:
    text = "GET\n\n\n\n\n\n{}\n\n\n\n\n\n{}/devstoreaccount1/devstoreaccount1/c"
    date = DATE["x-ms-date"]
    assert accepts(text.format(date, ""), signable("GET", f"{BASE}/c", {"Date": date}))
    both = {"Date": date, "x-ms-date": date}
    assert accepts(text.format("", f"x-ms-date:{date}\n"), signable("GET", f"{BASE}/c", both))
    assert not accepts(text.format(date, f"x-ms-date:{date}\n"), signable("GET", f"{BASE}/c", both))


def test_the_range_header_is_signed() -> None:
    text = "GET\n\n\n\n\n\n\n\n\n\n\nbytes=0-1\n/devstoreaccount1/devstoreaccount1/c"
    assert accepts(text, signable("GET", f"{BASE}/c", {"Range": "bytes=0-1"}))


@pytest.mark.parametrize(("version", "written"), [("2014-02-14", "0"), ("2015-02-21", "")])
def test_zero_length_by_version(version: str, written: str) -> None:
    text = f"PUT\n\n\n{written}\n\n\n\n\n\n\n\n\n/devstoreaccount1/devstoreaccount1/c"
    request = signable("PUT", f"{BASE}/c", {"Content-Length": "0"}, version=version)
    assert accepts(text, request)
    assert shared_key.string_to_sign(request, lite=False) == text


@pytest.mark.parametrize(("version", "written"), [("2015-12-11", ""), ("2016-05-31", "x-ms-meta-a:\n")])
def test_empty_headers_by_version(version: str, written: str) -> None:
    text = f"PUT\n\n\n\n\n\n\n\n\n\n\n\n{written}/devstoreaccount1/devstoreaccount1/c"
    request = signable("PUT", f"{BASE}/c", {"x-ms-meta-a": ""}, version=version)
    assert accepts(text, request)


def test_values_of_one_name_are_sorted_and_joined() -> None:
    text = "GET\n\n\n\n\n\n\n\n\n\n\n\n/devstoreaccount1/devstoreaccount1/c\ninclude:a,b,c\nzz:1"
    assert accepts(text, signable("GET", f"{BASE}/c?zz=1&include=c&Include=a&include=b", {}))


def test_the_emulators_secondary_may_be_signed_without_its_suffix() -> None:
    text = "GET\n\n\n\n\n\n\n\n\n\n\n\n/devstoreaccount1/devstoreaccount1/c-secondary/b"
    assert accepts(text, signable("GET", f"{BASE}-secondary/c-secondary/b", {}))


@pytest.mark.parametrize(
    "order", list(permutations(["x-ms-meta-a-c:1", "x-ms-meta-ab:2", "x-ms-meta-a_c:3"]))
)
def test_only_the_two_known_orders_are_accepted(order: tuple[str, ...]) -> None:
    request = signable("PUT", f"{BASE}/c", {"x-ms-meta-a_c": "3", "x-ms-meta-a-c": "1", "x-ms-meta-ab": "2"})
    lines = "\n".join(order)
    text = f"PUT\n\n\n\n\n\n\n\n\n\n\n\n{lines}\n/devstoreaccount1/devstoreaccount1/c"
    ordinal = ("x-ms-meta-a-c:1", "x-ms-meta-a_c:3", "x-ms-meta-ab:2")
    linguistic = ("x-ms-meta-a_c:3", "x-ms-meta-ab:2", "x-ms-meta-a-c:1")
    assert accepts(text, request) == (order in {ordinal, linguistic})


def test_header_octets_may_be_signed_as_utf8_or_latin1_and_folded_or_not() -> None:
    raw = "caf\u00e9  a".encode().decode("latin-1")
    request = signable("PUT", f"{BASE}/c", {"x-ms-meta-a": raw})
    start, end = "PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-meta-a:", "\n/devstoreaccount1/devstoreaccount1/c"
    for value in (raw, "caf\u00e9  a", "caf\u00e9 a", raw.replace("  ", " ")):
        assert accepts(start + value + end, request)
    assert not accepts(start + "cafe  a" + end, request)


LITE = {**DATE, "Content-Type": "text/plain", "Content-MD5": "m"}


@pytest.mark.parametrize(
    ("url", "resource"),
    [
        (f"{BASE}/c/b", "/devstoreaccount1/devstoreaccount1/c/b"),
        (f"{BASE}/c/b?timeout=30&comp=metadata", "/devstoreaccount1/devstoreaccount1/c/b?comp=metadata"),
        (f"{HOST}/c/%C3%A9?timeout=30", "/devstoreaccount1/c/%C3%A9"),
    ],
)
def test_lite(url: str, resource: str) -> None:
    text = f"PUT\nm\ntext/plain\n\nx-ms-date:{DATE['x-ms-date']}\nx-ms-version:{DATE['x-ms-version']}\n{resource}"
    request = signable("PUT", url, LITE)
    assert accepts(text, request, lite=True)
    assert not accepts(text, request, lite=False)
    assert not accepts(text, signable("PUT", url, {**LITE, "Content-Type": "a/b"}), lite=True)


TABLE = "http://127.0.0.1:10002/devstoreaccount1/Tables"


@pytest.mark.parametrize(
    ("headers", "date"),
    [
        ({"x-ms-date": "A"}, "A"),
        ({"Date": "B"}, "B"),
        ({"x-ms-date": "A", "Date": "B"}, "A"),
    ],
)
def test_tables_sign_a_date_and_no_other_header(headers: dict[str, str], date: str) -> None:
    headers = {**headers, "x-ms-version": "2019-02-02", "Content-Type": "application/json"}
    request = signable("POST", f"{TABLE}?comp=acl&timeout=3", headers, service="table")
    resource = "/devstoreaccount1/devstoreaccount1/Tables?comp=acl"
    assert accepts(f"POST\n\napplication/json\n{date}\n{resource}", request)
    assert accepts(f"{date}\n{resource}", request, lite=True)
    assert not accepts(f"{date}\n{resource}", request, lite=False)
    assert not accepts(f"POST\n\napplication/json\n\n{resource}", request)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SharedKey acc:c2ln", SharedKey(False, "acc", "c2ln")),
        ("SharedKeyLite acc:c2ln", SharedKey(True, "acc", "c2ln")),
        ("SharedKey acc:a+b/c==", SharedKey(False, "acc", "a+b/c==")),
        ("sharedkey  acc:c2ln ", SharedKey(False, "acc", "c2ln")),
        ("Bearer abc.def", Bearer("abc.def")),
    ],
)
def test_authorization_headers(text: str, expected: SharedKey | Bearer) -> None:
    assert shared_key.decode_authorization(text) == expected


@pytest.mark.parametrize("lite", [True, False])
def test_authorization_both_ways(lite: bool) -> None:
    authorization = SharedKey(lite, "acc", "c2ln")
    assert shared_key.decode_authorization(shared_key.encode_authorization(authorization)) == authorization


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SharedKey",
        "SharedKey acc",
        "SharedKey acc:",
        "SharedKey :sig",
        "Basic dTpw",
        "Bearer",
        "Bearer ",
        "SharedKey acc:c2ln,SharedKey acc:c2ln",
        "SharedKey acc:c2ln,",
        "Bearer abc.def,SharedKey acc:c2ln",
    ],
)
def test_authorization_headers_that_cannot_be_read(text: str) -> None:
    with pytest.raises(Malformed) as caught:
        shared_key.decode_authorization(text)
    assert caught.value.code == "InvalidAuthenticationInfo"


@pytest.mark.parametrize("signature", ["", "!", "AAAA", "\u20ac", "c2ln", "="])
def test_signatures_that_are_none(signature: str) -> None:
    assert not shared_key.matches((KEY,), "text", signature)


@pytest.mark.parametrize("key", [KEY, OTHER_KEY])
def test_a_signature_has_one_spelling(key: bytes) -> None:
    right = shared_key.sign(key, "text")
    assert len(right) == 44
    assert shared_key.matches((OTHER_KEY, KEY), "text", right)
    unused_bits = right[:42] + chr(ord(right[42]) + 1) + right[43:]
    spellings = [right[:-1], f"{right}=", f"{right}AAAA", f"{right}!", f"{right}\n", f" {right}"]
    spellings += [f"{right[:9]}{junk}{right[9:]}" for junk in ("!", "\n", " ", "-", "=", "\u00e9")]
    for spelling in [*spellings, unused_bits, right.lower()]:
        assert not shared_key.matches((OTHER_KEY, KEY), "text", spelling), spelling


@pytest.mark.parametrize("length", [0, 1, 20, 63, 64, 65, 100, 128, 131])
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_signing_is_hmac_sha256(length: int, text: str) -> None:
    key = bytes(range(length))
    expected = hmac.digest(key, text.encode(), "sha256")
    assert shared_key.sign(key, text) == b64encode(expected).decode()


NAMES = st.text("abz019-_.'!", min_size=1, max_size=6).map("x-ms-meta-".__add__)


@given(NAMES, NAMES)
def test_the_order_is_that_of_the_sdk(one: str, other: str) -> None:
    key = cmp_to_key(sdk_compare)
    assert (shared_key.header_weight(one) < shared_key.header_weight(other)) == (key(one) < key(other))


def test_the_order_of_the_reference() -> None:
    ordered = ["", "-a", "-a_c", "-a1", "-aa", "-ab", "-abc", "-ac", "-a-c"]
    assert sorted(sorted(ordered), key=shared_key.header_weight) == ordered
