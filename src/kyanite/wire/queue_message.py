"""``QueueMessage``: the text of a message on its way in, as XML.

The text is what the XML says, character for character, white space and line ends included; only a bare carriage
return is a line feed, as for every reader of XML.
"""

from kyanite.wire import xml

# What clients usually send needs no parser. Whatever does not look exactly like this, or holds a byte that could
# mean anything but itself, is left to one.
_BEGINNINGS = frozenset(
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
_OPEN = b"<QueueMessage><MessageText>"
_CLOSE = b"</MessageText></QueueMessage>"
_DOUBTFUL = bytes(set(range(32)) - set(b"\t\n")) + b"<>&\xef"
"""Controls, markup, and how characters begin that XML cannot hold."""


def decode(document: bytes) -> str:
    """The text of the message. Raises Malformed."""
    start = document.find(_OPEN)
    if start >= 0 and document.endswith(_CLOSE) and document[:start] in _BEGINNINGS:
        text = document[start + len(_OPEN) : -len(_CLOSE)]
        if len(text.translate(None, _DOUBTFUL)) == len(text):
            try:
                return text.decode()
            except UnicodeError:
                raise xml.invalid_document() from None
    return decode_xml(document)


def decode_xml(document: bytes) -> str:
    """The same by a parser alone."""
    element = xml.decode(document, "QueueMessage").required_child("MessageText")
    if element.children:
        raise xml.invalid_document()
    return element.text
