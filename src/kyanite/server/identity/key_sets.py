"""The public keys of an issuer: read from where the configuration says, never from where a token says.

Keys are fetched when a worker starts, when a token names a key that is not known, and once an hour. A fetch is made by
a thread of its own, so that nothing waits for an issuer but requests with its tokens, and these only for a short time.
While an issuer does not answer, the keys that it gave last stay in force.
"""

import asyncio
import json
import logging
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from kyanite.server.identity.config import (
    DiscoveryUrl,
    FixedJwks,
    JwksFile,
    JwksUrl,
    KeySource,
    TrustedIssuer,
)

RSA_ALGORITHMS = ("RS256", "RS384", "PS256")
EC_ALGORITHMS = ("ES256",)
RSA_BITS_MIN = 2048

PAUSE_SECONDS = 60.0
"""The least time between two fetches."""
FIRST_PAUSE_SECONDS = 5.0
"""The same while no keys are known at all."""
AGE_SECONDS_MAX = 3600.0
"""After this time keys are fetched again, so that those that were withdrawn are forgotten."""
FETCH_SECONDS = 5.0
DOCUMENT_BYTES_MAX = 256 * 1024
_KEYS_MAX = 100
_log = logging.getLogger("kyanite.identity")


class VerificationKey(NamedTuple):
    key: RSAPublicKey | EllipticCurvePublicKey
    algorithms: tuple[str, ...]
    """What signatures with it may say they are. Which one is the key's to say, not the token's."""


KeySet = Mapping[str, VerificationKey]
"""Key id to key; a key without an id has the empty one."""


class IssuerKeys:
    """The keys of one issuer in one worker."""

    def __init__(self, issuer: TrustedIssuer, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._issuer = issuer
        self._monotonic = monotonic
        self._keys: KeySet = {}
        self._fetched_at = self._tried_at = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        if isinstance(issuer.keys, FixedJwks):
            self._keys = decode_key_set(issuer.keys.document)

    def start(self) -> None:
        """Begin to fetch, without waiting for it."""
        if self._may_fetch():
            self._fetch()

    async def find(self, key_id: str | None) -> VerificationKey | None:
        """The key with this id. Without an id, the only one that there is."""
        found = self._known(key_id)
        if found is None:
            if self._fetching is None and self._may_fetch():
                self._fetch()
            if self._fetching is not None:
                await asyncio.shield(self._fetching)
            return self._known(key_id)
        if self._monotonic() - self._fetched_at > AGE_SECONDS_MAX and self._may_fetch():
            self._fetch()
        return found

    def _known(self, key_id: str | None) -> VerificationKey | None:
        if key_id is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(key_id)

    def _may_fetch(self) -> bool:
        if isinstance(self._issuer.keys, FixedJwks) or self._fetching is not None:
            return False
        pause = PAUSE_SECONDS if self._keys else FIRST_PAUSE_SECONDS
        return self._monotonic() - self._tried_at >= pause

    def _fetch(self) -> None:
        self._tried_at = self._monotonic()
        self._fetching = asyncio.create_task(self._fetch_and_keep())

    async def _fetch_and_keep(self) -> None:
        name = self._issuer.trust.name
        try:
            document = await _in_thread(lambda: fetch(self._issuer.keys, self._issuer.trust.issuer))
            keys = decode_key_set(document)
            if not keys:
                raise ValueError("it has no key that can be used")
        except Exception as error:
            # Whatever an issuer answers, it must not stop anything else.
            _log.warning("cannot fetch the keys of an issuer", extra={"issuer": name, "why": str(error)})
        else:
            self._keys, self._fetched_at = keys, self._monotonic()
            _log.debug("keys of an issuer fetched", extra={"issuer": name, "keys": len(keys)})
        finally:
            self._fetching = None


def decode_key_set(document: str | bytes) -> KeySet:
    """The keys of a JSON Web Key Set that can verify one of the accepted algorithms. Others are left out."""
    parsed = json.loads(document)
    listed = parsed.get("keys") if isinstance(parsed, dict) else None
    if not isinstance(listed, list):
        raise ValueError("it is no JSON Web Key Set")
    found: dict[str, VerificationKey] = {}
    for each in listed[:_KEYS_MAX]:
        key = _decode_key(each) if isinstance(each, dict) else None
        if key is not None:
            key_id = each.get("kid", "")
            found[key_id if isinstance(key_id, str) else ""] = key
    return found


def _decode_key(each: dict[str, Any]) -> VerificationKey | None:
    if each.get("use", "sig") != "sig" or each.get("kty") not in {"RSA", "EC"}:
        return None
    public = {name: value for name, value in each.items() if name in {"kty", "n", "e", "crv", "x", "y"}}
    try:
        key = jwt.PyJWK.from_dict(public).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    algorithms: tuple[str, ...]
    if isinstance(key, RSAPublicKey) and key.key_size >= RSA_BITS_MIN:
        algorithms = RSA_ALGORITHMS
    elif isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1):
        algorithms = EC_ALGORITHMS
    else:
        return None
    if "alg" in each:
        algorithms = tuple(name for name in algorithms if name == each["alg"])
    return VerificationKey(key, algorithms) if algorithms else None


