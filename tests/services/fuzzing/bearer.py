"""Bearer tokens for the run: good ones, of a caller with every role, and bad ones of many kinds."""

from functools import cache

from kyanite.values import Instant, unix_seconds
from tests.services.harness import START
from tests.signed_tokens import assembled, assigned, claims_at, rsa_key, signed, trusting

_HOUR = 3600
TRUSTED = trusting(
    assigned("Storage Blob Data Owner"),
    assigned("Storage Queue Data Contributor"),
    assigned("Storage Table Data Contributor"),
    assigned("Storage File Data Privileged Contributor"),
    assigned("Storage Account Contributor"),
)


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
