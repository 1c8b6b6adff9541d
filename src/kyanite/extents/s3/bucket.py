"""The requests to an object store, each with a bounded number of retries, and what their failures mean.

Names are those of objects below the prefix of the store. An object is written once, under a name that was never used
before, so a request that is repeated does no harm.

What a store refuses now it may allow later: permissions of a bucket are changed while servers run. So a refusal is a
busy store for the clients, who try again, and a line in the log for the operator.
"""

import logging
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from kyanite.engine.api import EngineBusy, EngineError, EngineFull
from kyanite.extents.s3.location import S3Location

if TYPE_CHECKING:
    from obstore.store import S3Config

PART_BYTES = 8 * 1024 * 1024
PARTS_AT_ONCE = 2
"""How many parts of one object are on their way; another one is being filled."""

_CONNECT_SECONDS = 5
_REQUEST_SECONDS = 60
_RETRIES = 4
_RETRY_SECONDS = 15
"""Retries end when so many seconds have passed since the first request."""

_LISTED_AT_ONCE = 1000
_LOG_SECONDS = 60.0
"""Refusals are logged so often at most."""

_log = logging.getLogger("kyanite.extents")

_FULL = ("507 Insufficient Storage", "QuotaExceeded", "InsufficientCapacity", "StorageFull")


class ObjectMissing(EngineError):
    """There is no such object."""


class StoreRefuses(EngineBusy):
    """Until an operator has changed something."""


class ObjectInfo(NamedTuple):
    name: str
    size: int
    modified_at: datetime


class Bucket:
    """Opened after the fork: the client has threads of its own."""

    def __init__(self, location: S3Location) -> None:
        self._prefix = location.prefix
        self.requests = 0
        """How many requests were made, retries and parts not counted."""
        self._store = client_of(location)
        self._logged_at = -_LOG_SECONDS

    async def put(self, name: str, data: bytes | memoryview) -> None:
        """Returns when the store has confirmed the object."""
        with self._request():
            await obstore.put_async(self._store, self._prefix + name, data, use_multipart=False)

    async def put_parts(self, name: str, pieces: AsyncIterator[bytes]) -> None:
        """The same in parts. If ``pieces`` raises, so does this, and the parts are removed."""
        with self._request():
            await obstore.put_async(
                self._store,
                self._prefix + name,
                pieces,
                use_multipart=True,
                chunk_size=PART_BYTES,
                max_concurrency=PARTS_AT_ONCE,
            )

    async def get(self, name: str, start: int, length: int) -> bytes:
        """The bytes, fewer if the object ends before. Raises ObjectMissing."""
        with self._request():
            try:
                found = await obstore.get_range_async(
                    self._store, self._prefix + name, start=start, length=length
                )
            except BaseError as error:
                if "416 Range Not Satisfiable" in str(error):
                    return b""
                raise
            return bytes(found)

    async def get_whole(self, name: str) -> bytes:
        with self._request():
            found = await obstore.get_async(self._store, self._prefix + name)
            return bytes(await found.bytes_async())

    async def delete(self, name: str) -> None:
        """Nothing happens if there is no such object."""
        try:
            with self._request():
                await obstore.delete_async(self._store, self._prefix + name)
        except ObjectMissing:
            pass

    async def list(self, prefix: str) -> AsyncIterator[ObjectInfo]:
        """The objects whose names begin with the prefix, which ends with a slash."""
        with self._request():
            listing = obstore.list(self._store, self._prefix + prefix, chunk_size=_LISTED_AT_ONCE)
            async for page in listing:
                for found in page:
                    name = found["path"].removeprefix(self._prefix)
                    yield ObjectInfo(name, found["size"], found["last_modified"])

    @contextmanager
    def _request(self) -> Iterator[None]:
        self.requests += 1
        try:
            yield
        except (BaseError, OSError) as error:
            reason = failure(error)
            if isinstance(reason, StoreRefuses):
                self._log(reason)
            raise reason from error

    def _log(self, reason: EngineError) -> None:
        now = time.monotonic()
        if now - self._logged_at >= _LOG_SECONDS:
            self._logged_at = now
            _log.warning("the object store refuses requests", extra={"why": str(reason)})


def client_of(location: S3Location) -> S3Store:
    return S3Store(
        location.bucket,
        config=_config(location),
        client_options={
            "allow_http": location.endpoint.startswith("http:"),
            "connect_timeout": timedelta(seconds=_CONNECT_SECONDS),
            "timeout": timedelta(seconds=_REQUEST_SECONDS),
        },
        retry_config={
            "max_retries": _RETRIES,
            "retry_timeout": timedelta(seconds=_RETRY_SECONDS),
            "backoff": {
                "init_backoff": timedelta(milliseconds=100),
                "max_backoff": timedelta(seconds=2),
                "base": 2,
            },
        },
    )


def _config(location: S3Location) -> "S3Config":
    config: S3Config = {
        "endpoint": location.endpoint,
        "region": location.region,
        "access_key_id": location.access_key_id,
        "secret_access_key": location.secret_access_key,
    }
    if location.session_token:
        config["session_token"] = location.session_token
    return config


def failure(error: Exception) -> EngineError:
    """What a failed request means. The texts name no credentials."""
    text = str(error)
    if "NoSuchBucket" in text:
        return StoreRefuses("The bucket is not there.")
    if isinstance(error, FileNotFoundError):
        return ObjectMissing("The object is not there.")
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return StoreRefuses("The object store refuses the credentials, or what they are used for.")
    if any(each in text for each in _FULL):
        return EngineFull("The object store is full.")
    return EngineBusy("The object store does not answer, or not in time.")
