"""How an error becomes a response: status, headers and elements of the body."""

import logging
from xml.etree import ElementTree

import pytest

from kyanite.engine.api import EngineBusy, EngineError, EngineFull
from kyanite.rules.refusals import (
    AuthenticationProblem,
    CallerAddress,
    CurrentETag,
    Explained,
    HiddenTooLong,
    HiddenUntilExpiry,
    Reason,
    Refused,
    TotalLength,
)
from kyanite.services.blob.service import DEFINITION as BLOB
from kyanite.services.queue.service import DEFINITION as QUEUE
from kyanite.services.rest.context import Resource
from kyanite.services.rest.definition import ServiceDefinition
from kyanite.services.rest.error_responses import error_response
from kyanite.services.rest.sources import CannotVerifySource
from kyanite.services.table.service import DEFINITION as TABLE
from kyanite.values import ETag
from kyanite.wire.http import BodyError, Request, Response
from kyanite.wire.malformed import Malformed, bad_header
from tests.services.harness import START, BytesBody


def respond(
    error: Exception,
    definition: ServiceDefinition = BLOB,
    method: str = "GET",
    resource: Resource = Resource.OBJECT,
) -> Response:
    request = Request(method, "/acme", "", {}, (), BytesBody(b""), "127.0.0.1", False, 10000)
    request.request_id = "the-id"
    return error_response(definition, request, error, resource, START)


def elements_of(response: Response) -> dict[str, str]:
    assert isinstance(response.body, bytes)
    found = {item.tag: item.text or "" for item in ElementTree.fromstring(response.body.decode("utf-8-sig"))}
    assert "\nRequestId:the-id\nTime:2026-09-21T14:13:20" in found.pop("Message")
    del found["Code"]
    return found


@pytest.mark.parametrize(
    ("definition", "error", "status", "elements"),
    [
        (BLOB, Refused(Reason.BLOB_NOT_FOUND), 404, {}),
        (
            BLOB,
            Refused(Reason.AUTHENTICATION_FAILED, AuthenticationProblem("It is wrong.")),
            403,
            {"AuthenticationErrorDetail": "It is wrong."},
        ),
        (BLOB, Refused(Reason.SOURCE_IP_MISMATCH, CallerAddress("10.0.0.7")), 403, {"SourceIP": "10.0.0.7"}),
        (
            QUEUE,
            Refused(Reason.INVISIBLE_UNTIL_EXPIRY, HiddenUntilExpiry(60)),
            400,
            {
                "QueryParameterName": "visibilitytimeout",
                "QueryParameterValue": "60",
                "Reason": "messagettl must be greater than visibilitytimeout.",
            },
        ),
        (
            QUEUE,
            Refused(Reason.INVISIBLE_BEYOND_EXPIRY, HiddenTooLong(61, 60)),
            400,
            {
                "QueryParameterName": "visibilitytimeout",
                "QueryParameterValue": "61",
                "MinimumAllowed": "0",
                "MaximumAllowed": "60",
            },
        ),
        (BLOB, bad_header("x-ms-a", "b"), 400, {"HeaderName": "x-ms-a", "HeaderValue": "b"}),
        (
            BLOB,
            CannotVerifySource(Refused(Reason.BLOB_NOT_FOUND)),
            404,
            {
                "CopySourceStatusCode": "404",
                "CopySourceErrorCode": "BlobNotFound",
                "CopySourceErrorMessage": "The specified blob does not exist.",
            },
        ),
        (BLOB, EngineFull(""), 507, {}),
        (BLOB, EngineBusy(""), 503, {}),
        (BLOB, BodyError(""), 408, {}),
    ],
)
def test_details_are_elements_in_order(
    definition: ServiceDefinition, error: Exception, status: int, elements: dict[str, str]
) -> None:
    response = respond(error, definition)
    assert response.status == status
    assert list(elements_of(response).items()) == list(elements.items())


@pytest.mark.parametrize(
    ("error", "header"),
    [
        (Refused(Reason.INVALID_RANGE, TotalLength(7)), ("Content-Range", "bytes */7")),
        (Refused(Reason.NOT_MODIFIED, CurrentETag(ETag("0x8"))), ("ETag", '"0x8"')),
        (CannotVerifySource(Malformed("InvalidUri")), ("x-ms-copy-source-status-code", "400")),
        (CannotVerifySource(Malformed("InvalidUri")), ("x-ms-copy-source-error-code", "InvalidUri")),
        (CannotVerifySource(Malformed("InvalidUri")), ("x-ms-error-code", "CannotVerifyCopySource")),
        (Refused(Reason.NO_AUTHENTICATION_INFORMATION), ("x-ms-error-code", "NoAuthenticationInformation")),
    ],
)
def test_details_that_are_headers(error: Exception, header: tuple[str, str]) -> None:
    assert header in respond(error).headers


def test_only_a_challenge_names_where_to_get_a_token() -> None:
    challenged = dict(respond(Refused(Reason.NO_AUTHENTICATION_INFORMATION)).headers)
    assert challenged["WWW-Authenticate"].startswith("Bearer ")
    assert "WWW-Authenticate" not in dict(respond(Refused(Reason.AUTHENTICATION_FAILED)).headers)


def test_not_modified_has_no_body() -> None:
    response = respond(Refused(Reason.NOT_MODIFIED, CurrentETag(ETag("0x8"))))
    assert (response.status, response.body, response.length) == (304, b"", None)
    assert "Content-Type" not in dict(response.headers)


def test_a_response_to_head_names_neither_a_type_nor_a_length() -> None:
    response = respond(Refused(Reason.BLOB_NOT_FOUND), method="HEAD")
    assert not isinstance(response.body, bytes)
    assert response.length is None
    assert "Content-Type" not in dict(response.headers)


def test_refusals_about_leases_name_the_resource() -> None:
    codes = {
        dict(respond(Refused(Reason.LEASE_ID_MISMATCH), resource=resource).headers)["x-ms-error-code"]
        for resource in (Resource.CONTAINER, Resource.OBJECT)
    }
    assert codes == {"LeaseIdMismatchWithContainerOperation", "LeaseIdMismatchWithBlobOperation"}


def test_tables_explain_in_the_message() -> None:
    body = respond(Refused(Reason.KEY_VALUE_TOO_LARGE, Explained("Too large: 'x'.")), TABLE).body
    assert isinstance(body, bytes)
    assert b"\"Too large: 'x'.\\nRequestId:the-id\\nTime:" in body


@pytest.mark.parametrize("error", [EngineError("no disk"), KeyError("a fault")])
def test_only_unexpected_errors_are_logged(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        assert respond(Refused(Reason.BLOB_NOT_FOUND)).status == 404
        assert not caplog.records
        assert respond(error).status == 500
    assert "request the-id" in caplog.text
