"""From a request to its bytes: credentials over what the mutations have left, then the framing of the body."""

import base64
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableSasPermissions, generate_table_sas
from azure.storage.blob import (
    AccountSasPermissions,
    BlobSasPermissions,
    ContainerSasPermissions,
    ResourceTypes,
    Services,
    generate_account_sas,
    generate_blob_sas,
    generate_container_sas,
)
from azure.storage.fileshare import (
    FileSasPermissions,
    ShareSasPermissions,
    generate_file_sas,
    generate_share_sas,
)
from azure.storage.queue import QueueSasPermissions, generate_queue_sas

from kyanite.server.config import AccountKeys
from kyanite.values import TICKS_PER_SECOND, Instant
from kyanite.wire import http_date, shared_key
from kyanite.wire.malformed import Malformed
from kyanite.wire.shared_key import SharedKey, Signable
from kyanite.wire.uri import decode_query, decode_target
from tests.services.fuzzing import bearer
from tests.services.fuzzing.oddities import Chance
from tests.services.fuzzing.pool import POLICIES
from tests.services.fuzzing.request import Credentials, Framing, FuzzRequest, chunks_of, head_bytes
from tests.services.fuzzing.tokens import spoil

_SAS_VERSION = "2025-05-05"


@dataclass(frozen=True, slots=True)
class Signer:
    account: AccountKeys
    other: AccountKeys

    def account_sas(self, now: Instant, *, limited: bool = False) -> str:
        """A token for everything, or for reading alone."""
        return self._account_sas(Instant(now - now % (3600 * TICKS_PER_SECOND)), limited)

    @lru_cache(maxsize=8)  # noqa: B019  # There is one signer in a run.
    def _account_sas(self, now: Instant, limited: bool) -> str:
        permission = AccountSasPermissions(
            read=True, write=not limited, delete=not limited, list=True, add=not limited, create=not limited,
            update=not limited, process=not limited, delete_previous_version=False, tag=False, filter_by_tags=False,
            set_immutability_policy=False, permanent_delete=False,
        )  # fmt: skip
        return str(
            generate_account_sas(
                self.account.name,
                _text(self.account),
                ResourceTypes(service=True, container=True, object=True),
                permission,
                _time(now, hours=2),
                start=_time(now, hours=-1),
                services=Services(blob=True, queue=True, fileshare=True),
            )
        )

    def encode(self, request: FuzzRequest, *, host: str, now: Instant, chance: Chance) -> bytes:
        """The bytes to send."""
        path, query = request.encoded_path(self.account.name), request.encoded_query()
        if request.names_account_in_host:
            host = f"{self.account.name}.{request.service}.core.localhost:{host.rpartition(':')[2]}"
        headers = [("Host", host), *request.headers]
        if request.framing is Framing.CHUNKED:
            headers.append(("Transfer-Encoding", "chunked"))
        elif request.body or request.method in {"PUT", "POST", "PATCH", "MERGE"}:
            headers.append(("Content-Length", str(_announced(request))))
        if request.credentials in {Credentials.KEY, Credentials.KEY_LITE, Credentials.OTHER_KEY}:
            headers.append(("x-ms-date", http_date.encode(now)))
            headers.append(("Authorization", self._authorization(request, path, query, headers)))
        elif request.credentials is Credentials.BEARER:
            headers.append(("Authorization", f"Bearer {bearer.good_token(now)}"))
            if request.service == "file" and chance.random() < 0.9:
                headers.append(("x-ms-file-request-intent", "backup"))
        elif request.credentials is not Credentials.NONE:
            token = self._token(request, now, chance)
            if request.spoils_token:
                token = spoil(token, self.account, request.service, request.path, chance)
            query = f"{query}&{token}" if query else token
        for name, value in request.spoiled_headers:
            headers = [pair for pair in headers if pair[0].lower() != name.lower()]
            headers.append((name, value))
        target = f"{path}?{query}" if query else path
        return _framed(request, head_bytes(request.method, target, headers))

    def _authorization(
        self, request: FuzzRequest, path: str, query: str, headers: Sequence[tuple[str, str]]
    ) -> str:
        account = self.other if request.credentials is Credentials.OTHER_KEY else self.account
        lite = request.credentials is Credentials.KEY_LITE
        lower = _joined(headers)
        try:
            signable = Signable(
                request.method,
                decode_target(lower["host"], path, request.service),
                decode_query(query),
                lower,
                lower.get("x-ms-version", "2009-09-19"),
            )
            signature = shared_key.sign(account.keys[0], shared_key.string_to_sign(signable, lite=lite))
        except (Malformed, UnicodeError):
            signature = "AAAA"
        return shared_key.encode_authorization(SharedKey(lite, account.name, signature))

    def _token(self, request: FuzzRequest, now: Instant, chance: Chance) -> str:
        if request.credentials is Credentials.USER_DELEGATION and request.service != "table":
            first, _, rest = unquote(request.path)[1:].partition("/")
            with suppress(Malformed, UnicodeError):
                return bearer.delegated(self.account.name, request.service, first, rest, now, chance)
        if request.service == "table" or request.credentials is Credentials.SERVICE_SAS:
            return _service_sas(self.account, request, now, chance)
        return self.account_sas(now, limited=chance.random() < 0.2)


