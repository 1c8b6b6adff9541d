"""What every answer must be, whatever the request was. A function returns what is wrong with it, or nothing."""

import json
import re
from collections.abc import Iterator
from xml.etree import ElementTree

from tests.services.fuzzing.client import Answer
from tests.services.fuzzing.request import Framing, FuzzRequest

_BUSY = frozenset(("ServerBusy", "OperationTimedOut"))
_AT_THE_DOOR = frozenset((400, 404, 408, 413, 414, 417, 431, 501, 503, 505))
"""What the front end answers itself, without the headers of a service."""
_PART_STATUS = re.compile(rb"^HTTP/1\.1 (\d{3}) ", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9]+")


def problems(request: FuzzRequest, method: str, answer: Answer) -> Iterator[str]:
    """``method`` is the one on the wire."""
    headers, status = answer.headers, answer.status
    code = headers.get("x-ms-error-code", "")
    if status >= 500 and not (
        (status == 505 and not code)
        or (status == 501 and code in {"NotImplemented", ""})
        or (status == 503 and code in {*_BUSY, ""})
    ):
        yield f"status {status} {code}"
    if "date" not in headers:
        yield "no Date"
    if "x-ms-request-id" not in headers:
        if status not in _AT_THE_DOOR:
            yield f"status {status} without x-ms-request-id"
        return
    names_version = request.header("x-ms-version") and request.framing is not Framing.BROKEN
    if names_version and "x-ms-version" not in headers:
        yield "no x-ms-version"
    if method == "HEAD" or status in {204, 304}:
        if answer.body:
            yield "a body where none may be"
        return
    if status >= 400:
        yield from _error_problems(request, answer, code)
    else:
        yield from _body_problems(answer)


def _error_problems(request: FuzzRequest, answer: Answer, code: str) -> Iterator[str]:
    if not _NAME.fullmatch(code):
        yield f"an error with the code {code!r}"
    try:
        found = _code_in(answer)
    except (ValueError, ElementTree.ParseError, KeyError, TypeError) as error:
        yield f"the body of an error cannot be read: {error!r}"
        return
    if found != code:
        yield f"the code in the body is {found!r}, that in the header {code!r}"


def _code_in(answer: Answer) -> str | None:
    content_type = answer.headers.get("content-type", "")
    if "json" in content_type:
        return str(json.loads(answer.body)["odata.error"]["code"])
    root = ElementTree.fromstring(answer.body.decode("utf-8-sig"))
    name = next((each for each in root.iter() if each.tag.rpartition("}")[2].lower() == "code"), None)
    return None if name is None else name.text


def _body_problems(answer: Answer) -> Iterator[str]:
    content_type = answer.headers.get("content-type", "")
    if content_type.startswith("multipart/mixed"):
        for status in _PART_STATUS.findall(answer.body):
            if status[:1] == b"5" and status not in {b"501", b"503"}:
                yield f"a part of a batch has the status {status.decode()}"
    elif (
        "x-ms-creation-time" in answer.headers
        or "x-ms-blob-type" in answer.headers
        or "x-ms-type" in answer.headers
    ):
        return  # The content of a blob or file, of whatever type it claims to be.
    elif content_type.startswith("application/xml") and answer.body:
        try:
            ElementTree.fromstring(answer.body.decode("utf-8-sig"))
        except (ElementTree.ParseError, UnicodeError) as error:
            yield f"XML that cannot be read: {error}"
    elif content_type.startswith("application/json") and answer.body:
        try:
            json.loads(answer.body)
        except ValueError as error:
            yield f"JSON that cannot be read: {error}"
