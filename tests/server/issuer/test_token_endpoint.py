"""The token endpoint, row by row: what gets a token, and what is refused with which code."""

import base64
from urllib.parse import quote_plus

import jwt
import pytest

from kyanite.server.issuer.clients import Client, Identity
from tests.server.issuer.issuers import (
    BASE,
    CLIENT_ID,
    NOW,
    OTHER_TENANT,
    SECRET,
    STORAGE,
    TENANT,
    answer_to,
    fields_of,
    issuer,
    key,
    send_form,
    with_secret,
)

V1 = f"/{TENANT}/oauth2/token"
ODD = Client(
    Identity(
        oid="44444444-4444-4444-8444-444444444444",
        client_id="55555555-5555-4555-8555-555555555555",
        groups=("66666666-6666-4666-8666-666666666666",),
        app_roles=("reader",),
    ),
    secrets=("a secret: with % & ü", "another"),
)


def basic(client_id: str, secret: str) -> dict[str, str]:
    text = f"{quote_plus(client_id)}:{quote_plus(secret)}"
    return {"authorization": f"Basic {base64.b64encode(text.encode()).decode()}"}


def claims_of(token: str) -> dict[str, object]:
    """Checked with the public key, as every service would."""
    claims: dict[str, object] = jwt.decode(
        token,
        key().private.public_key(),
        algorithms=["RS256"],
        options={"verify_aud": False, "verify_exp": False, "verify_nbf": False, "verify_iat": False},
    )
    return claims


def test_a_token_for_a_secret() -> None:
    response = send_form(issuer(), with_secret(client_info="1"))
    assert response.status == 200
    assert ("Cache-Control", "no-store") in response.headers
    fields = fields_of(response)
    token = fields.pop("access_token")
    assert fields == {"token_type": "Bearer", "expires_in": 3599, "ext_expires_in": 3599}
    assert jwt.get_unverified_header(token) == {"alg": "RS256", "typ": "JWT", "kid": key().id}
    assert claims_of(token) == {
        "aud": STORAGE,
        "iss": f"{BASE}/{TENANT}/v2.0",
        "iat": NOW,
        "nbf": NOW,
        "exp": NOW + 3599,
        "oid": "33333333-3333-4333-8333-333333333333",
        "sub": "33333333-3333-4333-8333-333333333333",
        "tid": TENANT,
        "ver": "1.0",
        "appid": CLIENT_ID,
        "appidacr": "1",
        "idtyp": "app",
    }


def test_groups_and_application_roles() -> None:
    form = with_secret(client_id=ODD.id, client_secret=ODD.secrets[0])
    claims = claims_of(fields_of(send_form(issuer([ODD]), form))["access_token"])
    assert claims["groups"] == list(ODD.identity.groups)
    assert claims["roles"] == ["reader"]


@pytest.mark.parametrize("secret", ODD.secrets)
def test_the_secret_in_the_header(secret: str) -> None:
    form = with_secret(client_id=None, client_secret=None)
    assert send_form(issuer([ODD]), form, basic(ODD.id, secret)).status == 200
    assert send_form(issuer([ODD]), {**form, "client_id": ODD.id}, basic(ODD.id, secret)).status == 200
    assert send_form(issuer([ODD]), form, basic(ODD.id, secret + "!")).status == 401


@pytest.mark.parametrize("tenant", [OTHER_TENANT, OTHER_TENANT.upper()])
def test_a_token_of_another_tenant_says_so(tenant: str) -> None:
    fields = fields_of(send_form(issuer(), with_secret(), path=f"/{tenant}/oauth2/v2.0/token"))
    claims = claims_of(fields["access_token"])
    assert (claims["tid"], claims["iss"]) == (OTHER_TENANT, f"{BASE}/{OTHER_TENANT}/v2.0")


@pytest.mark.parametrize(
    ("scope", "audience"),
    [
        (f"{STORAGE}/.default", STORAGE),
        (f"{STORAGE}//.default", f"{STORAGE}/"),
        ("https://lake.blob.core.windows.net/.default", "https://lake.blob.core.windows.net"),
        ("api://my-api/.default", "api://my-api"),
        ("e406a681-f3d4-42a8-90b6-c2b029497af1/.default", "e406a681-f3d4-42a8-90b6-c2b029497af1"),
    ],
)
def test_the_audience_is_the_resource_of_the_scope(scope: str, audience: str) -> None:
    fields = fields_of(send_form(issuer(), with_secret(scope=scope)))
    assert claims_of(fields["access_token"])["aud"] == audience


def test_the_first_version_takes_a_resource_and_answers_in_texts() -> None:
    fields = fields_of(send_form(issuer(), with_secret(scope=None, resource=f"{STORAGE}/"), path=V1))
    assert claims_of(fields.pop("access_token"))["aud"] == f"{STORAGE}/"
    assert fields == {
        "token_type": "Bearer",
        "expires_in": "3599",
        "ext_expires_in": "3599",
        "expires_on": str(NOW + 3599),
        "not_before": str(NOW),
        "resource": f"{STORAGE}/",
    }


