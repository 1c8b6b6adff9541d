"""Tokens with everything wrong that can be wrong, one thing at a time: refused with a sentence, and nothing else."""

import base64
import hashlib
import hmac
import json

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from kyanite.rules.refusals import AuthenticationProblem, Reason, Refused
from kyanite.rules.roles import Caller
from kyanite.rules.token_claims import Trust
from kyanite.server.identity.config import (
    Development,
    FixedJwks,
    IdentityConfig,
    TrustedIssuer,
)
from kyanite.server.identity.verifier import REMEMBERED_MAX, TOKEN_CHARACTERS_MAX, TrustedIdentity
from kyanite.values import instant_from_unix_seconds
from tests.signed_tokens import (
    ABSENT,
    ISSUER,
    OID,
    TENANT,
    assembled,
    assigned,
    claims_at,
    ec_key,
    jwk,
    key_set,
    rsa_key,
    signed,
    trusting,
)

NOW = 1_790_000_000
CLAIMS = claims_at(NOW)
BAD_SIGNATURE = "Signature validation failed. Signature verification failed."
UNKNOWN_KEY = "Signature validation failed. The key of the signature is not known."
NOT_WELL_FORMED = "The token is not a well-formed JSON Web Token."
WRONG_ISSUER = "Issuer validation failed. Issuer did not match."
WRONG_AUDIENCE = "Audience validation failed. Audience did not match."
HEADER = {"alg": "RS256", "typ": "JWT", "kid": "first"}


async def outcome(identity: TrustedIdentity, token: str, account: str = "acme") -> Caller | str:
    """The caller, or the sentence of the refusal."""
    try:
        return await identity.caller(token, account, instant_from_unix_seconds(NOW))
    except Refused as refusal:
        if refusal.reason is not Reason.INVALID_AUTHENTICATION_INFO:
            raise
        return refusal.detail.text if isinstance(refusal.detail, AuthenticationProblem) else ""


async def sentence(token: str) -> str:
    found = await outcome(TrustedIdentity(trusting()), token)
    assert isinstance(found, str), found
    return found


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "PS256"])
async def test_accepted_algorithms_of_rsa(algorithm: str) -> None:
    found = await outcome(TrustedIdentity(trusting()), signed(CLAIMS, algorithm=algorithm))
    assert isinstance(found, Caller)
    assert found.principal == OID


async def test_accepted_algorithm_of_elliptic_curves() -> None:
    identity = TrustedIdentity(trusting(keys=[jwk(ec_key())]))
    assert isinstance(await outcome(identity, signed(CLAIMS, ec_key(), "ES256")), Caller)


async def test_the_key_says_which_algorithm_it_is_for() -> None:
    identity = TrustedIdentity(trusting(keys=[jwk(rsa_key(), alg="RS256")]))
    assert isinstance(await outcome(identity, signed(CLAIMS)), Caller)
    assert await outcome(identity, signed(CLAIMS, algorithm="PS256")) == BAD_SIGNATURE


def hs256(key: bytes) -> str:
    """Signed as HMAC with the public key as the secret, which a careless verifier accepts."""
    signing_input = assembled({**HEADER, "alg": "HS256"}, CLAIMS).rsplit(".", 1)[0]
    mac = hmac.new(key, signing_input.encode(), hashlib.sha256).digest()
    return f"{signing_input}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


PUBLIC = rsa_key().public_key()
PEM = PUBLIC.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
DER = PUBLIC.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
GOOD = signed(CLAIMS)
HEAD, BODY, SIGNATURE = GOOD.split(".")

