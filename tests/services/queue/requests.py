"""Requests about messages of the queue ``work``, and what their responses contain."""

from urllib.parse import quote
from xml.sax.saxutils import escape

from tests.services.harness import Answer, Harness

Item = dict[str, str]


async def create(queues: Harness, name: str = "work", **headers: str) -> None:
    assert (await queues("PUT", f"/{name}", headers)).status == 201


def document(text: str) -> bytes:
    """The body of Put Message."""
    return f"<QueueMessage><MessageText>{escape(text)}</MessageText></QueueMessage>".encode()


def items(answer: Answer) -> list[Item]:
    """The messages in a response, each with its elements by name."""
    assert answer.status in {200, 201}, answer
    assert answer.headers["content-type"] == "application/xml"
    assert answer.xml.tag == "QueueMessagesList"
    return [{part.tag: part.text or "" for part in one} for one in answer.xml]


async def put(queues: Harness, text: str = "text", query: str = "") -> Item:
    answer = await queues("POST", f"/work/messages?{query}", body=document(text))
    assert answer.status == 201, answer
    return items(answer)[0]


async def get(queues: Harness, query: str = "") -> list[Item]:
    return items(await queues("GET", f"/work/messages?{query}"))


async def texts(queues: Harness) -> list[str]:
    """The texts of the visible messages."""
    peeked = await queues("GET", "/work/messages?peekonly=true&numofmessages=32")
    return [one["MessageText"] for one in items(peeked)]


def use(item: Item, query: str = "", receipt: str = "") -> str:
    """The target of an update or a delete of a message."""
    return f"/work/messages/{item['MessageId']}?popreceipt={quote(receipt or item['PopReceipt'])}{query}"
