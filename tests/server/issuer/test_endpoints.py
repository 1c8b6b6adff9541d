"""What clients discover, and addresses that lead nowhere."""

import base64
import hashlib
import json

import pytest

from tests.server.issuer.issuers import BASE, OTHER_TENANT, TENANT, answer_to, fields_of, issuer, key

DISCOVERED = ("/v2.0/.well-known/openid-configuration", "/.well-known/openid-configuration")


@pytest.mark.parametrize("path", DISCOVERED)
@pytest.mark.parametrize("tenant", [TENANT, OTHER_TENANT])
def test_openid_configuration(path: str, tenant: str) -> None:
    fields = fields_of(answer_to(issuer(), "GET", f"/{tenant}{path}"))
    assert fields["issuer"] == f"{BASE}/{tenant}/v2.0"
    here = f"https://localhost:10020/{tenant}"
    assert fields["authorization_endpoint"] == f"{here}/oauth2/v2.0/authorize"
    assert fields["token_endpoint"] == f"{here}/oauth2/v2.0/token"
    assert fields["jwks_uri"] == f"{here}/discovery/v2.0/keys"
    assert fields["id_token_signing_alg_values_supported"] == ["RS256"]
    assert fields["token_endpoint_auth_methods_supported"] == [
        "client_secret_post",
        "client_secret_basic",
        "private_key_jwt",
    ]


@pytest.mark.parametrize("path", ["/discovery/v2.0/keys", "/discovery/keys"])
def test_keys(path: str) -> None:
    (row,) = fields_of(answer_to(issuer(), "GET", f"/{TENANT}{path}"))["keys"]
    assert set(row) == {"kty", "use", "alg", "kid", "n", "e"}
    assert (row["kty"], row["use"], row["alg"]) == ("RSA", "sig", "RS256")
    modulus = int.from_bytes(base64.urlsafe_b64decode(row["n"] + "=="))
    assert modulus == key().private.public_key().public_numbers().n
    # RFC 7638, section 3: the required members in the order of their names.
    members = json.dumps({"e": row["e"], "kty": "RSA", "n": row["n"]}, separators=(",", ":"))
    thumbprint = base64.urlsafe_b64encode(hashlib.sha256(members.encode()).digest())
    assert row["kid"] == thumbprint.decode().rstrip("=")


def test_instance_discovery() -> None:
    fields = fields_of(
        answer_to(issuer(), "GET", "/common/discovery/instance?api-version=1.1&authorization_endpoint=x")
    )
    assert fields == {
        "tenant_discovery_endpoint": f"https://localhost:10020/{TENANT}{DISCOVERED[0]}",
        "api-version": "1.1",
        "metadata": [
            {
                "preferred_network": "localhost:10020",
                "preferred_cache": "localhost:10020",
                "aliases": ["localhost:10020"],
            }
        ],
    }


@pytest.mark.parametrize(
    ("method", "path", "status", "error"),
    [
        ("GET", "/", 404, "invalid_request"),
        ("GET", "//", 404, "invalid_request"),
        ("GET", "", 404, "invalid_request"),
        ("GET", f"/{TENANT}", 404, "invalid_request"),
        ("GET", f"/{TENANT}/oauth2", 404, "invalid_request"),
        ("GET", f"/{TENANT}//discovery/keys", 404, "invalid_request"),
        ("GET", "/metadata/identity/oauth2/token", 404, "invalid_request"),
        ("GET", f"/{TENANT}/oauth2/v2.0/token", 405, "invalid_request"),
        ("PUT", f"/{TENANT}/oauth2/v2.0/token", 405, "invalid_request"),
        ("POST", f"/{TENANT}/discovery/keys", 405, "invalid_request"),
        ("GET", f"/common{DISCOVERED[0]}", 400, "invalid_request"),
        ("GET", f"/%00{DISCOVERED[0]}", 400, "invalid_request"),
        ("POST", "/organizations/oauth2/v2.0/token", 400, "invalid_request"),
        ("GET", f"/{TENANT}/oauth2/v2.0/authorize?response_type=code", 400, "unsupported_response_type"),
        ("GET", f"/{TENANT}/oauth2/authorize", 400, "unsupported_response_type"),
    ],
)
def test_addresses_that_lead_nowhere(method: str, path: str, status: int, error: str) -> None:
    response = answer_to(issuer(), method, path)
    assert (response.status, fields_of(response)["error"]) == (status, error)
    assert (status == 405) == any(name == "Allow" for name, _ in response.headers)


@pytest.mark.parametrize("host", ["", "a b", 'a"b', "a/b", "user@host", "host:port", "[::1", "a\x7fb"])
def test_a_host_that_is_none(host: str) -> None:
    response = answer_to(issuer(), "GET", f"/{TENANT}{DISCOVERED[0]}", {"host": host})
    assert response.status == 400


def test_an_id_that_is_no_guid_is_not_repeated() -> None:
    response = answer_to(issuer(), "GET", "/", {"client-request-id": "<script>"})
    assert "<script>" not in str(response.body)