BAD_TOKENS = {
    "another key": (signed(CLAIMS, rsa_key("other")), BAD_SIGNATURE),
    "a changed claim": (f"{HEAD}.{assembled({}, {**CLAIMS, 'oid': TENANT}).split('.')[1]}.{SIGNATURE}", BAD_SIGNATURE),
    "no signature": (f"{HEAD}.{BODY}.", BAD_SIGNATURE),
    "a cut signature": (f"{HEAD}.{BODY}.{SIGNATURE[:-6]}", BAD_SIGNATURE),
    "alg none": (assembled({**HEADER, "alg": "none"}, CLAIMS), BAD_SIGNATURE),
    "alg None": (assembled({**HEADER, "alg": "None"}, CLAIMS), BAD_SIGNATURE),
    "alg none, another's signature": (assembled({"alg": "none", "kid": "first"}, CLAIMS, b"x"), BAD_SIGNATURE),
    "HS256 with the public key, PEM": (hs256(PEM), BAD_SIGNATURE),
    "HS256 with the public key, DER": (hs256(DER), BAD_SIGNATURE),
    "HS256 with the modulus": (hs256(str(jwk(rsa_key())["n"]).encode()), BAD_SIGNATURE),
    "RS512": (signed(CLAIMS, algorithm="RS512"), BAD_SIGNATURE),
    "PS384": (signed(CLAIMS, algorithm="PS384"), BAD_SIGNATURE),
    "ES256 beside an RSA key": (signed(CLAIMS, ec_key(), "ES256"), BAD_SIGNATURE),
    "unknown kid": (signed(CLAIMS, key_id="second"), UNKNOWN_KEY),
    "kid of another type": (assembled({**HEADER, "kid": 1}, CLAIMS, b"x"), NOT_WELL_FORMED),
    "kid as a path": (signed(CLAIMS, key_id="../../dev/null"), UNKNOWN_KEY),
    "jku of another": (signed(CLAIMS, rsa_key("other"), jku="https://evil.example/keys"), BAD_SIGNATURE),
    "x5u of another": (signed(CLAIMS, rsa_key("other"), x5u="https://evil.example/x"), BAD_SIGNATURE),
    "its own jwk": (signed(CLAIMS, rsa_key("other"), jwk=jwk(rsa_key("other"))), BAD_SIGNATURE),
    "crit": (signed(CLAIMS, crit=["exp"]), NOT_WELL_FORMED),
    "unknown issuer": (signed({**CLAIMS, "iss": "https://evil.example/"}), WRONG_ISSUER),
    "no issuer": (signed(claims_at(NOW, iss=ABSENT)), WRONG_ISSUER),
    "issuer of another type": (assembled(HEADER, {**CLAIMS, "iss": [ISSUER]}, b"x"), WRONG_ISSUER),
    "another tenant": (signed({**CLAIMS, "tid": OID}), WRONG_ISSUER),
    "another audience": (signed({**CLAIMS, "aud": "https://graph"}), WRONG_AUDIENCE),
    "expired": (signed({**CLAIMS, "exp": NOW - 301}), "Lifetime validation failed. The token is expired."),
    "too early": (signed({**CLAIMS, "nbf": NOW + 301}), "Lifetime validation failed. The token is not yet valid."),
    "two parts": (f"{HEAD}.{BODY}", NOT_WELL_FORMED),
    "four parts": (f"{GOOD}.{SIGNATURE}", NOT_WELL_FORMED),
    "one word": ("token", NOT_WELL_FORMED),
    "dots": ("...", NOT_WELL_FORMED),
    "no base64": ("!.!.!", NOT_WELL_FORMED),
    "no JSON": ("YWJj.YWJj.YWJj", NOT_WELL_FORMED),
    "a list as header": (assembled([], CLAIMS), NOT_WELL_FORMED),
    "a list as claims": (assembled(HEADER, []), NOT_WELL_FORMED),
    "a number as claims": (assembled(HEADER, 1), NOT_WELL_FORMED),
    "no header": (assembled({}, CLAIMS), BAD_SIGNATURE),
    "not ASCII": ("é.ü.ß", NOT_WELL_FORMED),
    "a lone surrogate": ("\ud800.a.b", NOT_WELL_FORMED),
    "huge": ("a" * (TOKEN_CHARACTERS_MAX + 1), "The token is too long."),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_TOKENS)
async def test_bad_tokens(name: str) -> None:
    token, says = BAD_TOKENS[name]
    assert await sentence(token) == says


async def test_deep_claims_are_refused_or_ignored() -> None:
    deep = b"[" * 5000 + b"]" * 5000
    part = base64.urlsafe_b64encode(deep).rstrip(b"=").decode()
    assert await sentence(f"{HEAD}.{part}.x") == NOT_WELL_FORMED
    assert await sentence(f"{part}.{BODY}.x") == NOT_WELL_FORMED


@given(st.one_of(st.text(max_size=200), st.lists(st.text(max_size=60), min_size=3, max_size=3).map(".".join)))
def test_any_text_is_refused(text: str) -> None:
    run_refused(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["alg", "kid", "typ", "crit", "b64", "jku", "iss", "aud", "exp", "nbf", "iat", "tid", "oid", "groups"]
)


@given(st.dictionaries(NAMES, JSON), st.dictionaries(NAMES, JSON), st.binary(max_size=300))
def test_any_claims_and_header_are_refused(
    header: dict[str, object], claims: dict[str, object], signature: bytes
) -> None:
    run_refused(assembled({**HEADER, **header}, {**CLAIMS, **claims}, signature))


@given(st.dictionaries(NAMES, JSON))
def test_any_signed_claims_are_judged(claims: dict[str, object]) -> None:
    """A trusted issuer may write anything: what it wrote is accepted or refused, never an error."""
    import asyncio

    parts = assembled(HEADER, {**CLAIMS, **claims}).rsplit(".", 1)[0]
    signature = jwt.algorithms.RSAAlgorithm(jwt.algorithms.RSAAlgorithm.SHA256).sign(
        parts.encode(), rsa_key()
    )
    token = f"{parts}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"
    found = asyncio.run(outcome(TrustedIdentity(trusting()), token))
    assert isinstance(found, Caller | str)


