"""Queues and their messages."""

from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape

from kyanite.services.console import lists
from kyanite.services.console.client import Answer, path_of
from kyanite.services.console.lists import PAGE
from kyanite.services.console.visit import Visit
from kyanite.wire.http import Response

_PEEKED = 32
"""As many as the service lets a client look at."""
_WEEK_SECONDS = 7 * 24 * 3600


async def show_queues(visit: Visit) -> Response:
    query: dict[str, str | int] = {"comp": "list", "maxresults": PAGE, "include": "metadata"}
    query |= {"prefix": visit.get("prefix"), "marker": visit.get("marker")}
    found = (await visit.client.call("queue", "GET", "/", query)).xml
    return visit.page(
        "queues.html",
        queues=[lists.name_of(each) for each in found.iter("Queue")],
        prefix=visit.get("prefix"),
        next_marker=lists.text(found, "NextMarker"),
        section="queue",
    )


async def create_queue(visit: Visit) -> Response:
    name = visit.need("queue")
    await visit.client.call("queue", "PUT", path_of(name))
    return _back(visit, "created")


async def delete_queue(visit: Visit) -> Response:
    await visit.client.call("queue", "DELETE", path_of(visit.need("queue")))
    return visit.go_to("/queues", "deleted", account=visit.account.name)


async def show_queue(visit: Visit) -> Response:
    """The messages that could be dequeued next. Looking at them takes none."""
    return await _page(visit)


async def take_messages(visit: Visit) -> Response:
    """Dequeue: take messages, which others do not see until their time is over, or they are deleted here."""
    query: dict[str, str | int] = {
        "numofmessages": max(1, visit.number("count", 1, _PEEKED)),
        "visibilitytimeout": max(1, visit.number("seconds", 30, _WEEK_SECONDS)),
    }
    dequeued = await visit.client.call("queue", "GET", _messages(visit), query)
    return await _page(visit, _messages_in(dequeued))


async def delete_message(visit: Visit) -> Response:
    path = f"{_messages(visit)}{path_of(visit.need('message'))}"
    await visit.client.call("queue", "DELETE", path, {"popreceipt": visit.need("receipt")})
    return _back(visit, "deleted")


async def add_message(visit: Visit) -> Response:
    text = visit.get("text").replace("\r\n", "\n")
    body = f"<QueueMessage><MessageText>{escape(text)}</MessageText></QueueMessage>".encode()
    query: dict[str, str | int] = {"visibilitytimeout": visit.number("delay", 0, _WEEK_SECONDS)}
    headers = {"Content-Type": "application/xml"}
    await visit.client.call("queue", "POST", _messages(visit), query, headers, body)
    return _back(visit, "added")


async def clear_queue(visit: Visit) -> Response:
    await visit.client.call("queue", "DELETE", _messages(visit))
    return _back(visit, "cleared")


def _messages(visit: Visit) -> str:
    return f"{path_of(visit.need('queue'))}/messages"


async def _page(visit: Visit, dequeued: list[dict[str, str]] | None = None) -> Response:
    name, client = visit.need("queue"), visit.client
    head = await client.call("queue", "GET", path_of(name), {"comp": "metadata"})
    peeked = await client.call(
        "queue", "GET", _messages(visit), {"peekonly": "true", "numofmessages": _PEEKED}
    )
    return visit.page(
        "queue.html",
        queue=name,
        count=head.headers.get("x-ms-approximate-messages-count", ""),
        metadata=head.metadata(),
        messages=_messages_in(peeked),
        dequeued=dequeued or [],
        section="queue",
    )


def _messages_in(answer: Answer) -> list[dict[str, str]]:
    return [_message(each) for each in answer.xml.iter("QueueMessage")]


def _message(element: Element) -> dict[str, str]:
    return {
        "id": lists.text(element, "MessageId"),
        "inserted": lists.text(element, "InsertionTime"),
        "expires": lists.text(element, "ExpirationTime"),
        "count": lists.text(element, "DequeueCount"),
        "text": lists.text(element, "MessageText"),
        "receipt": lists.text(element, "PopReceipt"),
        "visible": lists.text(element, "TimeNextVisible"),
    }


def _back(visit: Visit, done: str) -> Response:
    return visit.go_to("/queue", done, account=visit.account.name, queue=visit.need("queue"))
