"""Whether a bucket can be used, before a server relies on it: it is there, and may be listed, written and emptied."""

import re
from os import urandom

import obstore
from obstore.exceptions import BaseError

from kyanite.extents.s3.bucket import client_of
from kyanite.extents.s3.location import S3Location
from kyanite.extents.s3.names import SEGMENTS

_CODE = re.compile(r"<Code>(\w+)</Code>")
_WRONG_CREDENTIALS = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken")


async def problem(location: S3Location) -> str | None:
    """Why the bucket cannot be used, in one sentence."""
    client = client_of(location)
    name = f"{location.prefix}checks/{urandom(8).hex()}"
    try:
        await obstore.list_with_delimiter_async(client, location.prefix + "checks")
    except (BaseError, OSError) as error:
        return _sentence(location, error, "listed")
    try:
        await obstore.put_async(client, name, b"", use_multipart=False)
        await obstore.delete_async(client, name)
    except (BaseError, OSError) as error:
        return _sentence(location, error, "written")
    return None


def is_empty(location: S3Location) -> bool:
    """Whether the bucket has no segment. Blocks; raises OSError."""
    try:
        pages = obstore.list(client_of(location), location.prefix + SEGMENTS, chunk_size=1)
        return not any(page for page in pages)
    except BaseError as error:
        raise OSError(0, _sentence(location, error, "listed")) from error


def _sentence(location: S3Location, error: Exception, use: str) -> str:
    found = _CODE.search(str(error))
    code = found[1] if found else ""
    where = f"at {location.endpoint}"
    if code == "NoSuchBucket" or isinstance(error, FileNotFoundError):
        return f"The bucket {location.bucket} {where} does not exist."
    if code in _WRONG_CREDENTIALS:
        return f"The object store {where} does not accept the credentials ({code})."
    if code == "AccessDenied" or "403 Forbidden" in str(error):
        return f"The bucket {location.bucket} {where} may not be {use} with these credentials."
    if code:
        return f"The object store {where} refuses to let the bucket {location.bucket} be {use} ({code})."
    return f"The object store {where} does not answer."
