from urllib.parse import parse_qsl, quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.wire import uri
from kyanite.wire.malformed import Malformed
from kyanite.wire.uri import CACHED_QUERY_LENGTH, decode_percent, decode_query, decode_target

TARGETS = [
    # host, path, port's service: account, service, secondary, path style, first, rest
    ("127.0.0.1:10000", "/dev1/c/b", "blob", ("dev1", "blob", False, True, "c", "b")),
    ("localhost:10000", "/dev1/c/b/d/e", "blob", ("dev1", "blob", False, True, "c", "b/d/e")),
    ("localhost", "/dev1", "queue", ("dev1", "queue", False, True, "", "")),
    ("localhost", "/dev1/", "queue", ("dev1", "queue", False, True, "", "")),
    ("localhost", "/", "blob", ("", "blob", False, True, "", "")),
    ("localhost", "/dev1/c/", "blob", ("dev1", "blob", False, True, "c", "")),
    ("[::1]:10000", "/dev1/c", "blob", ("dev1", "blob", False, True, "c", "")),
    ("kyanite:10000", "/dev1/c", "blob", ("dev1", "blob", False, True, "c", "")),
    ("storage.example.com", "/dev1/c", "blob", ("dev1", "blob", False, True, "c", "")),
    ("localhost", "/dev1-secondary/c/b", "blob", ("dev1", "blob", True, True, "c", "b")),
    ("acc1.blob.core.windows.net", "/c/b", "blob", ("acc1", "blob", False, False, "c", "b")),
    ("acc1.blob.localhost:10000", "/c/b", "blob", ("acc1", "blob", False, False, "c", "b")),
    ("acc1.queue.localhost:10000", "/q", "blob", ("acc1", "queue", False, False, "q", "")),
    ("ACC1.Blob.LOCALHOST", "/c", "blob", ("acc1", "blob", False, False, "c", "")),
    ("acc1-secondary.blob.localhost", "/c/b", "blob", ("acc1", "blob", True, False, "c", "b")),
    ("acc1.blob.localhost", "/", "blob", ("acc1", "blob", False, False, "", "")),
    # Two labels are not enough, and neither is a word that names no service.
    ("acc1.blob", "/acc1/c", "blob", ("acc1", "blob", False, True, "c", "")),
    ("acc1.web.localhost", "/acc1/c", "blob", ("acc1", "blob", False, True, "c", "")),
    ("ac.blob.localhost", "/acc1/c", "blob", ("acc1", "blob", False, True, "c", "")),
    ("", "/acc1/c", "blob", ("acc1", "blob", False, True, "c", "")),
    # Names are decoded; an encoded slash does not end one, and a plus is a plus.
    ("localhost", "/dev1/c/a%20b%2Bc+d", "blob", ("dev1", "blob", False, True, "c", "a b+c+d")),
    ("localhost", "/dev1/c/%C3%A9%2Fx/y", "blob", ("dev1", "blob", False, True, "c", "é/x/y")),
    ("localhost", "/dev1/%24root/x", "blob", ("dev1", "blob", False, True, "$root", "x")),
    ("localhost", "/dev1/c//x//", "blob", ("dev1", "blob", False, True, "c", "/x//")),
    # Octets sent bare are read as UTF-8, as encoded ones are.
    ("localhost", "/dev1/c/\u00c3\u00a9", "blob", ("dev1", "blob", False, True, "c", "é")),
]  # fmt: skip


@pytest.mark.parametrize(("host", "path", "service", "expected"), TARGETS)
def test_targets(host: str, path: str, service: str, expected: tuple[object, ...]) -> None:
    target = decode_target(host, path, service)
    found = (target.account, target.service, target.secondary, target.path_style, target.first, target.rest)
    assert found == expected
    assert target.path == path


@pytest.mark.parametrize("path", ["/a/c/%", "/a/c/%2", "/a/c/%zz", "/a/c/%FF", "/a/%C3/b", "/a/c/\u00e9"])
def test_paths_that_cannot_be_read(path: str) -> None:
    with pytest.raises(Malformed) as caught:
        decode_target("localhost", path, "blob")
    assert caught.value.code == "InvalidUri"


