"""Messages through the service: their properties, byte for byte, and their times."""

from xml.sax.saxutils import escape

import pytest

from kyanite.values import TICKS_PER_SECOND, Instant
from kyanite.wire import http_date
from tests.services.harness import START, Harness
from tests.services.queue.requests import document, get, items, put, texts, use


def date(seconds: float) -> str:
    return http_date.encode(Instant(START + round(seconds * TICKS_PER_SECOND)))


async def test_the_properties_of_a_message(queues: Harness) -> None:
    await queues("PUT", "/work")
    sent = await put(queues, "hello")
    assert sent.keys() == {"MessageId", "InsertionTime", "ExpirationTime", "PopReceipt", "TimeNextVisible"}
    assert (sent["InsertionTime"], sent["TimeNextVisible"]) == (date(0), date(0))
    assert sent["ExpirationTime"] == date(7 * 24 * 3600)
    (peeked,) = items(await queues("GET", "/work/messages?peekonly=true"))
    assert peeked == {
        "MessageId": sent["MessageId"],
        "InsertionTime": date(0),
        "ExpirationTime": sent["ExpirationTime"],
        "DequeueCount": "0",
        "MessageText": "hello",
    }
    (got,) = await get(queues)
    assert got == {
        **peeked,
        "DequeueCount": "1",
        "PopReceipt": got["PopReceipt"],
        "TimeNextVisible": date(30),
    }
    assert got["PopReceipt"] != sent["PopReceipt"]
    assert await get(queues) == []
    assert await texts(queues) == []
    updated = await queues("PUT", use(got, "&visibilitytimeout=0"), body=document("bye"))
    assert (updated.status, updated.body) == (204, b"")
    assert updated.headers["x-ms-time-next-visible"] == date(0)
    (again,) = await get(queues, "visibilitytimeout=604800")
    assert (again["DequeueCount"], again["MessageText"]) == ("2", "bye")
    assert again["TimeNextVisible"] == date(604_800)
    assert (await queues("DELETE", use(again))).status == 204
    gone = await queues("DELETE", use(again))
    assert (gone.status, gone.code) == (404, "MessageNotFound")


async def test_times_of_a_put(queues: Harness) -> None:
    await queues("PUT", "/work")
    later = await put(queues, "later", "visibilitytimeout=10&messagettl=20")
    assert (later["TimeNextVisible"], later["ExpirationTime"]) == (date(10), date(20))
    forever = await put(queues, "forever", "messagettl=-1&visibilitytimeout=5")
    assert forever["ExpirationTime"] == "Fri, 31 Dec 9999 23:59:59 GMT"
    longest = await put(queues, "longest", "messagettl=9007199254740991&visibilitytimeout=604800")
    assert longest["TimeNextVisible"] == date(604_800)
    assert longest["ExpirationTime"] == forever["ExpirationTime"]
    assert await texts(queues) == []
    queues.clock.now = Instant(START + 11 * TICKS_PER_SECOND)
    assert await texts(queues) == ["forever", "later"]
    queues.clock.now = Instant(START + 21 * TICKS_PER_SECOND)
    assert await texts(queues) == ["forever"]
    queues.clock.now = Instant(START + 10_000_000 * TICKS_PER_SECOND)
    assert [one["MessageText"] for one in await get(queues, "numofmessages=32")] == ["forever", "longest"]


async def test_the_receipt_of_a_put_is_good_before_anyone_gets_the_message(queues: Harness) -> None:
    await queues("PUT", "/work")
    sent = await put(queues, "hidden", "visibilitytimeout=100")
    updated = await queues("PUT", use(sent, "&visibilitytimeout=0"))
    assert updated.status == 204
    assert await texts(queues) == ["hidden"]
    assert (await queues("DELETE", use(sent))).code == "MessageNotFound"
    assert (await queues("DELETE", use(sent, receipt=updated.headers["x-ms-popreceipt"]))).status == 204


async def test_a_receipt_outlives_its_timeout_but_not_the_next_get(queues: Harness) -> None:
    await queues("PUT", "/work")
    await put(queues)
    (first,) = await get(queues, "visibilitytimeout=1")
    queues.clock.now = Instant(START + 5 * TICKS_PER_SECOND)
    updated = await queues("PUT", use(first, "&visibilitytimeout=0"))
    assert updated.status == 204
    (second,) = await get(queues, "visibilitytimeout=1")
    queues.clock.now = Instant(START + 10 * TICKS_PER_SECOND)
    for stale in (first["PopReceipt"], updated.headers["x-ms-popreceipt"]):
        for answer in (
            await queues("DELETE", use(first, receipt=stale)),
            await queues("PUT", use(first, "&visibilitytimeout=0", receipt=stale), body=document("no")),
        ):
            assert (answer.status, answer.code) == (404, "MessageNotFound")
    assert await texts(queues) == ["text"]
    assert (await queues("DELETE", use(second))).status == 204


