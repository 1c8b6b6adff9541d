"""XML in and out: a small bounded reader over expat, and the text of elements.

Most documents of requests have few elements, so they become plain ``Element`` values. A long list is decoded in slices.
Size and depth are bounded, and a document type declaration is refused before anything in it is parsed: no entities, no
external files. The module of each document writes it from templates; here are only the parts that all documents share.
"""

import re
from collections.abc import Generator, Iterator, Mapping
from typing import Protocol
from urllib.parse import quote
from xml.parsers import expat

import msgspec

from kyanite.wire.malformed import Malformed

DECLARATION = '<?xml version="1.0" encoding="utf-8"?>'
BYTE_ORDER_MARK = "\ufeff"
"""Azure's responses begin with one, and its clients expect it."""

MAX_DEPTH = 16
MAX_ELEMENTS = 2_000
"""Of a document that is decoded at once."""

_SLICE_BYTES = 16 * 1024
_TOKEN_MAX_BYTES = 64 * 1024
"""A tag, a comment or the like may be this long where a document is decoded in slices: the parser begins again at the
start of the one that a slice has cut."""

_MAX_DIGITS = 19

_NOT_ALLOWED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_SPECIAL_IN_ATTRIBUTE = re.compile('[&<>"\t\r\n]')
_ESCAPES = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "\t": "&#9;",
    "\n": "&#10;",
    "\r": "&#13;",
}


class Element(msgspec.Struct):
    """A name, the text directly inside, and the elements inside. Attributes and name spaces are ignored."""

    name: str
    text: str = ""
    children: list["Element"] = msgspec.field(default_factory=list)

    def __iter__(self) -> Iterator["Element"]:
        return iter(self.children)

    def child(self, name: str) -> "Element | None":
        return next((child for child in self.children if child.name == name), None)

    def required_child(self, name: str) -> "Element":
        child = self.child(name)
        if child is None:
            raise missing_node(name)
        return child

    def optional_text(self, name: str) -> str | None:
        """The text of the child of that name; None when there is no such child or it is empty."""
        child = self.child(name)
        return None if child is None else child.text.strip() or None

    def required_text(self, name: str) -> str:
        text = self.required_child(name).text.strip()
        if not text:
            raise bad_node(name, text)
        return text

    def flag(self, name: str) -> bool:
        text = self.required_text(name)
        if text.lower() not in {"true", "false"}:
            raise bad_node(name, text)
        return text.lower() == "true"

    def number(self, name: str, *, minimum: int, maximum: int) -> int:
        text = self.required_text(name)
        if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
            raise bad_node(name, text)
        if not minimum <= int(text) <= maximum:
            raise bad_node(name, text)
        return int(text)


def decode(document: bytes, root: str) -> Element:
    """The document's root element, which must have this name. Raises Malformed (InvalidXmlDocument)."""
    element = _Reader().read(document)
    if element.name != root:
        raise invalid_document()
    return element


def decode_list(document: bytes, root: str, *, limit: int) -> Generator[None, None, list[tuple[str, str]]]:
    """The names and texts of the elements in the root element, and no more than so many of them.

    Yields between slices. Raises Malformed (InvalidXmlDocument).
    """
    reader = _ListReader(root)
    parser = _parser(reader)
    for start in range(0, len(document), _SLICE_BYTES):
        end = start + _SLICE_BYTES
        if start:
            yield
        _parse(parser, document[start:end], is_last=end >= len(document))
        if len(reader.items) >= limit:
            return reader.items[:limit]
        if end - parser.CurrentByteIndex > _TOKEN_MAX_BYTES + _SLICE_BYTES:
            raise invalid_document()
    if not document:
        raise invalid_document()
    return reader.items


def invalid_document() -> Malformed:
    return Malformed("InvalidXmlDocument")


def bad_node(name: str, value: str) -> Malformed:
    return Malformed("InvalidXmlNodeValue", XmlNodeName=name, XmlNodeValue=value)


def missing_node(name: str) -> Malformed:
    return Malformed("MissingRequiredXmlNode", XmlNodeName=name)


def unsupported_node(name: str) -> Malformed:
    return Malformed("UnsupportedXmlNode", XmlNodeName=name)


def escape(text: str) -> str:
    """Text for inside an element. A carriage return becomes a reference, or the reader would drop it."""
    if "&" in text:
        text = text.replace("&", "&amp;")
    if "<" in text:
        text = text.replace("<", "&lt;")
    if ">" in text:
        text = text.replace(">", "&gt;")
    if "\r" in text:
        text = text.replace("\r", "&#13;")
    return text


