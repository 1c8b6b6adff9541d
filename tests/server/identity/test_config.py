"""The table [identity]: what it means, and every mistake in it as one sentence with the path of the key."""

import tomllib
from pathlib import Path

import pytest

from kyanite.rules.roles import Assignment, role_of
from kyanite.rules.token_claims import Trust
from kyanite.server.failures import BadUsage
from kyanite.server.identity.config import (
    Development,
    DiscoveryUrl,
    JwksFile,
    JwksUrl,
    TrustedIssuer,
    check_loopback,
    parse_identity,
)

TENANT = "6f3c1d2e-0f7a-4b86-9d57-1f2a3b4c5d6e"
WHOLE = f"""
[[issuers]]
name = "entra"
issuer = "https://sts.windows.net/{TENANT}/"
jwks_url = "https://login.microsoftonline.com/{TENANT}/discovery/keys"
tenant = "{TENANT.upper()}"

[[issuers]]
name = "dex"
issuer = "https://dex.example"
discovery_url = "http://127.0.0.1:5556/.well-known/openid-configuration"
audiences = ["my-client"]
principal_claim = "email"
group_claim = "teams"
tolerance_seconds = 5
authorization_uri = "https://dex.example/auth"

[[roles]]
principal = "some-id"
role = "storage blob data reader"
issuer = "entra"

[[roles]]
principal = "email=a@b.example"
role = "0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3"
scope = "lake/photos"
issuer = "dex"

[[roles]]
principal = "*"
role = "Storage Queue Data Message Sender"
scope = "lake"
issuer = "*"
"""


def role(name: str, principal: str, account: str = "", container: str = "", issuer: str = "") -> Assignment:
    found = role_of(name)
    assert found is not None
    return Assignment(principal, found, account, container, issuer)


def test_the_whole_table() -> None:
    config = parse_identity(tomllib.loads(WHOLE))
    assert config.is_on
    assert config.issuers == (
        TrustedIssuer(
            Trust(name="entra", issuer=f"https://sts.windows.net/{TENANT}/", tenant=TENANT),
            JwksUrl(f"https://login.microsoftonline.com/{TENANT}/discovery/keys"),
        ),
        TrustedIssuer(
            Trust(
                name="dex",
                issuer="https://dex.example",
                audiences=("my-client",),
                principal_claim="email",
                group_claim="teams",
                tolerance_seconds=5,
            ),
            DiscoveryUrl("http://127.0.0.1:5556/.well-known/openid-configuration"),
            "https://dex.example/auth",
        ),
    )
    assert config.assignments == (
        role("Storage Blob Data Reader", "some-id", issuer="entra"),
        role("Storage Table Data Contributor", "email=a@b.example", "lake", "photos", "dex"),
        role("Storage Queue Data Message Sender", "*", "lake"),
    )


def test_without_a_table_identity_is_off() -> None:
    config = parse_identity({})
    assert not config.is_on
    assert config.challenge == (
        "Bearer authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize "
        "resource_id=https://storage.azure.com"
    )


@pytest.mark.parametrize(
    ("issuer", "uri"),
    [
        (f"https://sts.windows.net/{TENANT}/", f"https://login.microsoftonline.com/{TENANT}/oauth2/authorize"),
        (f"https://login.microsoftonline.com/{TENANT}/v2.0", f"https://login.microsoftonline.com/{TENANT}/oauth2/authorize"),
        (f"https://localhost:10020/{TENANT}/v2.0", f"https://localhost:10020/{TENANT}/oauth2/authorize"),
        ("https://host/realms/x", "https://host/realms/x/oauth2/authorize"),
    ],
)  # fmt: skip
def test_the_challenge_names_the_tenant_and_an_audience(issuer: str, uri: str) -> None:
    trusted = TrustedIssuer(Trust(name="x", issuer=issuer), JwksFile(Path("keys.json")))
    assert trusted.challenge == f"Bearer authorization_uri={uri} resource_id=https://storage.azure.com"
    other = TrustedIssuer(Trust(name="x", issuer=issuer, audiences=("one", "two")), JwksFile(Path("k")))
    assert other.challenge.endswith(" resource_id=one")


def test_the_option_counts_before_the_file() -> None:
    assert parse_identity({"dev": "builtin"}, "any").development is Development.ANY
    assert parse_identity({"dev": "builtin"}).development is Development.BUILTIN


def test_keys_of_the_built_in_issuer() -> None:
    table = {"dev": "builtin", "tenant": TENANT, "clients": [{"id": "app", "secret": "s"}]}
    config = parse_identity(table)
    assert config.development is Development.BUILTIN
    assert config.builtin.tenant == TENANT
    assert [client.id for client in config.builtin.clients] == ["app"]


