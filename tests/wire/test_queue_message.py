"""The text of a message, read out of XML: quickly where that is safe, and always as a parser reads it."""

from collections.abc import Callable
from xml.sax.saxutils import escape

from hypothesis import given, settings
from hypothesis import strategies as st

from kyanite.wire import queue_message
from kyanite.wire.malformed import Malformed
from tests.profiles import examples

BEGINNINGS = ["", "<?xml version='1.0' encoding='utf-8'?>\n", " ", "\ufeff", "<a>", "<?xml version='1.0'?>"]
TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from("<>&\t\r\n ]\x01\ufffe\uffff"), max_size=40)


@given(text=TEXTS, beginning=st.sampled_from(BEGINNINGS), cut=st.integers(0, 3), spoiled=st.booleans())
@settings(max_examples=examples(300))
def test_what_is_read_without_a_parser_is_what_a_parser_reads(
    text: str, beginning: str, cut: int, spoiled: bool
) -> None:
    for written in (text, escape(text)):
        whole = f"{beginning}<QueueMessage><MessageText>ü{written}</MessageText></QueueMessage>".encode()
        document = whole[: len(whole) - cut]
        if spoiled:
            document = document.replace("ü".encode(), b"\xfc")
        assert outcome(queue_message.decode, document) == outcome(queue_message.decode_xml, document)


@given(
    text=st.text(st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="\ufffe\uffff"))
)
def test_a_text_is_read_as_it_was_written(text: str) -> None:
    document = f"<QueueMessage><MessageText>{escape(text)}</MessageText></QueueMessage>".encode()
    assert queue_message.decode(document) == text


def test_other_documents_are_refused_with_the_error_they_have() -> None:
    assert outcome(queue_message.decode, b"") == "InvalidXmlDocument"
    assert outcome(queue_message.decode, b"<Other/>") == "InvalidXmlDocument"
    assert outcome(queue_message.decode, b"<QueueMessage/>") == "MissingRequiredXmlNode"
    nested = b"<QueueMessage><MessageText>a<b/></MessageText></QueueMessage>"
    assert outcome(queue_message.decode, nested) == "InvalidXmlDocument"


def outcome(decode: Callable[[bytes], str], document: bytes) -> str | tuple[str]:
    """The text, alone in a tuple, or the code of what is wrong."""
    try:
        return (decode(document),)
    except Malformed as malformed:
        return malformed.code