def _service_sas(account: AccountKeys, request: FuzzRequest, now: Instant, chance: Chance) -> str:
    """A token for the resource that the path names: with its own terms, or with a stored policy."""
    first, _, rest = unquote(request.path)[1:].partition("/")
    terms: dict[str, Any] = {"account_key": _text(account)}
    by_policy = chance.random() < 0.2
    if by_policy:
        terms["policy_id"] = chance.choice(POLICIES)
    else:
        terms["expiry"] = _time(now, hours=chance.choice((1, 1, 1, 1, -1)))
        if chance.random() < 0.1:
            terms |= chance.choice(
                ({"ip": "10.0.0.1-10.0.0.9"}, {"protocol": "https"}, {"start": _time(now, hours=1)})
            )
    try:
        return _generated(account.name, request.service, first, rest, terms, by_policy=by_policy)
    except (ValueError, IndexError):
        return "sig=AAAA&sv=2025-05-05"


def _generated(
    account: str, service: str, first: str, rest: str, terms: dict[str, Any], *, by_policy: bool
) -> str:
    def allowed(kind: Any, letters: str) -> dict[str, Any]:
        return {} if by_policy else {"permission": kind.from_string(letters)}

    match service:
        case "blob" if rest:
            terms |= allowed(BlobSasPermissions, "racwd")
            return str(generate_blob_sas(account, first, rest, **terms))
        case "blob":
            terms |= allowed(ContainerSasPermissions, "racwdl")
            return str(generate_container_sas(account, first, **terms))
        case "queue":
            terms |= allowed(QueueSasPermissions, "raup")
            return str(generate_queue_sas(account, first, **terms))
        case "file" if rest:
            *directories, name = rest.split("/")
            terms |= allowed(FileSasPermissions, "rcwd")
            path = [*directories, name] if directories else [name]
            return str(generate_file_sas(account, first, path, **terms))
        case "file":
            terms |= allowed(ShareSasPermissions, "rcwdl")
            return str(generate_share_sas(account, first, **terms))
        case _:
            return _table_sas(account, first, terms, by_policy=by_policy)


def _table_sas(account: str, first: str, terms: dict[str, Any], *, by_policy: bool) -> str:
    credential = AzureNamedKeyCredential(account, terms.pop("account_key"))
    if "ip" in terms:
        terms["ip_address_or_range"] = terms.pop("ip")
    if not by_policy:
        terms["permission"] = TableSasPermissions(read=True, add=True, update=True, delete=True)
    return str(generate_table_sas(credential, first.partition("(")[0], **terms))


def _text(account: AccountKeys) -> str:
    return base64.b64encode(account.keys[0]).decode()


def _time(now: Instant, *, hours: int) -> datetime:
    return datetime(1, 1, 1, tzinfo=UTC) + timedelta(microseconds=now // 10, hours=hours)


def _joined(headers: Sequence[tuple[str, str]]) -> dict[str, str]:
    """As the server reads them: by lower-case name, repeated ones joined, octets as characters."""
    found: dict[str, str] = {}
    for name, value in headers:
        text = value.encode("latin-1", "replace").decode("latin-1").strip(" \t")
        found[name.lower()] = f"{found[name.lower()]},{text}" if name.lower() in found else text
    return found


def _announced(request: FuzzRequest) -> int:
    length = len(request.body)
    match request.framing:
        case Framing.TOO_SHORT:
            return length + 1 + request.spoil_seed % 100
        case Framing.TOO_LONG:
            return max(0, length - 1 - request.spoil_seed % 100)
        case _:
            return length


def _framed(request: FuzzRequest, head: bytes) -> bytes:
    match request.framing:
        case Framing.CHUNKED:
            return head + chunks_of(
                request.body, 1 + request.spoil_seed % 5000 if request.spoil_seed else 1000
            )
        case Framing.TOO_LONG:
            return head + request.body + b"GET /nonsense"
        case Framing.BROKEN:
            return _broken(head, request)
        case _:
            return head + request.body


def _broken(head: bytes, request: FuzzRequest) -> bytes:
    chance = random.Random(request.spoil_seed)
    octets = bytearray(head + request.body)
    for _ in range(chance.choice((1, 1, 2, 8))):
        at = chance.randrange(min(len(head), len(octets)))
        match chance.randrange(4):
            case 0:
                octets[at] = chance.getrandbits(8)
            case 1:
                del octets[at : at + chance.randint(1, 9)]
            case 2:
                octets[at:at] = chance.choice(
                    (b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b"\xff", b"x" * 100)
                )
            case _:
                octets[at:at] = octets[: chance.randrange(len(head))]
    return bytes(octets)