QUERIES = [
    ("", []),
    ("comp=list", [("comp", "list")]),
    ("comp=list&restype=container", [("comp", "list"), ("restype", "container")]),
    ("a=1&a=2", [("a", "1"), ("a", "2")]),
    ("prefix=a+b", [("prefix", "a b")]),
    ("prefix=a%2Bb", [("prefix", "a+b")]),
    ("prefix=a%20b", [("prefix", "a b")]),
    ("prefix=%E2%82%AC", [("prefix", "€")]),
    ("sig=a%2Fb%3D%3D", [("sig", "a/b==")]),
    ("sig=a/b==", [("sig", "a/b==")]),
    ("flag", [("flag", "")]),
    ("flag=", [("flag", "")]),
    ("&a=1&&", [("a", "1")]),
    ("n%61me=v%26w", [("name", "v&w")]),
]


@pytest.mark.parametrize(("query", "pairs"), QUERIES)
def test_queries(query: str, pairs: list[tuple[str, str]]) -> None:
    assert list(decode_query(query).pairs) == pairs


def test_names_compare_without_case_and_the_first_value_counts() -> None:
    query = decode_query("Comp=list&comp=other&PREFIX=A")
    assert query.get("comp") == "list"
    assert query.get("prefix") == "A"
    assert query.get("marker") is None
    assert query.pairs[0] == ("Comp", "list")


def test_long_queries_are_read_but_not_cached() -> None:
    uri._cached_query.cache_clear()
    for number in range(20):
        assert decode_query(f"a={number}&b={'x' * CACHED_QUERY_LENGTH}").get("a") == str(number)
    assert uri._cached_query.cache_info().currsize == 0
    assert decode_query("a=1").get("a") == "1"
    assert uri._cached_query.cache_info().currsize == 1


@pytest.mark.parametrize("query", ["a=%", "a=%1", "%G0=1", "a=%FF"])
def test_queries_that_cannot_be_read(query: str) -> None:
    with pytest.raises(Malformed):
        decode_query(query)


ENCODABLE = st.text(st.characters(exclude_categories=["Cs"]))


@given(ENCODABLE)
def test_any_name_survives_the_way_a_client_encodes_it(name: str) -> None:
    assert decode_percent(quote(name)) == name
    assert decode_target("localhost", f"/dev1/c/{quote(name, safe='')}", "blob").rest == name


@given(
    st.lists(st.tuples(ENCODABLE.filter(bool), ENCODABLE), max_size=5), st.sampled_from([quote, quote_plus])
)
def test_queries_are_read_as_the_standard_library_reads_them(
    pairs: list[tuple[str, str]], encode: object
) -> None:
    text = urlencode(pairs, quote_via=encode)  # type: ignore[arg-type]
    assert list(decode_query(text).pairs) == pairs == parse_qsl(text, keep_blank_values=True)


@pytest.mark.parametrize(
    ("authority", "scheme", "expected"),
    [
        ("localhost:10000", "http", ("localhost", 10000)),
        ("LocalHost", "http", ("localhost", None)),
        ("storage.example:80", "http", ("storage.example", None)),
        ("storage.example:80", "https", ("storage.example", 80)),
        ("storage.example:443", "https", ("storage.example", None)),
        ("storage.example:443", "", ("storage.example", None)),
        ("[::1]:10000", "http", ("[::1]", 10000)),
        ("acme.blob.localhost:10000", "http", ("localhost", 10000)),
        ("Acme-secondary.File.core.windows.net", "https", ("core.windows.net", None)),
        ("acme.blob", "http", ("acme.blob", None)),
        ("my_server:1", "http", ("my_server", 1)),
    ],
)
def test_authorities(authority: str, scheme: str, expected: tuple[str, int | None]) -> None:
    assert uri.decode_authority(authority, scheme) == expected


@pytest.mark.parametrize(
    "authority",
    [
        "",
        ":1",
        "user@host",
        "acme.blob.core.windows.net@127.0.0.1",
        "a\\b",
        "127.0.0.1\\@host",
        "host:",
        "host:x",
        "host:123456",
        "a b",
        "a,b",
        "[::1",
        "::1",
        "h\u00f6st",
        "host%00",
        "x" * 301,
    ],
)
def test_authorities_that_are_none(authority: str) -> None:
    with pytest.raises(Malformed):
        uri.decode_authority(authority, "http")