def test_a_long_lived_token_is_refreshed_halfway() -> None:
    fields = fields_of(send_form(issuer(token_seconds=86_400), with_secret()))
    assert (fields["expires_in"], fields["refresh_in"]) == (86_400, 43_200)


REFUSED = [
    ("wrong secret", with_secret(client_secret="wrong"), 401, "invalid_client", 7000215),
    ("half a secret", with_secret(client_secret=SECRET[:-1]), 401, "invalid_client", 7000215),
    ("no secret", with_secret(client_secret=None), 401, "invalid_client", 7000216),
    ("empty secret", with_secret(client_secret=""), 401, "invalid_client", 7000216),
    ("unknown client", with_secret(client_id=TENANT), 400, "unauthorized_client", 700016),
    ("no client", with_secret(client_id=None), 400, "invalid_request", 900144),
    ("no grant", with_secret(grant_type=None), 400, "invalid_request", 900144),
    ("another grant", with_secret(grant_type="password"), 400, "unsupported_grant_type", 70003),
    ("a refresh token", with_secret(grant_type="refresh_token"), 400, "unsupported_grant_type", 70003),
    ("no scope", with_secret(scope=None), 400, "invalid_request", 900144),
    ("a scope of users", with_secret(scope=f"{STORAGE}/user_impersonation"), 400, "invalid_scope", 70011),
    ("two scopes", with_secret(scope=f"{STORAGE}/.default api://a/.default"), 400, "invalid_scope", 70011),
    ("no resource in it", with_secret(scope="/.default"), 400, "invalid_scope", 70011),
    ("no URI in it", with_secret(scope="storage/.default"), 400, "invalid_scope", 70011),
    ("a long one", with_secret(scope=f"{STORAGE}/{'a' * 2000}/.default"), 400, "invalid_scope", 70011),
    ("a control character", with_secret(scope="api://a\x00b/.default"), 400, "invalid_scope", 70011),
    (
        "an assertion of no type",
        with_secret(client_secret=None, client_assertion="a.b.c"),
        400,
        "invalid_request",
        9000411,
    ),
]


@pytest.mark.parametrize(
    ("form", "status", "error", "number"), [row[1:] for row in REFUSED], ids=[r[0] for r in REFUSED]
)
def test_refused(form: dict[str, str], status: int, error: str, number: int) -> None:
    response = send_form(issuer(), form, {"client-request-id": OTHER_TENANT})
    fields = fields_of(response)
    assert (response.status, fields["error"], fields["error_codes"]) == (status, error, [number])
    assert fields["error_description"].startswith(f"AADSTS{number}: ")
    assert fields["correlation_id"] == OTHER_TENANT
    assert set(fields) == {
        "error",
        "error_description",
        "error_codes",
        "timestamp",
        "trace_id",
        "correlation_id",
    }
    assert SECRET not in str(fields)


def test_a_bad_resource() -> None:
    fields = fields_of(send_form(issuer(), with_secret(scope=None, resource="storage"), path=V1))
    assert (fields["error"], fields["error_codes"]) == ("invalid_resource", [500011])


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Basic"},
        {"authorization": "Basic !!!"},
        {"authorization": "Basic //79"},
        {"authorization": f"Bearer {base64.b64encode(b'a:b').decode()}"},
        basic(CLIENT_ID, SECRET),
        basic(ODD.id, SECRET),
    ],
)
def test_a_header_that_is_no_credential_or_a_second_one(headers: dict[str, str]) -> None:
    response = send_form(issuer(), with_secret(), headers)
    assert (response.status, fields_of(response)["error"]) == (400, "invalid_request")
    response = send_form(issuer(), with_secret(client_secret=None, client_id=TENANT), headers)
    assert (response.status, fields_of(response)["error"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"grant_type=a&grant_type=b", "application/x-www-form-urlencoded", 400),
        (b"&".join([b"a=1"] * 51), "application/x-www-form-urlencoded", 400),
        (b"a=" + b"1" * 65_536, "application/x-www-form-urlencoded", 413),
        (b'{"grant_type": "client_credentials"}', "application/json", 400),
        (b"", "", 400),
        (b"\xff\xfe%ff=%80&\x00", "application/x-www-form-urlencoded; charset=utf-8", 400),
    ],
)
def test_bodies_that_are_no_forms(body: bytes, content_type: str, status: int) -> None:
    response = answer_to(
        issuer(), "POST", f"/{TENANT}/oauth2/v2.0/token", {"content-type": content_type}, body
    )
    assert (response.status, fields_of(response)["error"]) == (status, "invalid_request")
