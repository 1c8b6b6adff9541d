"""Requests signed by the official client's own code: the expectations that ours must meet."""

from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import urlsplit

from azure.core.pipeline import PipelineContext, PipelineRequest
from azure.core.pipeline.transport import HttpRequest
from azure.storage.blob._shared.authentication import SharedKeyCredentialPolicy

from kyanite.wire.shared_key import Signable
from kyanite.wire.uri import decode_query, decode_target

ACCOUNT = "devstoreaccount1"
KEY = bytes(range(64))
KEY_TEXT = b64encode(KEY).decode()
OTHER_KEY = bytes(range(1, 65))
VERSION = "2026-10-06"
DATE = {"x-ms-date": "Wed, 01 May 2024 12:34:56 GMT", "x-ms-version": VERSION}


def sign_with_sdk(method: str, url: str, headers: Mapping[str, str], account: str = ACCOUNT) -> str:
    """The Authorization header that the client would send."""
    request = HttpRequest(method, url, headers=dict(headers))
    pipeline_request = PipelineRequest(request, PipelineContext(None))
    SharedKeyCredentialPolicy(account, KEY_TEXT).on_request(pipeline_request)  # type: ignore[no-untyped-call]
    return request.headers["Authorization"]


def signable(
    method: str, url: str, headers: Mapping[str, str], *, service: str = "blob", version: str = VERSION
) -> Signable:
    """The request as a server sees it."""
    parts = urlsplit(url)
    target = decode_target(parts.netloc, parts.path or "/", service)
    lowered = {name.lower(): value for name, value in headers.items()}
    return Signable(method, target, decode_query(parts.query), lowered, version)
