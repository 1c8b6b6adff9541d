from collections.abc import Generator
from itertools import count
from typing import TypeVar
from xml.etree import ElementTree

import pytest
from azure.core.exceptions import HttpResponseError
from hypothesis import example, given
from hypothesis import strategies as st

from kyanite.wire import xml
from kyanite.wire.malformed import Malformed
from kyanite.wire.xml import Element
from tests.wire.sdk_transport import Canned, client

T = TypeVar("T")

DOCUMENTS = [
    (b"<A/>", Element("A")),
    (b"<A></A>", Element("A")),
    (b"<A>text</A>", Element("A", "text")),
    (b"<?xml version='1.0' encoding='utf-8'?><A><B>1</B><B>2</B></A>",
     Element("A", "", [Element("B", "1"), Element("B", "2")])),
    (b"\xef\xbb\xbf<A>x</A>", Element("A", "x")),
    ("<A>é€</A>".encode(), Element("A", "é€")),
    ("<A>é</A>".encode("utf-16"), Element("A", "é")),
    (b"<A>&lt;&amp;&#233;&quot;</A>", Element("A", '<&é"')),
    (b"<A><![CDATA[<b>]]></A>", Element("A", "<b>")),
    (b"<A x='1'><!-- note --><B y='2'/></A>", Element("A", "", [Element("B")])),
    (b"<A xmlns='urn:x' xmlns:y='urn:y'><y:B/></A>", Element("A", "", [Element("B")])),
    (b"<A>a<B>b</B>c<B/>d</A>", Element("A", "acd", [Element("B", "b"), Element("B")])),
    (b"<A><B><C>deep</C></B></A>", Element("A", "", [Element("B", "", [Element("C", "deep")])])),
]  # fmt: skip


@pytest.mark.parametrize(("document", "expected"), DOCUMENTS)
def test_documents(document: bytes, expected: Element) -> None:
    assert xml.decode(document, "A") == expected


BOMB = b'<!DOCTYPE A [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><A>&b;</A>'


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b" ",
        b"text",
        b"<A>",
        b"<A></B>",
        b"<A/><A/>",
        b"<A>&nbsp;</A>",
        b"<A>\x01</A>",
        b"<A>\xff</A>",
        b"<B/>",
        b"<a/>",
        b"<?xml version='1.0' encoding='nonsense'?><A/>",
        b"<?xml version='1.0' encoding='shift_jis'?><A/>",
        b"<?xml version='1.0' encoding='utf-7'?><A/>",
        b"<?xml version='1.0' encoding='utf-32'?><A/>",
        b"<?xml version='1.0' encoding='hex'?><A/>",
        b"<!DOCTYPE A><A/>",
        b'<!DOCTYPE A SYSTEM "file:///etc/passwd"><A/>',
        BOMB,
        b"<A>" * 17 + b"</A>" * 17,
        b"<A>" + b"<B/>" * (xml.MAX_ELEMENTS + 1) + b"</A>",
        b"{}",
    ],
)
def test_documents_that_are_refused(document: bytes) -> None:
    with pytest.raises(Malformed) as caught:
        xml.decode(document, "A")
    assert caught.value.code == "InvalidXmlDocument"


def test_the_longest_block_list_is_read() -> None:
    document = b"<BlockList>" + b"<Latest>QUFBQQ==</Latest>\n" * 50_000 + b"</BlockList>"
    items, slices = sliced(xml.decode_list(document, "BlockList", limit=50_001))
    assert items == [("Latest", "QUFBQQ==")] * 50_000
    assert slices > 50
    items, fewer = sliced(xml.decode_list(document, "BlockList", limit=1000))
    assert len(items) == 1000
    assert fewer < 5


def sliced(work: Generator[None, None, T]) -> tuple[T, int]:
    """What the work returns, and in how many slices."""
    for slices in count(1):
        try:
            next(work)
        except StopIteration as ended:
            return ended.value, slices
    raise AssertionError


