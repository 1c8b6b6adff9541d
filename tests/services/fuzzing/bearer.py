"""Bearer tokens for the run: good ones, of a caller with every role, and bad ones of many kinds; and that caller's user
delegation key.
"""

from functools import cache
from urllib.parse import urlencode

from kyanite.engine.api import Engine
from kyanite.model import delegation
from kyanite.model.delegation import Delegator
from kyanite.server.identity.delegation_file import secret_of_account
from kyanite.values import TICKS_PER_SECOND, Instant, unix_seconds
from kyanite.wire import iso_time, sas, shared_key
from kyanite.wire.sas import UserDelegationSas
from kyanite.wire.uri import decode_query
from kyanite.wire.user_delegation import SERVICES, DelegationKey
from tests.services.fuzzing.oddities import Chance
from tests.services.harness import START
from tests.signed_tokens import OID, TENANT, assembled, assigned, claims_at, rsa_key, signed, trusting

_HOUR = 3600
TRUSTED = trusting(
    assigned("Storage Blob Data Owner"),
    assigned("Storage Queue Data Contributor"),
    assigned("Storage Table Data Contributor"),
    assigned("Storage File Data Privileged Contributor"),
    assigned("Storage Account Contributor"),
)


STORED_SECRET = b"the stored part of the secret of"
DELEGATOR = Delegator("test", OID, "", (), (), Instant(START + 10 * 365 * 24 * _HOUR * TICKS_PER_SECOND))


async def give_key(engine: Engine, account: str) -> None:
    """Let the caller have a user delegation key, whose secret is known here."""
    await delegation.give(engine, account, TENANT, OID, DELEGATOR, STORED_SECRET)


def delegated(account: str, service: str, first: str, rest: str, now: Instant, chance: Chance) -> str:
    """A token that is signed with that key, for what the path names."""
    start = Instant(now - now % (_HOUR * TICKS_PER_SECOND))
    key = DelegationKey(
        OID, TENANT, start, Instant(start + 24 * _HOUR * TICKS_PER_SECOND), SERVICES[service], "2018-11-09"
    )
    fields = {
        "sv": "2026-10-06" if service != "blob" else chance.choice(("2018-11-09", "2020-12-06", "2026-10-06")),
        "sp": {"queue": "raup", "file": "rcwd" if rest else "rcwdl"}.get(service, "racwdl"),
        "se": text_of(Instant(now + _HOUR * TICKS_PER_SECOND)),
        "skoid": key.object_id, "sktid": key.tenant_id, "skt": text_of(key.starts_at), "ske": text_of(key.expires_at),
        "sks": key.service, "skv": key.version,
    }  # fmt: skip
    if service in {"blob", "file"}:
        fields["sr"] = {"blob": "b" if rest else "c", "file": "f" if rest else "s"}[service]
    if fields["sv"] >= "2025-07-05" and chance.random() < 0.1:
        fields["sduoid"] = OID
    token = sas.decode(decode_query(urlencode({**fields, "sig": "x"})), service)
    assert isinstance(token, UserDelegationSas)
    secret = secret_of_account(b"", account, STORED_SECRET)
    signature = shared_key.sign(key.value(secret), token.string_to_sign(account, first, rest, "", {}, {}))
    return urlencode({**fields, "sig": signature})


def text_of(instant: Instant) -> str:
    return iso_time.encode(instant)[:19] + "Z"


def good_token(now: Instant) -> str:
    return _good_token(unix_seconds(now) // _HOUR)


@cache
def _good_token(hour: int) -> str:
    return signed(claims_at(hour * _HOUR + 60, exp=(hour + 2) * _HOUR))


@cache
def bad_tokens() -> tuple[str, ...]:
    """Values of the header. Those of the harness's first hours, so that nothing but one thing is wrong."""
    claims = claims_at(unix_seconds(START))
    header = {"alg": "RS256", "kid": "first"}
    tokens = (
        signed(claims, rsa_key("other")),
        signed({**claims, "aud": "https://vault.azure.net"}),
        signed({**claims, "iss": "https://evil.example"}),
        signed({**claims, "exp": 1}),
        signed({**claims, "oid": "nobody", "tid": None}),
        assembled({**header, "alg": "none"}, claims),
        assembled({**header, "alg": "HS256"}, claims, b"x" * 32),
        assembled(header, {**claims, "exp": 1e400, "aud": [{}]}),
        assembled({"alg": 7, "kid": []}, []),
    )
    return tuple(f"Bearer {token}" for token in tokens)
