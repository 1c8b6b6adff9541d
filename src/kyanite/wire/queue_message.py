"""``QueueMessage``: the text of a message in a request, as XML.

The text is the content of the XML, character for character, white space and line ends included; only a bare carriage
return becomes a line feed, as in every XML parser.
"""

from typing import Final

from kyanite.wire import xml

# What clients usually send needs no parser. A document that does not have exactly this form, or contains a byte that
# may not stand for itself, is parsed.
_BEGINNINGS: Final = frozenset(
    declaration + end
    for declaration in (
        b"",
        b"<?xml version='1.0' encoding='utf-8'?>",
        b'<?xml version="1.0" encoding="utf-8"?>',
        b'<?xml version="1.0" encoding="UTF-8"?>',
        b'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>',
    )
    for end in (b"", b"\n")
)
_OPEN: Final = b"<QueueMessage><MessageText>"
_CLOSE: Final = b"</MessageText></QueueMessage>"
_NOT_LITERAL: Final = bytes(set(range(32)) - set(b"\t\n")) + b"<>&\xef"
"""Controls, markup, and the first bytes of characters that XML does not allow."""


def decode(document: bytes) -> str:
    """The text of the message. Raises Malformed."""
    start = document.find(_OPEN)
    if start >= 0 and document.endswith(_CLOSE) and document[:start] in _BEGINNINGS:
        text = document[start + len(_OPEN) : -len(_CLOSE)]
        if len(text.translate(None, _NOT_LITERAL)) == len(text):
            try:
                return text.decode()
            except UnicodeError:
                raise xml.invalid_document() from None
    return decode_xml(document)


def decode_xml(document: bytes) -> str:
    """The same, always with the parser."""
    element = xml.decode(document, "QueueMessage").required_child("MessageText")
    if element.children:
        raise xml.invalid_document()
    return element.text
