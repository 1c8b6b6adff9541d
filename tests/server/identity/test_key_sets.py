"""Where the keys of an issuer come from, how often they are fetched, and what happens while the issuer is away."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kyanite.rules.token_claims import Trust
from kyanite.server.identity import key_sets
from kyanite.server.identity.config import DiscoveryUrl, JwksFile, JwksUrl, KeySource, TrustedIssuer
from kyanite.server.identity.key_sets import IssuerKeys
from tests.loopback_issuer import LoopbackIssuer
from tests.signed_tokens import jwk, key_set, rsa_key


@pytest.fixture
def issuer() -> Iterator[LoopbackIssuer]:
    running = LoopbackIssuer()
    running.documents["/keys"] = key_set(jwk(rsa_key())).encode()
    yield running
    running.die()


class Ticks:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def keys_of(source: KeySource, ticks: Ticks, issuer: str = "https://issuer.example") -> IssuerKeys:
    return IssuerKeys(TrustedIssuer(Trust(name="test", issuer=issuer), source), monotonic=ticks)


async def test_an_unknown_key_is_fetched_at_most_once_a_minute(issuer: LoopbackIssuer) -> None:
    ticks = Ticks()
    keys = keys_of(JwksUrl(issuer.url + "/keys"), ticks)
    assert await keys.find("first") is not None
    assert len(issuer.requests) == 1
    issuer.documents["/keys"] = key_set(jwk(rsa_key()), jwk(rsa_key("other"), "second")).encode()
    for _ in range(20):
        assert await keys.find("second") is None
    ticks.now = 59.9
    assert await keys.find("second") is None
    assert len(issuer.requests) == 1
    ticks.now = 60.0
    assert await keys.find("second") is not None
    assert len(issuer.requests) == 2


async def test_requests_that_wait_for_a_key_share_one_fetch(issuer: LoopbackIssuer) -> None:
    issuer.delay_seconds = 0.2
    keys = keys_of(JwksUrl(issuer.url + "/keys"), Ticks())
    keys.start()
    found = await asyncio.gather(*(keys.find("first") for _ in range(50)))
    assert all(found)
    assert len(issuer.requests) == 1


async def test_the_last_good_keys_outlive_the_issuer(issuer: LoopbackIssuer) -> None:
    ticks = Ticks()
    keys = keys_of(JwksUrl(issuer.url + "/keys"), ticks)
    assert await keys.find("first") is not None
    for bad in (500, 302, b"{}", b"no json", b'{"keys": []}', b"x" * 300_000):
        issuer.documents["/keys"] = bad
        ticks.now += 61
        assert await keys.find("second") is None
        assert await keys.find("first") is not None
    issuer.die()
    ticks.now += 61
    assert await keys.find("second") is None
    assert await keys.find("first") is not None
    assert "/elsewhere" not in issuer.requests


async def test_a_dead_issuer_is_tried_again(issuer: LoopbackIssuer) -> None:
    good = issuer.documents.pop("/keys")
    ticks = Ticks()
    keys = keys_of(JwksUrl(issuer.url + "/keys"), ticks)
    assert await keys.find("first") is None
    issuer.documents["/keys"] = good
    assert await keys.find("first") is None
    ticks.now = key_sets.FIRST_PAUSE_SECONDS
    assert await keys.find("first") is not None


async def test_a_withdrawn_key_is_forgotten_within_the_hour(issuer: LoopbackIssuer) -> None:
    ticks = Ticks()
    keys = keys_of(JwksUrl(issuer.url + "/keys"), ticks)
    assert await keys.find("first") is not None
    issuer.documents["/keys"] = key_set(jwk(rsa_key("other"), "second")).encode()
    ticks.now = key_sets.AGE_SECONDS_MAX + 1
    assert await keys.find("first") is not None  # The fetch has only begun.
    assert await keys.find("second") is not None
    assert await keys.find("first") is None


async def test_a_slow_issuer_is_not_waited_for(
    issuer: LoopbackIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_sets, "FETCH_SECONDS", 0.1)
    issuer.delay_seconds = 3.0
    keys = keys_of(JwksUrl(issuer.url + "/keys"), Ticks())
    begun = time.monotonic()
    assert await keys.find("first") is None
    assert time.monotonic() - begun < 2.0


async def test_discovery_names_the_keys(issuer: LoopbackIssuer) -> None:
    document = {"issuer": "https://issuer.example", "jwks_uri": issuer.url + "/keys"}
    issuer.documents["/.well-known/openid-configuration"] = json.dumps(document).encode()
    source = DiscoveryUrl(issuer.url + "/.well-known/openid-configuration")
    assert await keys_of(source, Ticks()).find("first") is not None
    # A document of another issuer is not believed.
    assert await keys_of(source, Ticks(), "https://other.example").find("first") is None
    document["jwks_uri"] = "file:///etc/hostname"
    issuer.documents["/.well-known/openid-configuration"] = json.dumps(document).encode()
    assert await keys_of(source, Ticks()).find("first") is None


async def test_keys_in_a_file(tmp_path: Path) -> None:
    path, ticks = tmp_path / "keys.json", Ticks()
    keys = keys_of(JwksFile(path), ticks)
    assert await keys.find("first") is None
    path.write_text(key_set(jwk(rsa_key())))
    ticks.now = 60.0
    assert await keys.find("first") is not None
