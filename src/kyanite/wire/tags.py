"""The tags of a blob on the wire: the XML document of Set and Get Blob Tags, and the form of ``x-ms-tags``.

    <Tags><TagSet><Tag><Key>k</Key><Value>v</Value></Tag>...</TagSet></Tags>
    k=v&k2=v2                   form-encoded: a plus sign or %20 is a space, %2B is a plus sign

Which tags a blob may have is a rule (``rules/tags.py``). White space is part of keys and values.
"""

from collections.abc import Sequence
from urllib.parse import unquote_to_bytes

from kyanite.wire import xml
from kyanite.wire.malformed import bad_header

HEADER = "x-ms-tags"

Pairs = Sequence[tuple[str, str]]


def decode(document: bytes) -> list[tuple[str, str]]:
    """The keys and values in the order of the document. Raises Malformed."""
    pairs = []
    for tag in xml.decode(document, "Tags").required_child("TagSet"):
        if tag.name != "Tag":
            raise xml.unsupported_node(tag.name)
        pairs.append((tag.required_child("Key").text, tag.required_child("Value").text))
    return pairs


def encode(tags: Pairs) -> bytes:
    return xml.document(element(tags))


def element(tags: Pairs) -> str:
    """The root element, which is also a part of listings."""
    inside = "".join(
        f"<Tag>{xml.element('Key', key)}{xml.element('Value', value)}</Tag>" for key, value in tags
    )
    return f"<Tags>{xml.wrapped('TagSet', inside)}</Tags>"


def decode_form(text: str) -> list[tuple[str, str]]:
    """The keys and values of the header, in its order. Raises Malformed."""
    if not text:
        return []
    pairs = []
    for part in text.split("&"):
        key, sign, value = part.partition("=")
        if not sign:
            raise bad_header(HEADER, text)
        pairs.append((_unquoted(key, text), _unquoted(value, text)))
    return pairs


def _unquoted(part: str, text: str) -> str:
    try:
        return unquote_to_bytes(part.replace("+", " ")).decode()
    except UnicodeDecodeError:
        raise bad_header(HEADER, text) from None
