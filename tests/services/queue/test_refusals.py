"""Messages that are refused: the documented code, the allowed range where there is one, and nothing stored."""

import pytest

from kyanite.rules.refusals import Reason
from kyanite.services.queue import errors
from kyanite.services.rest import errors as common
from kyanite.services.rest.context import Resource
from kyanite.values import later
from tests.services.harness import Harness
from tests.services.queue.requests import document, get, put, texts, use

RECEIPT = "A" * 32
OUT_OF_RANGE, INVALID = "OutOfRangeQueryParameterValue", "InvalidQueryParameterValue"
MISSING = "MissingRequiredQueryParameter"

# The request, the code, and parts of the error's body.
PARAMETERS = [
    ("GET", "numofmessages=0", OUT_OF_RANGE, {"MinimumAllowed": "1", "MaximumAllowed": "32"}),
    ("GET", "numofmessages=33", OUT_OF_RANGE, {"QueryParameterName": "numofmessages", "QueryParameterValue": "33"}),
    ("GET", "numofmessages=-1", OUT_OF_RANGE, {"MinimumAllowed": "1", "MaximumAllowed": "32"}),
    ("GET", "numofmessages=many", INVALID, {"QueryParameterName": "numofmessages", "QueryParameterValue": "many"}),
    ("GET", "numofmessages=", INVALID, {"QueryParameterName": "numofmessages"}),
    ("GET", "numofmessages=1.0", INVALID, {}),
    ("GET", "numofmessages=%2B1", INVALID, {}),
    ("GET", "numofmessages=%D9%A1", INVALID, {}),
    ("GET", "numofmessages=1_0", INVALID, {}),
    ("GET", "numofmessages=" + "9" * 5000, INVALID, {}),
    ("GET", "visibilitytimeout=0", OUT_OF_RANGE, {"MinimumAllowed": "1", "MaximumAllowed": "604800"}),
    ("GET", "visibilitytimeout=604801", OUT_OF_RANGE, {"MinimumAllowed": "1", "MaximumAllowed": "604800"}),
    ("GET", "visibilitytimeout=soon", INVALID, {"QueryParameterName": "visibilitytimeout"}),
    ("GET", "peekonly=true&numofmessages=0", OUT_OF_RANGE, {"MinimumAllowed": "1", "MaximumAllowed": "32"}),
    ("GET", "peekonly=true&numofmessages=33", OUT_OF_RANGE, {}),
    ("GET", "peekonly=perhaps", INVALID, {"QueryParameterName": "peekonly"}),
    ("POST", "visibilitytimeout=-1", OUT_OF_RANGE, {"MinimumAllowed": "0", "MaximumAllowed": "604800"}),
    ("POST", "visibilitytimeout=604801", OUT_OF_RANGE, {"QueryParameterName": "visibilitytimeout"}),
    ("POST", "visibilitytimeout=x", INVALID, {}),
    ("POST", "messagettl=0", OUT_OF_RANGE, {"QueryParameterName": "messagettl", "MinimumAllowed": "1"}),
    ("POST", "messagettl=-2", OUT_OF_RANGE, {}),
    ("POST", f"messagettl={2**63}", OUT_OF_RANGE, {"MaximumAllowed": str(2**63 - 1)}),
    ("POST", f"messagettl={10**19}", INVALID, {}),
    ("POST", "messagettl=forever", INVALID, {}),
    ("POST", "messagettl=60&visibilitytimeout=60", INVALID, {"QueryParameterName": "visibilitytimeout"}),
    ("POST", "messagettl=60&visibilitytimeout=61", INVALID, {"QueryParameterValue": "61"}),
]  # fmt: skip


@pytest.mark.parametrize(("method", "query", "code", "detail"), PARAMETERS)
async def test_parameters_of_all_messages(
    queues: Harness, method: str, query: str, code: str, detail: dict[str, str]
) -> None:
    await queues("PUT", "/work")
    await put(queues, "kept")
    answer = await queues(
        method, f"/work/messages?{query}", body=document("new") if method == "POST" else b""
    )
    assert (answer.status, answer.code) == (400, code)
    assert answer.xml.findtext("Code") == code
    assert {name: answer.xml.findtext(name) for name in detail} == detail
    assert await texts(queues) == ["kept"]