def fetch(source: KeySource, issuer: str) -> str | bytes:
    """The text of the key set. Called in a thread: it waits."""
    match source:
        case FixedJwks():
            return source.document
        case JwksFile():
            with source.path.open("rb") as file:
                return _bounded(file.read(DOCUMENT_BYTES_MAX + 1))
        case JwksUrl():
            return _get(source.url)
        case DiscoveryUrl():
            return _get(_keys_url(source.url, issuer))


def _keys_url(discovery_url: str, issuer: str) -> str:
    document = json.loads(_get(discovery_url))
    if not isinstance(document, dict) or document.get("issuer") != issuer:
        raise ValueError("its discovery document names another issuer")
    url = document.get("jwks_uri")
    if not isinstance(url, str):
        raise ValueError("its discovery document names no keys")
    scheme = urlsplit(url).scheme
    if scheme != "https" and (scheme != "http" or urlsplit(discovery_url).scheme == "https"):
        raise ValueError("its discovery document names keys that are not at an https address")
    return url


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The address was given by the operator, so it is the one that counts."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def _get(url: str) -> bytes:
    opener = urllib.request.build_opener(
        _NoRedirects, urllib.request.HTTPSHandler(context=ssl.create_default_context())
    )
    request = urllib.request.Request(url, headers={"Accept": "application/json", "User-Agent": "kyanite"})
    gives_up_at = time.monotonic() + FETCH_SECONDS
    try:
        opened = opener.open(request, timeout=FETCH_SECONDS)
    except urllib.error.HTTPError as error:
        with error:
            raise ValueError(f"it answers with status {error.code}") from None
    with opened as response:
        read = b""
        while piece := response.read1(64 * 1024):
            read = _bounded(read + piece)
            if time.monotonic() > gives_up_at:
                raise TimeoutError("it takes too long to answer")
        return read


def _bounded(document: bytes) -> bytes:
    if len(document) > DOCUMENT_BYTES_MAX:
        raise ValueError(f"it answers with more than {DOCUMENT_BYTES_MAX} bytes")
    return document


async def _in_thread(work: Callable[[], str | bytes]) -> str | bytes:
    """The result of work in a thread that does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[str | bytes] = loop.create_future()

    def deliver(result: str | bytes | None, error: Exception | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        elif result is not None:
            done.set_result(result)

    def run() -> None:
        try:
            result: str | bytes | None = work()
            error: Exception | None = None
        except Exception as raised:
            result, error = None, raised
        with suppress(RuntimeError):  # The loop may have ended meanwhile.
            loop.call_soon_threadsafe(deliver, result, error)

    threading.Thread(target=run, name="issuer keys", daemon=True).start()
    return await asyncio.wait_for(done, 2 * FETCH_SECONDS)