async def test_an_update_may_keep_replace_or_empty_the_text(queues: Harness) -> None:
    await queues("PUT", "/work")
    sent = await put(queues, "first")
    for body, expected in ((b"", "first"), (document("second"), "second"), (document(""), "")):
        answer = await queues("PUT", use(sent, "&visibilitytimeout=0"), body=body)
        assert answer.status == 204
        sent["PopReceipt"] = answer.headers["x-ms-popreceipt"]
        assert await texts(queues) == [expected]


async def test_as_many_as_requested_in_the_order_they_were_put(queues: Harness) -> None:
    await queues("PUT", "/work")
    for number in range(40):
        await put(queues, str(number))
    assert [one["MessageText"] for one in await get(queues)] == ["0"]
    assert [one["MessageText"] for one in await get(queues, "numofmessages=32")] == [
        str(number) for number in range(1, 33)
    ]
    assert await texts(queues) == [str(number) for number in range(33, 40)]
    count = (await queues("GET", "/work?comp=metadata")).headers["x-ms-approximate-messages-count"]
    assert count == "40"
    assert (await queues("DELETE", "/work/messages")).status == 204
    assert await texts(queues) == []
    count = (await queues("GET", "/work?comp=metadata")).headers["x-ms-approximate-messages-count"]
    assert count == "0"


async def test_before_2016_05_31_a_put_tells_nothing(queues: Harness) -> None:
    await queues("PUT", "/work")
    answer = await queues(
        "POST", "/work/messages", {"x-ms-version": "2015-12-11"}, document("old"), chunked=False
    )
    assert (answer.status, answer.body) == (201, b"")
    assert await texts(queues) == ["old"]


@pytest.mark.parametrize(("life", "status"), [("604800", 201), ("604801", 400), ("-1", 400)])
async def test_before_2017_07_29_a_message_lived_for_seven_days_at_most(
    queues: Harness, life: str, status: int
) -> None:
    await queues("PUT", "/work")
    answer = await queues(
        "POST", f"/work/messages?messagettl={life}", {"x-ms-version": "2017-04-17"}, document("old")
    )
    assert answer.status == status
    if status == 400:
        assert answer.xml.findtext("MaximumAllowed") == "604800"


TEXTS = [
    "",
    " ",
    "\n",
    "  leading and trailing  ",
    "tabs\tand\nlines\n\n",
    "carriage\rreturn\r\n",
    "<QueueMessage>&amp;</QueueMessage>",
    "]]>",
    "aGVsbG8=",
    "Grüße, 世界 🌍 \u2028 \ufffd \ue000 \U0010ffff",
    "'quotes' \"and\" `more`",
    "\x7f\x80\x9f",
    "x" * 64 * 1024,
    "ü" * 32 * 1024,
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
async def test_a_text_comes_back_as_it_was_sent(queues: Harness, text: str) -> None:
    await queues("PUT", "/work")
    body = f"<QueueMessage><MessageText>{escape(text, {chr(13): '&#13;'})}</MessageText></QueueMessage>"
    sent = items(await queues("POST", "/work/messages", body=body.encode()))[0]
    assert await texts(queues) == [text]
    (got,) = await get(queues)
    assert got["MessageText"] == text
    await queues("PUT", use(sent, "&visibilitytimeout=0", got["PopReceipt"]), body=body.encode())
    assert await texts(queues) == [text]


DOCUMENTS = [
    (b"<?xml version='1.0' encoding='utf-8'?>\n<QueueMessage><MessageText>a</MessageText></QueueMessage>", "a"),
    (b'<?xml version="1.0" encoding="utf-16"?><QueueMessage><MessageText>a</MessageText></QueueMessage>', None),
    ("<QueueMessage><MessageText>ü</MessageText></QueueMessage>".encode("utf-16"), "ü"),
    (b"\xef\xbb\xbf<QueueMessage><MessageText>a</MessageText></QueueMessage>", "a"),
    (b"<QueueMessage>\n  <MessageText> a </MessageText>\n</QueueMessage>\n", " a "),
    (b"<QueueMessage><MessageText><![CDATA[<a>&]]></MessageText></QueueMessage>", "<a>&"),
    (b"<QueueMessage><MessageText>a<!-- no -->b</MessageText></QueueMessage>", "ab"),
    (b"<QueueMessage><MessageText/></QueueMessage>", ""),
    (b"<QueueMessage><MessageText>a\r\nb\rc</MessageText></QueueMessage>", "a\nb\nc"),
    (b"<QueueMessage><MessageText>&#x1F30D;</MessageText></QueueMessage>", "🌍"),
    (b"<QueueMessage xmlns='urn:x'><MessageText>a</MessageText></QueueMessage>", "a"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "text"), DOCUMENTS, ids=range(len(DOCUMENTS)))
async def test_xml_of_any_kind_is_read(queues: Harness, body: bytes, text: str | None) -> None:
    await queues("PUT", "/work")
    answer = await queues("POST", "/work/messages", body=body)
    assert answer.status == (400 if text is None else 201)
    assert await texts(queues) == ([] if text is None else [text])