# Requests about a message that has 100 seconds to live; "@" is its receipt.
USES = [
    ("PUT", "popreceipt=@", 400, MISSING, {"QueryParameterName": "visibilitytimeout"}),
    ("PUT", "visibilitytimeout=0", 400, MISSING, {"QueryParameterName": "popreceipt"}),
    ("PUT", "popreceipt=&visibilitytimeout=0", 400, MISSING, {"QueryParameterName": "popreceipt"}),
    ("PUT", "popreceipt=@&visibilitytimeout=-1", 400, OUT_OF_RANGE, {"MinimumAllowed": "0"}),
    ("PUT", "popreceipt=@&visibilitytimeout=604801", 400, OUT_OF_RANGE, {"MaximumAllowed": "604800"}),
    ("PUT", "popreceipt=@&visibilitytimeout=x", 400, INVALID, {}),
    ("PUT", "popreceipt=@&visibilitytimeout=101", 400, OUT_OF_RANGE, {"QueryParameterValue": "101"}),
    ("PUT", "popreceipt=x&visibilitytimeout=0", 400, INVALID, {"Reason": "Invalid pop receipt format"}),
    ("PUT", f"popreceipt={RECEIPT}&visibilitytimeout=0", 404, "MessageNotFound", {}),
    ("DELETE", "", 400, MISSING, {"QueryParameterName": "popreceipt"}),
    ("DELETE", "popreceipt=x", 400, INVALID, {"QueryParameterName": "popreceipt", "QueryParameterValue": "x"}),
    ("DELETE", f"popreceipt={RECEIPT}", 404, "MessageNotFound", {}),
    ("DELETE", "popreceipt=bkotggobrtswewdlauhh", 404, "MessageNotFound", {}),
    ("PUT", "popreceipt=bkotggobrtswewdlauhh&visibilitytimeout=0", 404, "MessageNotFound", {}),
]  # fmt: skip


@pytest.mark.parametrize(("method", "query", "status", "code", "detail"), USES)
async def test_uses_of_one_message(
    queues: Harness, method: str, query: str, status: int, code: str, detail: dict[str, str]
) -> None:
    await queues("PUT", "/work")
    sent = await put(queues, "kept", "messagettl=100")
    target = f"/work/messages/{sent['MessageId']}?{query.replace('@', sent['PopReceipt'])}"
    answer = await queues(method, target, body=document("new") if method == "PUT" else b"")
    assert (answer.status, answer.code) == (status, code)
    assert {name: answer.xml.findtext(name) for name in detail} == detail
    assert await texts(queues) == ["kept"]
    assert (await queues("DELETE", use(sent))).status == 204


@pytest.mark.parametrize("forged", [0, 8, 16, 23, 31])
async def test_a_forged_receipt_finds_nothing(queues: Harness, forged: int) -> None:
    """One character of a good receipt is changed, in each of its parts."""
    await queues("PUT", "/work")
    sent = await put(queues, "kept")
    good = sent["PopReceipt"]
    other = "B" if good[forged] == "A" else "A"
    answer = await queues("DELETE", use(sent, receipt=good[:forged] + other + good[forged + 1 :]))
    assert (answer.status, answer.code) == (404, "MessageNotFound")
    assert await texts(queues) == ["kept"]


async def test_a_receipt_opens_no_other_message(queues: Harness) -> None:
    await queues("PUT", "/work")
    first, second = await put(queues, "first"), await put(queues, "second")
    answer = await queues("DELETE", use(first, receipt=second["PopReceipt"]))
    assert (answer.status, answer.code) == (404, "MessageNotFound")
    for unknown in ("00000000-0000-0000-0000-000000000000", "x", "a/b", "%F0%9F%8C%8D"):
        answer = await queues("DELETE", f"/work/messages/{unknown}?popreceipt={first['PopReceipt']}")
        assert (answer.status, answer.code) == (404, "MessageNotFound")
    assert await texts(queues) == ["first", "second"]


BOMB = (
    b'<!DOCTYPE b [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
    b"<QueueMessage><MessageText>&b;</MessageText></QueueMessage>"
)
FILE = b'<!DOCTYPE b [<!ENTITY a SYSTEM "file:///etc/passwd">]><QueueMessage><MessageText>&a;</MessageText></QueueMessage>'