def escape_attribute(text: str) -> str:
    if _SPECIAL_IN_ATTRIBUTE.search(text) is None:
        return text
    return _SPECIAL_IN_ATTRIBUTE.sub(lambda match: _ESCAPES[match[0]], text)


def is_valid_text(text: str) -> bool:
    """Whether XML 1.0 allows every character of the text."""
    return _NOT_ALLOWED.search(text) is None


def element(name: str, text: str) -> str:
    return wrapped(name, escape(text))


def wrapped(name: str, inside: str) -> str:
    """An element around XML."""
    return f"<{name}>{inside}</{name}>" if inside else f"<{name} />"


def document(root: str) -> bytes:
    """A whole document around the text of its root element."""
    return f"{BYTE_ORDER_MARK}{DECLARATION}{root}".encode()


def document_of(*pieces: bytes) -> bytes:
    """The same around a root element in pieces."""
    return b"".join((f"{BYTE_ORDER_MARK}{DECLARATION}".encode(), *pieces))


def name_element(name: str, tag: str = "Name") -> str:
    """``<Name>`` of a listed item; percent-encoded, and marked so, when XML does not allow it."""
    if is_valid_text(name):
        return f"<{tag}>{escape(name)}</{tag}>"
    return f'<{tag} Encoded="true">{quote(name)}</{tag}>'


def error_body(code: str, message: str, detail: Mapping[str, str]) -> bytes:
    """The body of an error response. The message contains request id and time; details become elements after it."""
    more = "".join(f"<{name}>{escape(valid_text(value))}</{name}>" for name, value in detail.items())
    return document(f"<Error><Code>{code}</Code><Message>{escape(message)}</Message>{more}</Error>")


def valid_text(text: str) -> str:
    """The text with question marks for the characters that XML does not allow: for echoing a client's text."""
    return _NOT_ALLOWED.sub("?", text)


class _Handlers(Protocol):
    """What the parser calls."""

    def start(self, name: str, attributes: Mapping[str, str]) -> None: ...

    def end(self, name: str) -> None: ...

    def text(self, text: str) -> None: ...


def _parser(handlers: _Handlers) -> expat.XMLParserType:
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    parser.StartElementHandler = handlers.start
    parser.EndElementHandler = handlers.end
    parser.CharacterDataHandler = handlers.text
    parser.StartDoctypeDeclHandler = _refuse
    parser.EntityDeclHandler = _refuse
    return parser


def _parse(parser: expat.XMLParserType, part: bytes, *, is_last: bool) -> None:
    try:
        parser.Parse(part, is_last)
    except (expat.ExpatError, LookupError, ValueError):  # The last two are about its encoding.
        raise invalid_document() from None


def _refuse(*_: object) -> None:
    raise invalid_document()


class _Reader:
    """Builds elements."""

    def __init__(self) -> None:
        self._open: list[tuple[Element, list[str]]] = []
        self._root: Element | None = None
        self._count = 0

    def read(self, document: bytes) -> Element:
        _parse(_parser(self), document, is_last=True)
        if self._root is None:
            raise invalid_document()
        return self._root

    def start(self, name: str, _attributes: Mapping[str, str]) -> None:
        self._count += 1
        if len(self._open) >= MAX_DEPTH or self._count > MAX_ELEMENTS:
            raise invalid_document()
        started = Element(name.rpartition("}")[2])
        if self._open:
            self._open[-1][0].children.append(started)
        else:
            self._root = started
        self._open.append((started, []))

    def end(self, _name: str) -> None:
        ended, pieces = self._open.pop()
        ended.text = "".join(pieces)

    def text(self, text: str) -> None:
        self._open[-1][1].append(text)


class _ListReader:
    """Keeps the elements in the root element, and nothing of what is inside them but their text."""

    def __init__(self, root: str) -> None:
        self.items: list[tuple[str, str]] = []
        self._root = root
        self._depth = 0
        self._text = ""

    def start(self, name: str, _attributes: Mapping[str, str]) -> None:
        depth = self._depth
        if depth == 1:
            self._text = ""
        elif depth >= MAX_DEPTH or (depth == 0 and name.rpartition("}")[2] != self._root):
            raise invalid_document()
        self._depth = depth + 1

    def end(self, name: str) -> None:
        self._depth -= 1
        if self._depth == 1:
            self.items.append((name.rpartition("}")[2], self._text))

    def text(self, text: str) -> None:
        if self._depth == 2:
            if len(self._text) > _TOKEN_MAX_BYTES:
                raise invalid_document()
            self._text += text