ISSUER = '[[issuers]]\nname = "a"\nissuer = "i"\njwks_file = "f"\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("issuer = 1", "identity.issuer is no known setting."),
        ('dev = "all"', 'identity.dev must be "builtin" or "any", not \'all\'.'),
        ("dev = 1", "identity.dev must be a text."),
        ("issuers = 1", "identity.issuers must be a list of tables."),
        ("issuers = [1]", "identity.issuers[1] must be a table."),
        ('[[issuers]]\nname = "a"', "needs one of jwks_file, jwks_url and discovery_url"),
        (ISSUER + 'jwks_url = "https://x.example"', "needs one of jwks_file, jwks_url and discovery_url"),
        ('[[issuers]]\njwks_file = "f"\nissuer = "i"', "identity.issuers[1].name is missing."),
        ('[[issuers]]\njwks_file = "f"\nname = "i"', "identity.issuers[1].issuer is missing."),
        ('[[issuers]]\nname = "builtin"\nissuer = "i"\njwks_file = "f"', "must not be 'builtin'"),
        ('[[issuers]]\njwks_url = "ftp://x"', "identity.issuers[1].jwks_url must be a URL."),
        ('[[issuers]]\njwks_url = "http://x.example/keys"', "must begin with https://"),
        (ISSUER + "audiences = [1]", "identity.issuers[1].audiences must be a list of texts."),
        (ISSUER + 'tenant = "acme"', "identity.issuers[1].tenant must be a GUID."),
        (ISSUER + "tolerance_seconds = -1", "tolerance_seconds must be from 0 to 3600."),
        (ISSUER + 'tolerance_seconds = "1"', "tolerance_seconds must be a whole number."),
        (ISSUER + 'color = "red"', "identity.issuers[1].color is no known setting."),
        (ISSUER + ISSUER, "identity.issuers has 'a' twice."),
        (ISSUER + ISSUER.replace('"a"', '"b"'), "identity.issuers has 'i' twice."),
        (ISSUER + '[[roles]]\nprincipal = "p"', "identity.roles[1].role is missing."),
        (ISSUER + '[[roles]]\nrole = "Reader"', "identity.roles[1].principal is missing."),
        (ISSUER + '[[roles]]\nprincipal = "p"\nrole = "King"', "identity.roles[1].role names no built-in role"),
        (ISSUER + '[[roles]]\nprincipal = "=p"\nrole = "Reader"', "principal must be an id"),
        (ISSUER + '[[roles]]\nprincipal = "p"\nrole = "Reader"\nscope = "Lake"', "scope must be an account"),
        (ISSUER + '[[roles]]\nprincipal = "p"\nrole = "Reader"\nscope = "/x"', "scope must be an account"),
        (ISSUER + '[[roles]]\nprincipal = "p"\nrole = "Storage Blob Data Reader"\nscope = "lake/a/b"', "scope"),
        (ISSUER + '[[roles]]\nprincipal = "p"\nrole = "Reader"\nscope = "lake/x"', "is for whole accounts"),
        (ISSUER + '[[roles]]\nprincipal = "p"\nrole = "Reader"\nissuer = "b"', "names no trusted issuer: 'b'"),
        (
            ISSUER + ISSUER.replace('"a"', '"b"').replace('"i"', '"j"') + '[[roles]]\nprincipal = "p"\nrole = "Reader"',
            "identity.roles[1].issuer must say whose principal it is: a, b, or *.",
        ),
        ('[[roles]]\nprincipal = "p"\nrole = "Reader"', "identity.issuers is missing"),
        (ISSUER + '[[roles]]\nprincipal = "p"\nrole = "Reader"\n' * 2001, "identity.roles has more than 2000 entries"),
        ('dev = "any"\n' + ISSUER, "takes neither issuers nor roles"),
        ('[[clients]]\nid = "a"\nsecret = "s"', "those of the built-in issuer"),
    ],
)  # fmt: skip
def test_mistakes(text: str, says: str) -> None:
    with pytest.raises(BadUsage) as caught:
        parse_identity(tomllib.loads(text))
    assert says in caught.value.sentence


@pytest.mark.parametrize("mode", ["any", "builtin"])
def test_development_is_for_loopback(mode: str) -> None:
    config = parse_identity({}, mode)
    check_loopback(config, host="127.0.0.1", is_loopback=True)
    with pytest.raises(BadUsage, match="loopback only"):
        check_loopback(config, host="0.0.0.0", is_loopback=False)
    check_loopback(parse_identity({}), host="0.0.0.0", is_loopback=False)