# What is sent, the status, the code, and the limit that the error names.
BODIES = [
    (b"not xml", 400, "InvalidXmlDocument", None),
    (b"<QueueMessage><MessageText>a</MessageText>", 400, "InvalidXmlDocument", None),
    (b"<QueueMessage><MessageText>a</QueueMessage></MessageText>", 400, "InvalidXmlDocument", None),
    (b"<QueueMessage><MessageText>a&nbsp;b</MessageText></QueueMessage>", 400, "InvalidXmlDocument", None),
    (b"<QueueMessage><MessageText>a & b</MessageText></QueueMessage>", 400, "InvalidXmlDocument", None),
    (b"<QueueMessage><MessageText>\x00</MessageText></QueueMessage>", 400, "InvalidXmlDocument", None),
    (b"<QueueMessage><MessageText>&#1;</MessageText></QueueMessage>", 400, "InvalidXmlDocument", None),
    (b"<QueueMessage><MessageText>\xff\xfe</MessageText></QueueMessage>", 400, "InvalidXmlDocument", None),
    (b"<QueueMessage><MessageText>\xef\xbf\xbf</MessageText></QueueMessage>", 400, "InvalidXmlDocument", None),
    (b"<QueueMessage><MessageText>\xed\xa0\x80</MessageText></QueueMessage>", 400, "InvalidXmlDocument", None),
    (b"<QueueMessage><MessageText>a]]>b</MessageText></QueueMessage>", 400, "InvalidXmlDocument", None),
    (b"<QueueMessage><MessageText>a<b>c</b></MessageText></QueueMessage>", 400, "InvalidXmlDocument", None),
    (b"<Message><MessageText>a</MessageText></Message>", 400, "InvalidXmlDocument", None),
    (b"<QueueMessage>a</QueueMessage>", 400, "MissingRequiredXmlNode", None),
    (b"<QueueMessage><Text>a</Text></QueueMessage>", 400, "MissingRequiredXmlNode", None),
    (BOMB, 400, "InvalidXmlDocument", None),
    (FILE, 400, "InvalidXmlDocument", None),
    (b"<a>" * 1000, 400, "InvalidXmlDocument", None),
    (document("x" * 65_537), 413, "RequestBodyTooLarge", "65536"),
    (document("ü" * 32_769), 413, "RequestBodyTooLarge", "65536"),
    (document("&" * 65_536), 413, "RequestBodyTooLarge", "131584"),
    (b" " * 1_000_000, 413, "RequestBodyTooLarge", "131584"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status", "code", "limit"), BODIES, ids=range(len(BODIES)))
@pytest.mark.parametrize("chunked", [False, True])
async def test_bodies_that_are_no_message(
    queues: Harness, body: bytes, status: int, code: str, limit: str | None, chunked: bool
) -> None:
    await queues("PUT", "/work")
    sent = await put(queues, "kept")
    for method, target in (("POST", "/work/messages"), ("PUT", use(sent, "&visibilitytimeout=0"))):
        answer = await queues(method, target, body=body, chunked=chunked)
        assert (answer.status, answer.code) == (status, code)
        assert answer.xml.findtext("MaxLimit") == limit
    assert await texts(queues) == ["kept"]
    assert (await queues("DELETE", use(sent))).status == 204


async def test_a_put_needs_a_message(queues: Harness) -> None:
    await queues("PUT", "/work")
    answer = await queues("POST", "/work/messages")
    assert (answer.status, answer.code) == (400, "InvalidXmlDocument")
    assert await texts(queues) == []


async def test_an_expired_message_is_not_found(queues: Harness) -> None:
    await queues("PUT", "/work")
    sent = await put(queues, "short-lived", "messagettl=1")
    (got,) = await get(queues)
    queues.clock.now = later(queues.clock.now, 2)
    for item in (sent, got):
        assert (await queues("DELETE", use(item))).code == "MessageNotFound"
        assert (await queues("PUT", use(item, "&visibilitytimeout=0"))).code == "MessageNotFound"
    assert await texts(queues) == []


def test_every_reason_that_queues_can_meet_has_its_row() -> None:
    own = {reason for reason in Reason if reason.name.startswith(("QUEUE", "MESSAGE", "INVISIBLE"))}
    assert len(own) == 5
    for resource in Resource:
        assert own | set(common.REASONS) == set(errors.REASONS[resource])
