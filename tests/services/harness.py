"""A service without a server: requests in, responses out, on the memory engine, with a clock that the test moves."""

import base64
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path

from kyanite.engine.api import Engine
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.extents.api import Extents
from kyanite.extents.local.store import LocalExtents
from kyanite.membership.local import LocalMembership
from kyanite.model.accounts import Account, Store
from kyanite.server.config import AccountKeys
from kyanite.server.identity.config import IdentityConfig
from kyanite.server.identity.verifier import TrustedIdentity
from kyanite.services.blob.service import blob_service
from kyanite.services.rest.environment import Environment
from kyanite.services.rest.service import Service
from kyanite.values import Instant, instant_from_unix_seconds
from kyanite.wire import http_date, shared_key
from kyanite.wire.http import FileSlice, Request, Response
from kyanite.wire.shared_key import SharedKey, Signable
from kyanite.wire.uri import decode_query, decode_target
from tests.answers import ServiceAnswer

ACCOUNT = AccountKeys("acme", (b"first key of acme", b"second key of acme"))
OTHER = AccountKeys("other", (b"key of the other",))
START = instant_from_unix_seconds(1_790_000_000)
VERSION = "2025-05-05"


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> Instant:
        return self.now


class BytesBody:
    """A body that is all there already."""

    def __init__(self, data: bytes, *, chunked: bool = False) -> None:
        self._data = data
        self._chunked = chunked

    @property
    def length(self) -> int | None:
        return None if self._chunked else len(self._data)

    async def read(self) -> bytes:
        data, self._data = self._data[:100_000], self._data[100_000:]
        return data

    async def read_all(self, limit: int) -> bytes | None:
        if len(self._data) > limit:
            return None
        data, self._data = self._data, b""
        return data


@dataclass(frozen=True, slots=True)
class Answer(ServiceAnswer):
    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    raw_headers: list[tuple[str, str]]
    body: bytes


def _accounts(store: Store) -> dict[str, Account]:
    return {each.name: Account(each.name, each.keys, store) for each in (ACCOUNT, OTHER)}


class Harness:
    """One account's way to a service. Requests are signed with its key by default."""

    def __init__(
        self, folder: Path, build: Callable[[Environment], Service] = blob_service, word: str = "blob"
    ) -> None:
        self._word = word
        self.clock = Clock()
        self.engine = MemoryEngine(clock=self.clock)
        self.membership = LocalMembership(folder / "owners")
        self.extents = LocalExtents(folder, self.membership)
        self._guids = 0
        self.environment = Environment(
            accounts=_accounts(Store(self.engine, self.extents, self.membership)),
            clock=self.clock,
            wall_clock=self.clock,
            fresh_guid=self._guid,
        )
        self._build = build
        self.service = build(self.environment)

    def trust(self, config: IdentityConfig) -> None:
        """Accept the bearer tokens that the configuration says, from now on."""
        self.environment = replace(self.environment, identity=TrustedIdentity(config))
        self.service = self._build(self.environment)

    def beside(self, build: Callable[[Environment], Service], word: str) -> "Harness":
        """Another service over the same store, to be closed with this one."""
        other = copy(self)
        other.service, other._build, other._word = build(self.environment), build, word
        return other

    def use_store(
        self,
        build: Callable[[Environment], Service],
        *,
        engine: Engine | None = None,
        extents: Extents | None = None,
    ) -> None:
        """Serve over another engine, or over other extents, from now on."""
        store = Store(engine or self.engine, extents or self.extents, self.membership)
        self.environment = replace(self.environment, accounts=_accounts(store))
        self.service = build(self.environment)

    async def open_segments(self) -> int:
        """How many segments have bytes that are neither committed nor discarded."""
        segments = {each async for each in self.extents.segments_of(self.membership.id)}
        return len(segments - await self.extents.sealed(segments))

    async def aclose(self) -> None:
        await self.extents.close()
        self.membership.close()

    def _guid(self) -> str:
        self._guids += 1
        return f"00000000-0000-4000-8000-{self._guids:012x}"

    async def __call__(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        sign: bool = True,
        account: AccountKeys = ACCOUNT,
        chunked: bool = False,
        peer: str = "127.0.0.1",
        secure: bool = False,
    ) -> Answer:
        sent = {"Host": "localhost:10000", "x-ms-version": VERSION, **(headers or {})}
        sent = {name: value for name, value in sent.items() if value != "(absent)"}
        if (body or method == "PUT") and not chunked and "Content-Length" not in sent:
            sent["Content-Length"] = str(len(body))
        path, _, query = f"/{account.name}{target}".partition("?")
        if sign:
            sent.setdefault("x-ms-date", http_date.encode(self.clock.now))
            sent["Authorization"] = self._authorization(method, path, query, sent, account)
        request = Request(
            method,
            path,
            query,
            {name.lower(): value for name, value in sent.items()},
            [(name.encode(), value.encode("latin-1")) for name, value in sent.items()],
            BytesBody(body, chunked=chunked),
            peer,
            secure,
            10000,
        )
        return await self._collect(method, await self.service(request))

    def _authorization(
        self, method: str, path: str, query: str, headers: Mapping[str, str], account: AccountKeys
    ) -> str:
        lower = {name.lower(): value for name, value in headers.items()}
        signable = Signable(
            method,
            decode_target(lower["host"], path, self._word),
            decode_query(query),
            lower,
            lower.get("x-ms-version", "2009-09-19"),
        )
        text = shared_key.string_to_sign(signable, lite=False)
        return shared_key.encode_authorization(
            SharedKey(False, account.name, shared_key.sign(account.keys[0], text))
        )

    async def _collect(self, method: str, response: Response) -> Answer:
        try:
            body = response.body if isinstance(response.body, bytes) else await _gather(response.body)
        finally:
            if response.release is not None:
                response.release()
        return Answer(
            response.status,
            {name.lower(): value for name, value in response.headers},
            list(response.headers),
            b"" if method == "HEAD" else body,
        )


async def _gather(pieces: AsyncIterator[bytes | memoryview | FileSlice]) -> bytes:
    gathered = b""
    async for piece in pieces:
        gathered += bytes_of(piece)
    return gathered


def bytes_of(piece: bytes | memoryview | FileSlice) -> bytes:
    if isinstance(piece, FileSlice):
        with open(f"/proc/self/fd/{piece.fd}", "rb") as file:
            file.seek(piece.offset)
            return file.read(piece.length)
    return bytes(piece)


def md5_text(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data).digest()).decode()