def run_refused(token: str) -> None:
    import asyncio

    assert isinstance(asyncio.run(outcome(TrustedIdentity(trusting()), token)), str)


async def test_a_token_without_a_key_id_needs_a_single_key() -> None:
    token = signed(CLAIMS, key_id=None)
    assert isinstance(await outcome(TrustedIdentity(trusting()), token), Caller)
    two = TrustedIdentity(trusting(keys=[jwk(rsa_key()), jwk(rsa_key("other"), "second")]))
    assert await outcome(two, token) == UNKNOWN_KEY


async def test_each_issuer_has_its_own_keys() -> None:
    """A key of one issuer signs nothing in the name of another."""
    other = "https://other.example"
    config = IdentityConfig(
        issuers=(
            TrustedIssuer(Trust(name="one", issuer=ISSUER), FixedJwks(key_set(jwk(rsa_key())))),
            TrustedIssuer(Trust(name="two", issuer=other), FixedJwks(key_set(jwk(rsa_key("other"))))),
        )
    )
    identity = TrustedIdentity(config)
    for issuer, key, is_right in (
        (ISSUER, rsa_key(), True),
        (other, rsa_key("other"), True),
        (ISSUER, rsa_key("other"), False),
        (other, rsa_key(), False),
    ):
        found = await outcome(identity, signed({**CLAIMS, "iss": issuer}, key))
        assert isinstance(found, Caller) is is_right


async def test_what_is_remembered_is_the_signature_and_never_the_decision() -> None:
    ticks = [0.0]
    identity = TrustedIdentity(trusting(), monotonic=lambda: ticks[0])
    for_acme = signed({**CLAIMS, "aud": "https://acme.blob.core.windows.net"})
    assert isinstance(await outcome(identity, for_acme), Caller)
    assert isinstance(await outcome(identity, for_acme), Caller)
    assert "Audience" in str(await outcome(identity, for_acme, account="other"))
    with pytest.raises(Refused):
        await identity.caller(for_acme, "acme", instant_from_unix_seconds(NOW + 7200))


async def test_the_memory_is_bounded() -> None:
    identity = TrustedIdentity(trusting())
    for number in range(REMEMBERED_MAX // 256):
        assert isinstance(await outcome(identity, signed({**CLAIMS, "n": number})), Caller)
    before = len(identity._remembered)
    for _, (token, _says) in BAD_TOKENS.items():
        await outcome(identity, token)
    # Of the bad ones only those whose signature is right are in it; their claims are refused each time.
    assert len(identity._remembered) <= before + 4 <= REMEMBERED_MAX


async def test_in_development_no_signature_is_checked() -> None:
    identity = TrustedIdentity(IdentityConfig(development=Development.ANY))
    for token in (
        GOOD,
        f"{HEAD}.{BODY}.",
        assembled({"alg": "none"}, CLAIMS),
        signed(CLAIMS, rsa_key("other")),
    ):
        found = await outcome(identity, token)
        assert isinstance(found, Caller)
        assert identity.grants(found, "acme", "blob")[0].actions >= {"blobs/*", "containers/*", "shares/*"}
    assert await outcome(identity, "x.y.z") == NOT_WELL_FORMED
    assert await outcome(identity, assembled({"alg": "none"}, {**CLAIMS, "exp": NOW - 1})) == (
        "Lifetime validation failed. The token is expired."
    )


async def test_grants_are_those_of_the_configuration() -> None:
    identity = TrustedIdentity(trusting(assigned("Storage Blob Data Reader", account="acme")))
    found = await outcome(identity, GOOD)
    assert isinstance(found, Caller)
    assert "blobs/read" in identity.grants(found, "acme", "blob")[0].actions
    assert identity.grants(found, "other", "blob") == ()
    assert identity.grants(found, "acme", "queue") == ()


def test_weak_and_foreign_keys_are_left_out() -> None:
    from kyanite.server.identity.key_sets import decode_key_set

    weak = jwk(rsa_key("weak", 1024), "weak")
    listed = [
        weak,
        {**jwk(rsa_key(), "encryption"), "use": "enc"},
        {"kty": "oct", "k": "c2VjcmV0", "kid": "secret"},
        {"kty": "RSA", "kid": "broken", "n": "!", "e": "AQAB"},
        {"kty": "EC", "crv": "P-256", "kid": "no point", "x": "AA", "y": "AA"},
        jwk(rsa_key(), "hmac", alg="HS256"),
        7,
        jwk(rsa_key(), "good"),
        jwk(ec_key(), "curve"),
    ]
    assert set(decode_key_set(json.dumps({"keys": listed}))) == {"good", "curve"}
    for document in ("[]", "{}", '{"keys": 1}', "null"):
        with pytest.raises(ValueError):
            decode_key_set(document)
