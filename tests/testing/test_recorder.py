"""Recorded requests, and asserting on them."""

import re

import pytest
from azure.storage.blob import BlobServiceClient

from kyanite.testing import Requests, Server


def test_requests_in_order(kyanite_blob_service: BlobServiceClient, kyanite_requests: Requests) -> None:
    container = kyanite_blob_service.create_container("box")
    container.upload_blob("ä b", b"bytes", metadata={"kind": "test"})
    container.get_blob_client("none").exists()
    assert [each.operation for each in kyanite_requests] == [
        "Create Container",
        "Put Blob",
        "Get Blob Properties",
    ]
    numbers = [each.number for each in kyanite_requests]
    assert numbers == sorted(numbers)
    put = kyanite_requests.last(operation="Put Blob")
    assert (put.path, put.status, put.code, put.done) == ("box/ä b", 201, "", True)
    assert put.headers["x-ms-meta-kind"] == "test"
    assert "authorization" not in put.headers
    assert put.client_request_id == put.headers["x-ms-client-request-id"]
    assert kyanite_requests.all(request_id=put.request_id) == [put]
    missing = kyanite_requests.last(code="BlobNotFound")
    assert (missing.operation, missing.status) == ("Get Blob Properties", 404)


def test_counts_and_clearing(kyanite_blob_service: BlobServiceClient, kyanite_requests: Requests) -> None:
    assert len(kyanite_requests) == 0
    kyanite_blob_service.create_container("box")
    assert kyanite_requests.count(operation="Create Container") == 1
    kyanite_requests.assert_count(1, operation="Create Container", status=201)
    with pytest.raises(AssertionError, match=re.escape("not 2; there are Create Container box 201")):
        kyanite_requests.assert_count(2, operation="Create Container")
    with pytest.raises(AssertionError, match="no request with"):
        kyanite_requests.last(operation="Put Blob")
    kyanite_requests.clear()
    assert kyanite_requests.all() == []
    with pytest.raises(AssertionError, match="there are none"):
        kyanite_requests.last()
    kyanite_blob_service.delete_container("box")
    assert kyanite_requests.count() == 1


def test_requests_of_other_accounts_are_apart(
    kyanite_server: Server, kyanite_blob_service: BlobServiceClient, kyanite_requests: Requests
) -> None:
    with kyanite_server.fresh_account().blob_service() as others:
        others.create_container("other")
    kyanite_blob_service.create_container("box")
    assert [each.path for each in kyanite_requests] == ["box"]
    assert kyanite_server.requests.count(path="other") >= 1
