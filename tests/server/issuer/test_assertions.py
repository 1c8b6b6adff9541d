"""Client assertions in place of secrets: whose are accepted, and what is wrong with the others."""

import base64
import hashlib
import hmac
import json
from dataclasses import replace

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kyanite.server.issuer.clients import DEVELOPMENT_CLIENT, FEDERATION_AUDIENCE, AssertionSource, Client
from kyanite.wire.http import Response
from tests.server.issuer.issuers import (
    BASE,
    CLIENT_ID,
    NOW,
    TENANT,
    fields_of,
    issuer,
    key,
    other_key,
    send_form,
    with_secret,
)

EC_KEY = ec.generate_private_key(ec.SECP256R1())
OID = DEVELOPMENT_CLIENT.identity.oid
CLUSTER = "https://cluster.example.org"
SERVICE_ACCOUNT = "system:serviceaccount:default:app"
CERTIFIED = replace(
    DEVELOPMENT_CLIENT,
    secrets=(),
    certificates=(other_key().private.public_key(), EC_KEY.public_key()),
)
FEDERATED = replace(
    DEVELOPMENT_CLIENT,
    secrets=(),
    federated=(
        AssertionSource(
            CLUSTER,
            SERVICE_ACCOUNT,
            (FEDERATION_AUDIENCE,),
            (("theirs", other_key().private.public_key()),),
        ),
    ),
)


def send(client: Client, assertion: str, moved_seconds: int = 0, **changes: str | None) -> Response:
    form = with_secret(
        client_assertion=assertion,
        client_assertion_type="urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        **{"client_secret": None, **changes},
    )
    return send_form(issuer([client], moved_seconds=moved_seconds), form)


def by_issuer(**changes: object) -> dict[str, object]:
    """What ``kyanite token --audience api://AzureADTokenExchange`` says."""
    return {
        "iss": f"{BASE}/{TENANT}/v2.0",
        "sub": OID,
        "aud": FEDERATION_AUDIENCE,
        "exp": NOW + 600,
        "nbf": NOW,
        **changes,
    }


def by_client(**changes: object) -> dict[str, object]:
    """What ``CertificateCredential`` says."""
    audience = f"https://localhost:10020/{TENANT}/oauth2/v2.0/token"
    return {"iss": CLIENT_ID, "sub": CLIENT_ID, "aud": audience, "exp": NOW + 600, "jti": "1", **changes}


def by_cluster(**changes: object) -> dict[str, object]:
    return {"iss": CLUSTER, "sub": SERVICE_ACCOUNT, "aud": [FEDERATION_AUDIENCE], "exp": NOW + 600, **changes}


def test_one_that_this_issuer_has_signed() -> None:
    assertion = jwt.encode(by_issuer(), key().private, "RS256", {"kid": key().id})
    response = send(DEVELOPMENT_CLIENT, assertion)
    assert response.status == 200
    token = jwt.decode(fields_of(response)["access_token"], options={"verify_signature": False})
    assert (token["oid"], token["appidacr"]) == (OID, "2")


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "PS256"])
def test_one_that_the_client_has_signed(algorithm: str) -> None:
    assert send(CERTIFIED, jwt.encode(by_client(), other_key().private, algorithm)).status == 200


def test_one_with_an_elliptic_key() -> None:
    assert send(CERTIFIED, jwt.encode(by_client(), EC_KEY, "ES256")).status == 200


def test_one_of_a_federated_issuer() -> None:
    assertion = jwt.encode(by_cluster(), other_key().private, "RS256", {"kid": "theirs"})
    assert send(FEDERATED, assertion).status == 200
    assert send(DEVELOPMENT_CLIENT, assertion).status == 401


def test_a_moved_clock_is_that_of_this_issuer_alone() -> None:
    """The others have made theirs by the real time."""
    day = 86_400
    of_client = jwt.encode(by_client(), other_key().private, "RS256")
    of_cluster = jwt.encode(by_cluster(), other_key().private, "RS256", {"kid": "theirs"})
    assert send(CERTIFIED, of_client, day).status == 200
    assert send(FEDERATED, of_cluster, day).status == 200
    old, new = (
        jwt.encode(by_issuer(nbf=NOW + moved, exp=NOW + moved + 600), key().private, "RS256")
        for moved in (0, day)
    )
    assert send(DEVELOPMENT_CLIENT, old, day).status == 401
    assert send(DEVELOPMENT_CLIENT, new, day).status == 200
    response = send(CERTIFIED, of_client, day)
    token = jwt.decode(fields_of(response)["access_token"], options={"verify_signature": False})
    assert token["nbf"] == NOW + day


PUBLIC_PEM = (
    key()
    .private.public_key()
    .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
)


def confused() -> str:
    """Signed with the public key as if it were a shared secret. The library refuses to make one."""
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=")
        for part in ({"alg": "HS256", "typ": "JWT", "kid": key().id}, by_issuer())
    ]
    signed = b".".join(parts)
    signature = base64.urlsafe_b64encode(hmac.digest(PUBLIC_PEM, signed, hashlib.sha256)).rstrip(b"=")
    return b".".join((signed, signature)).decode()


WRONG = {
    "another key": jwt.encode(by_issuer(), other_key().private, "RS256"),
    "another key with the right id": jwt.encode(by_issuer(), other_key().private, "RS256", {"kid": key().id}),
    "no signature": jwt.encode(by_issuer(), "", "none"),
    "a shared secret": confused(),
    "another issuer": jwt.encode(by_issuer(iss=f"{BASE}/other/v2.0"), key().private, "RS256"),
    "another subject": jwt.encode(by_issuer(sub=CLIENT_ID), key().private, "RS256"),
    "an access token": jwt.encode(by_issuer(aud="https://storage.azure.com"), key().private, "RS256"),
    "expired": jwt.encode(by_issuer(exp=NOW - 301), key().private, "RS256"),
    "too early": jwt.encode(by_issuer(nbf=NOW + 301), key().private, "RS256"),
    "no end": jwt.encode({**by_issuer(), "exp": None}, key().private, "RS256"),
    "not text": "three.parts.only",
    "empty parts": "..",
    "a long text": "a" * 30_000,
}


@pytest.mark.parametrize("assertion", WRONG.values(), ids=WRONG)
def test_refused(assertion: str) -> None:
    response = send(DEVELOPMENT_CLIENT, assertion)
    fields = fields_of(response)
    assert (response.status, fields["error"], fields["error_codes"]) == (401, "invalid_client", [700027])


def test_the_tolerance_for_clocks() -> None:
    for changes in ({"exp": NOW - 299}, {"nbf": NOW + 299}):
        assert (
            send(DEVELOPMENT_CLIENT, jwt.encode(by_issuer(**changes), key().private, "RS256")).status == 200
        )


def test_an_assertion_for_another_endpoint() -> None:
    assertion = jwt.encode(by_client(aud="https://elsewhere/token"), other_key().private, "RS256")
    assert send(CERTIFIED, assertion).status == 401


def test_an_assertion_beside_a_secret() -> None:
    assertion = jwt.encode(by_issuer(), key().private, "RS256")
    assert send(DEVELOPMENT_CLIENT, assertion, client_secret="x").status == 400
