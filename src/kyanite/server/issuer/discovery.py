"""What clients discover: the OpenID configuration of a tenant, the public keys, and the metadata of the instance."""

from kyanite.server.issuer.issuer import Issuer
from kyanite.server.issuer.signing_key import ALGORITHM
from kyanite.server.issuer.tokens import issuer_text


def openid_configuration(issuer: Issuer, tenant: str, base: str) -> dict[str, object]:
    """``base`` is the issuer's address as the client knows it, so that it asks there for the rest too."""
    return {
        "issuer": issuer_text(issuer.base, tenant),
        "authorization_endpoint": f"{base}/{tenant}/oauth2/v2.0/authorize",
        "token_endpoint": token_endpoint(base, tenant),
        "jwks_uri": f"{base}/{tenant}/discovery/v2.0/keys",
        "token_endpoint_auth_methods_supported": [
            "client_secret_post",
            "client_secret_basic",
            "private_key_jwt",
        ],
        "grant_types_supported": ["client_credentials"],
        "response_types_supported": ["token"],
        "response_modes_supported": ["query"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
        "scopes_supported": ["openid"],
        "claims_supported": ["sub", "iss", "aud", "exp", "iat", "nbf", "tid", "oid", "appid", "groups"],
    }


def token_endpoint(base: str, tenant: str) -> str:
    return f"{base}/{tenant}/oauth2/v2.0/token"


def keys(issuer: Issuer) -> dict[str, object]:
    return {"keys": [issuer.key.public_jwk]}


def instance(issuer: Issuer, base: str) -> dict[str, object]:
    host = base.removeprefix("https://")
    return {
        "tenant_discovery_endpoint": f"{base}/{issuer.tenant}/v2.0/.well-known/openid-configuration",
        "api-version": "1.1",
        "metadata": [{"preferred_network": host, "preferred_cache": host, "aliases": [host]}],
    }
