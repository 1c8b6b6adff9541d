"""The REST side of tests with both protocols: each operation on a file as the Azure SDK sends it."""

from collections.abc import Callable
from typing import Any

from azure.core.exceptions import HttpResponseError
from azure.core.rest import HttpRequest
from azure.storage.fileshare import ContentSettings, ShareClient

FILE = "f"
LENGTH = 1000

Operation = Callable[[ShareClient], object]


def _get_metadata(rest: ShareClient) -> object:
    """The SDK reads metadata with the properties only, so this request is built by hand and signed by the SDK."""
    client: Any = rest.get_file_client(FILE)
    run = client._client._client._pipeline.run
    response = run(HttpRequest("GET", client.url + "?comp=metadata", headers={"x-ms-version": "2025-05-05"}))
    if response.http_response.status_code != 200:
        raise HttpResponseError(response=response.http_response)
    return response


def _lease(rest: ShareClient) -> object:
    """It is released, so that it does not matter to what follows."""
    rest.get_file_client(FILE).acquire_lease().release()
    return None


OPERATIONS: dict[str, Operation] = {
    "List Directories and Files": lambda rest: list(rest.list_directories_and_files()),
    "Get File Properties": lambda rest: rest.get_file_client(FILE).get_file_properties(),
    "Get File Metadata": _get_metadata,
    "Get File": lambda rest: rest.get_file_client(FILE).download_file().readall(),
    "List Ranges": lambda rest: list(rest.get_file_client(FILE).list_ranges()),
    "Put Range": lambda rest: rest.get_file_client(FILE).upload_range(b"x" * 10, 0, 10),
    "Set File Properties": lambda rest: rest.get_file_client(FILE).set_http_headers(
        ContentSettings(content_type="text/plain")
    ),
    "Set File Metadata": lambda rest: rest.get_file_client(FILE).set_file_metadata({"a": "b"}),
    "Lease File": _lease,
    "Create File": lambda rest: rest.get_file_client(FILE).create_file(LENGTH),
    "Delete File": lambda rest: rest.get_file_client(FILE).delete_file(),
}
"""Those that change least come first."""

WITHOUT_ACCESS = {"List Directories and Files", "Get File Properties", "Get File Metadata"}


def refusal(rest: ShareClient, operation: Operation) -> tuple[int, str] | None:
    """The status and the error code of a refusal; None if the operation succeeds."""
    try:
        operation(rest)
    except HttpResponseError as error:
        response: Any = error.response
        code = getattr(error, "error_code", None) or response.headers.get("x-ms-error-code")
        return error.status_code or 0, str(getattr(code, "value", code))
    return None


def refusals(rest: ShareClient) -> dict[str, tuple[int, str]]:
    """The operations that are refused now, one after the other."""
    found = {name: refusal(rest, operation) for name, operation in OPERATIONS.items()}
    return {name: each for name, each in found.items() if each is not None}
