"""Uploads in parts that were begun and never finished: a process that dies leaves them behind, invisible and paid for.

The client library can neither list nor abort uploads of other processes, so these two requests are made here, signed
by AWS Signature Version 4.
"""

import hashlib
import hmac
import http.client
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

from kyanite.engine.api import EngineBusy, EngineError
from kyanite.extents.s3.location import S3Location

_SECONDS = 15.0
_PAGES_MAX = 1000
_ANSWER_MAX_BYTES = 16 * 1024 * 1024
_EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


class _Unfinished(NamedTuple):
    name: str
    upload_id: str


def abort_unfinished(location: S3Location, prefix: str) -> int:
    """Abort all uploads of objects below the prefix; how many these were. To be called in a thread."""
    aborted = 0
    for _ in range(_PAGES_MAX):
        found, is_last = _list(location, location.prefix + prefix)
        for name, upload_id in found:
            _request(location, "DELETE", name, {"uploadId": upload_id})
        aborted += len(found)
        if is_last:
            break
    return aborted


def _list(location: S3Location, prefix: str) -> tuple[list[_Unfinished], bool]:
    answer = ElementTree.fromstring(_request(location, "GET", "", {"uploads": "", "prefix": prefix}))
    space = answer.tag.partition("}")[0] + "}" if answer.tag.startswith("{") else ""
    found = [
        _Unfinished(upload.findtext(f"{space}Key", ""), upload.findtext(f"{space}UploadId", ""))
        for upload in answer.iter(f"{space}Upload")
    ]
    return found, answer.findtext(f"{space}IsTruncated", "false") != "true"


def _request(location: S3Location, method: str, name: str, query: Mapping[str, str]) -> bytes:
    endpoint = urlsplit(location.endpoint)
    make = http.client.HTTPSConnection if endpoint.scheme == "https" else http.client.HTTPConnection
    path = quote(f"/{location.bucket}/{name}".rstrip("/"), safe="/-_.~")
    encoded = "&".join(f"{quote(key, safe='')}={quote(query[key], safe='-_.~')}" for key in sorted(query))
    headers = _signed(location, method, endpoint.netloc, path, encoded)
    connection = make(endpoint.netloc, timeout=_SECONDS)
    try:
        connection.request(method, f"{path}?{encoded}", headers=headers)
        response = connection.getresponse()
        body = response.read(_ANSWER_MAX_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise EngineBusy("The object store does not answer, or not in time.") from error
    finally:
        connection.close()
    if response.status >= 500:
        raise EngineBusy(f"The object store answers {response.status}.")
    if response.status >= 400 and not (method == "DELETE" and response.status == 404):
        raise EngineError(f"The object store answers {response.status} to a list of unfinished uploads.")
    return body


def _signed(location: S3Location, method: str, host: str, path: str, query: str) -> dict[str, str]:
    """The headers of a request without a body, with its signature."""
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": host, "x-amz-content-sha256": _EMPTY_SHA256, "x-amz-date": now}
    if location.session_token:
        headers["x-amz-security-token"] = location.session_token
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    request = "\n".join((method, path, query, lines, names, _EMPTY_SHA256))
    scope = f"{now[:8]}/{location.region}/s3/aws4_request"
    to_sign = "\n".join(("AWS4-HMAC-SHA256", now, scope, hashlib.sha256(request.encode()).hexdigest()))
    key = f"AWS4{location.secret_access_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    credential = f"{location.access_key_id}/{scope}"
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}"
    )
    return headers
