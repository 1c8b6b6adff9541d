"""Messages through the official client: sent, seen, received, updated, deleted; and in which order and for how long."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.queue import (
    BinaryBase64DecodePolicy,
    BinaryBase64EncodePolicy,
    TextBase64DecodePolicy,
    TextBase64EncodePolicy,
)

from tests.sdk.clients import Sdk, done, items, refused


async def received(queue: Any, **options: Any) -> list[Any]:
    return await items(queue.receive_messages(**options))


async def contents(queue: Any) -> list[Any]:
    return [message.content for message in await done(queue.peek_messages(32))]


async def test_a_message_from_sent_to_deleted(sdk: Sdk) -> None:
    queue = await sdk.new_queue()
    sent = await done(queue.send_message("hello"))
    assert sent.expires_on - sent.inserted_on == timedelta(days=7)
    assert abs(sent.next_visible_on - sent.inserted_on) < timedelta(seconds=2)
    (found,) = await done(queue.peek_messages())
    assert (found.id, found.content, found.dequeue_count) == (sent.id, "hello", 0)
    got = await done(queue.receive_message(visibility_timeout=60))
    assert (got.id, got.content, got.dequeue_count) == (sent.id, "hello", 1)
    assert got.pop_receipt != sent.pop_receipt
    left = got.next_visible_on - datetime.now(UTC)
    assert timedelta(seconds=30) < left <= timedelta(seconds=61)
    assert await done(queue.receive_message()) is None
    assert (await done(queue.get_queue_properties())).approximate_message_count == 1
    await done(queue.delete_message(got))
    assert (await done(queue.get_queue_properties())).approximate_message_count == 0


async def test_messages_come_in_the_order_in_which_they_were_sent(sdk: Sdk) -> None:
    queue = await sdk.new_queue()
    for number in range(10):
        await done(queue.send_message(str(number)))
    assert await contents(queue) == [str(number) for number in range(10)]
    first = await received(queue, max_messages=4)
    assert [message.content for message in first] == ["0", "1", "2", "3"]
    rest = await received(queue, messages_per_page=5)
    assert [message.content for message in rest] == ["4", "5", "6", "7", "8", "9"]


async def test_a_stale_receipt_finds_nothing(sdk: Sdk) -> None:
    queue = await sdk.new_queue()
    sent = await done(queue.send_message("first"))
    got = await done(queue.receive_message())
    with refused(404, "MessageNotFound", ResourceNotFoundError):
        await done(queue.delete_message(sent))
    updated = await done(queue.update_message(got, visibility_timeout=0, content="second"))
    with refused(404, "MessageNotFound", ResourceNotFoundError):
        await done(queue.update_message(got, visibility_timeout=0, content="third"))
    again = await done(queue.receive_message())
    assert (again.content, again.dequeue_count) == ("second", 2)
    with refused(404, "MessageNotFound", ResourceNotFoundError):
        await done(queue.delete_message(got.id, updated.pop_receipt))
    with refused(400, "InvalidQueryParameterValue"):
        await done(queue.delete_message(got.id, "made up"))
    await done(queue.delete_message(again))


async def test_a_receipt_is_good_until_the_next_receive(sdk: Sdk) -> None:
    queue = await sdk.new_queue()
    await done(queue.send_message("once"))
    slow = await done(queue.receive_message(visibility_timeout=1))
    await asyncio.sleep(1.2)
    assert await contents(queue) == ["once"]
    await done(queue.delete_message(slow))
    await done(queue.send_message("twice"))
    slow = await done(queue.receive_message(visibility_timeout=1))
    await asyncio.sleep(1.2)
    quick = await done(queue.receive_message())
    assert quick.dequeue_count == 2
    with refused(404, "MessageNotFound", ResourceNotFoundError):
        await done(queue.delete_message(slow))
    await done(queue.delete_message(quick))


async def test_messages_appear_and_expire_when_they_should(sdk: Sdk) -> None:
    queue = await sdk.new_queue()
    await done(queue.send_message("later", visibility_timeout=1))
    await done(queue.send_message("brief", time_to_live=1))
    forever = await done(queue.send_message("forever", time_to_live=-1))
    assert forever.expires_on == datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert await contents(queue) == ["brief", "forever"]
    await asyncio.sleep(1.2)
    assert await contents(queue) == ["forever", "later"]


async def test_clear_removes_hidden_messages_too(sdk: Sdk) -> None:
    queue = await sdk.new_queue()
    for number in range(5):
        await done(queue.send_message(str(number)))
    held = await done(queue.receive_message())
    await done(queue.clear_messages())
    assert await contents(queue) == []
    assert (await done(queue.get_queue_properties())).approximate_message_count == 0
    with refused(404, "MessageNotFound", ResourceNotFoundError):
        await done(queue.delete_message(held))
    await done(queue.send_message("new"))
    assert await contents(queue) == ["new"]


@pytest.mark.parametrize(
    "text",
    ["", " ", "  two\n\tlines  \n", "<tag attribute='&amp;'>]]></tag>", "Grüße 世界 🌍", "x" * 65_536],
    ids=["empty", "space", "lines", "markup", "letters", "long"],
)
async def test_a_text_comes_back_as_it_was_sent(sdk: Sdk, text: str) -> None:
    queue = await sdk.new_queue()
    await done(queue.send_message(text))
    assert [one or "" for one in await contents(queue)] == [text]
    got = await done(queue.receive_message())
    assert (got.content or "") == text


@pytest.mark.parametrize(
    ("encode", "decode", "content"),
    [
        (TextBase64EncodePolicy, TextBase64DecodePolicy, "Grüße\r\n\x00\x01 世界"),
        (BinaryBase64EncodePolicy, BinaryBase64DecodePolicy, bytes(range(256))),
        (BinaryBase64EncodePolicy, BinaryBase64DecodePolicy, bytes(48 * 1024)),
    ],
    ids=["text", "binary", "long binary"],
)
async def test_encoded_messages_come_back_decoded(sdk: Sdk, encode: Any, decode: Any, content: Any) -> None:
    queue = await sdk.new_queue(message_encode_policy=encode(), message_decode_policy=decode())
    sent = await done(queue.send_message(content))
    assert await contents(queue) == [content]
    got = await done(queue.receive_message())
    assert (got.id, got.content) == (sent.id, content)
    await done(queue.update_message(got, visibility_timeout=0, content=content[:5]))
    assert await contents(queue) == [content[:5]]


async def test_a_text_that_is_too_long_is_refused(sdk: Sdk) -> None:
    queue = await sdk.new_queue()
    with refused(413, "RequestBodyTooLarge"):
        await done(queue.send_message("x" * 65_537))
    with refused(413, "RequestBodyTooLarge"):
        await done(queue.send_message("x" * 1_000_000))
    assert await contents(queue) == []


async def test_what_is_out_of_range_is_refused(sdk: Sdk) -> None:
    queue = await sdk.new_queue()
    beyond = {"visibility_timeout": 604_801}
    for call in (partial(queue.receive_message, **beyond), partial(queue.send_message, "x", **beyond)):
        with refused(400, "OutOfRangeQueryParameterValue") as caught:
            await done(call())
        assert "MaximumAllowed" in str(caught.value)
    assert await contents(queue) == []