@pytest.mark.parametrize("size", [1, 15, 16 * 1024 - 11, 16 * 1024, 100_000])
def test_a_list_is_the_same_in_slices(size: int) -> None:
    """Wherever a slice ends: in a tag, in a text, in a reference or between the bytes of a character."""
    document = (
        b"<L>" + b" " * size + "<A>ä&amp;</A><x:B xmlns:x='u'>b<C>no</C>c</x:B>\n".encode() * 2000 + b"</L>"
    )
    items, _ = sliced(xml.decode_list(document, "L", limit=10_000))
    assert items == [("A", "ä&"), ("B", "bc")] * 2000


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"<A></A>",
        b"<L><A>1</A>",
        b"<L><A>1</A></L></L>",
        b"<!DOCTYPE L [<!ENTITY a 'b'>]><L><A>&a;</A></L>",
        b"<L><!-- " + b"<<x " * 50_000 + b"--></L>",
        b"<L><A b='" + b"x" * 200_000 + b"'>1</A></L>",
        b"<L><A>" + b"x" * 200_000 + b"</A></L>",
        b"<L>" + b"<A>" * 20 + b"</A>" * 20 + b"</L>",
        b"\xff\xfe" + "<L><A>1</A>".encode("utf-16-le"),
    ],
)
def test_what_is_no_list_is_refused(document: bytes) -> None:
    with pytest.raises(Malformed):
        sliced(xml.decode_list(document, "L", limit=10))


def test_every_prefix_of_a_document_is_refused() -> None:
    document = b"<A><B>1</B></A>"
    for length in range(len(document)):
        with pytest.raises(Malformed):
            xml.decode(document[:length], "A")


VALID_TEXT = st.text(st.characters(exclude_categories=["Cs"]).filter(xml.is_valid_text))


@given(VALID_TEXT)
@example("a\r\nb\rc\td\n")
@example("<&>\"']]>")
def test_text_survives(text: str) -> None:
    assert xml.decode(xml.document(xml.element("A", text)), "A").text == text


@given(VALID_TEXT)
@example("a\r\nb\rc\td\n")
@example("<&>\"']]>")
def test_attributes_survive(text: str) -> None:
    root = ElementTree.fromstring(f'<A b="{xml.escape_attribute(text)}"/>')
    assert root.attrib["b"] == text


@pytest.mark.parametrize("text", ["\x00", "a\x1fb", "\ufffe", "\uffff", "\ud800", "\x0b"])
def test_what_xml_cannot_hold(text: str) -> None:
    assert not xml.is_valid_text(text)
    assert xml.is_valid_text(xml.valid_text(text))


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("plain", "<Name>plain</Name>"),
        ("a&b<c>", "<Name>a&amp;b&lt;c&gt;</Name>"),
        ("é€\U0001f600", "<Name>é€\U0001f600</Name>"),
        ("dir/a b\uffff", '<Name Encoded="true">dir/a%20b%EF%BF%BF</Name>'),
    ],
)
def test_names_of_listed_items(name: str, written: str) -> None:
    assert xml.name_element(name) == written


def test_reading_children() -> None:
    element = xml.decode(b"<A><T> x </T><E/><Yes>True</Yes><No>false</No><N>7</N></A>", "A")
    assert element.required_text("T") == "x"
    assert element.optional_text("E") is None
    assert element.optional_text("Z") is None
    assert element.flag("Yes")
    assert not element.flag("No")
    assert element.number("N", minimum=1, maximum=7) == 7


@pytest.mark.parametrize(
    ("name", "code"),
    [("Z", "MissingRequiredXmlNode"), ("E", "InvalidXmlNodeValue"), ("T", "InvalidXmlNodeValue")],
)
def test_children_that_cannot_be_read(name: str, code: str) -> None:
    element = xml.decode(b"<A><E/><T>x</T></A>", "A")
    for read in (element.flag, lambda name: element.number(name, minimum=0, maximum=9)):
        with pytest.raises(Malformed) as caught:
            read(name)
        assert caught.value.code == code
        assert caught.value.detail["XmlNodeName"] == name


@pytest.mark.parametrize("text", ["0", "8", "-1", "1.5", "٣", "1" * 20])
def test_numbers_outside_their_range(text: str) -> None:
    element = Element("A", "", [Element("N", text)])
    with pytest.raises(Malformed):
        element.number("N", minimum=1, maximum=7)


def test_the_client_understands_errors() -> None:
    message = "Text & more\nRequestId:1-2\nTime:2024-05-01T12:34:56.1234567Z"
    body = xml.error_body("InvalidHeaderValue", message, {"HeaderName": "x-ms-a", "HeaderValue": "<\x01>"})
    assert body.startswith(b"\xef\xbb\xbf<?xml")
    with pytest.raises(HttpResponseError) as caught:
        client(Canned(400, body)).get_account_information()
    error = caught.value
    assert error.error_code == "InvalidHeaderValue"  # type: ignore[attr-defined]
    assert error.message.startswith(message)
    assert error.additional_info == {"headername": "x-ms-a", "headervalue": "<?>"}  # type: ignore[attr-defined]
