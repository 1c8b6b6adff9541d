"""Each claim of a bearer token wrong, one at a time, with the sentence that the service answers."""

import pytest

from kyanite.rules.refusals import AuthenticationProblem, Reason, Refused
from kyanite.rules.roles import is_guid
from kyanite.rules.token_claims import Trust, caller_of, development_caller
from kyanite.values import instant_from_unix_seconds

NOW = 1_790_000_000
TENANT = "6f3c1d2e-0f7a-4b86-9d57-1f2a3b4c5d6e"
OID = "0e9d8c7b-6a59-4837-9261-5f4e3d2c1b0a"
ISSUER = f"https://sts.windows.net/{TENANT}/"
TRUST = Trust(name="entra", issuer=ISSUER, tenant=TENANT)
CLAIMS: dict[str, object] = {
    "iss": ISSUER,
    "aud": "https://storage.azure.com",
    "iat": NOW - 60,
    "nbf": NOW - 60,
    "exp": NOW + 3600,
    "tid": TENANT,
    "oid": OID,
    "appid": "4b1d5cf0-0000-4000-8000-000000000001",
    "groups": ["g1", "g2"],
    "roles": ["Admin"],
}
ABSENT = object()
ISSUER_FAILED = "Issuer validation failed. Issuer did not match."
AUDIENCE_FAILED = "Audience validation failed. Audience did not match."
EXPIRED = "Lifetime validation failed. The token is expired."
EARLY = "Lifetime validation failed. The token is not yet valid."


def changed(**changes: object) -> dict[str, object]:
    return {name: value for name, value in {**CLAIMS, **changes}.items() if value is not ABSENT}


def sentence(claims: dict[str, object], trust: Trust | None = TRUST) -> str:
    """What the claims are refused with; empty when they are accepted."""
    now = instant_from_unix_seconds(NOW)
    found: Refused | None = None
    try:
        if trust is None:
            development_caller(claims, "acme", now)
        else:
            caller_of(claims, trust, "acme", now, own_urls=("https://127.0.0.1:10000",))
    except Refused as refusal:
        found = refusal
    if found is None:
        return ""
    assert found.reason is Reason.INVALID_AUTHENTICATION_INFO
    assert isinstance(found.detail, AuthenticationProblem)
    return found.detail.text


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, ""),
        ({"iss": f"https://sts.windows.net/{OID}/"}, ISSUER_FAILED),
        ({"iss": ISSUER.rstrip("/")}, ISSUER_FAILED),
        ({"iss": ABSENT}, ISSUER_FAILED),
        ({"iss": [ISSUER]}, ISSUER_FAILED),
        ({"tid": OID}, ISSUER_FAILED),
        ({"tid": TENANT.upper()}, ""),
        ({"tid": ABSENT}, ""),
        ({"aud": "https://storage.azure.com/"}, ""),
        ({"aud": "e406a681-f3d4-42a8-90b6-c2b029497af1"}, ""),
        ({"aud": "https://acme.blob.core.windows.net"}, ""),
        ({"aud": "https://acme.dfs.core.windows.net/"}, ""),
        ({"aud": "https://acme.queue.core.chinacloudapi.cn"}, ""),
        ({"aud": "https://acme.table.core.usgovcloudapi.net"}, ""),
        ({"aud": "https://acme.file.core.cloudapi.de"}, ""),
        ({"aud": ["https://vault.azure.net", "https://storage.azure.com"]}, ""),
        ({"aud": "https://127.0.0.1:10000/acme"}, ""),
        ({"aud": "https://127.0.0.1:10000/other"}, AUDIENCE_FAILED),
        ({"aud": "https://other.blob.core.windows.net"}, AUDIENCE_FAILED),
        ({"aud": "https://acme.blob.core.windows.net.evil.example"}, AUDIENCE_FAILED),
        ({"aud": "http://storage.azure.com"}, AUDIENCE_FAILED),
        ({"aud": "https://management.azure.com"}, AUDIENCE_FAILED),
        ({"aud": ABSENT}, AUDIENCE_FAILED),
        ({"aud": []}, AUDIENCE_FAILED),
        ({"aud": 7}, AUDIENCE_FAILED),
        ({"aud": {"https://storage.azure.com": 1}}, AUDIENCE_FAILED),
        ({"exp": NOW - 300}, ""),
        ({"exp": NOW - 301}, EXPIRED),
        ({"nbf": NOW + 300}, ""),
        ({"nbf": NOW + 301}, EARLY),
        ({"nbf": ABSENT, "iat": ABSENT}, ""),
        ({"exp": ABSENT}, "Lifetime validation failed. The token has no expiration time."),
        ({"exp": NOW + 0.5}, ""),
        ({"exp": 10**400}, ""),
        ({"exp": "tomorrow"}, "Lifetime validation failed. A time of the token is not a number."),
        ({"exp": True}, "Lifetime validation failed. A time of the token is not a number."),
        ({"exp": float("inf")}, "Lifetime validation failed. A time of the token is not a number."),
        ({"nbf": float("nan")}, "Lifetime validation failed. A time of the token is not a number."),
    ],
)
def test_each_claim(changes: dict[str, object], says: str) -> None:
    assert sentence(changed(**changes)) == says


def test_given_audiences_replace_the_usual_ones() -> None:
    trust = Trust(name="dex", issuer=ISSUER, audiences=("my-client",))
    assert sentence(changed(aud="my-client"), trust) == ""
    assert sentence(changed(), trust) == AUDIENCE_FAILED


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, ""),
        ({"iss": "https://sts.chinacloudapi.cn/x/"}, ""),
        ({"iss": "https://evil.example/"}, ISSUER_FAILED),
        ({"iss": "https://sts.windows.net.evil.example/"}, ISSUER_FAILED),
        ({"aud": "https://management.azure.com"}, AUDIENCE_FAILED),
        ({"nbf": ABSENT}, "Lifetime validation failed. The token has no nbf, exp or iat."),
        ({"iat": ABSENT}, "Lifetime validation failed. The token has no nbf, exp or iat."),
        ({"exp": NOW - 1}, EXPIRED),
        ({"oid": ABSENT}, ""),
    ],
)
def test_in_development_any_issuer_of_the_vendor_is_believed(changes: dict[str, object], says: str) -> None:
    assert sentence(changed(**changes), None) == says


def test_whom_the_claims_speak_for() -> None:
    caller = caller_of(CLAIMS, TRUST, "acme", instant_from_unix_seconds(NOW))
    assert (caller.issuer, caller.principal, caller.object_id) == ("entra", OID, OID)
    assert caller.tenant_id == TENANT
    assert caller.application_id == "4b1d5cf0-0000-4000-8000-000000000001"
    assert caller.groups == {"g1", "g2"}
    assert caller.claims["roles"] == {"Admin"}


def test_a_principal_of_another_issuer_gets_guids_of_its_own() -> None:
    claims = changed(oid=ABSENT, tid=ABSENT, sub="system:serviceaccount:ns:app")
    names = [
        caller_of(
            {**claims, "iss": issuer}, Trust(name="k", issuer=issuer), "acme", instant_from_unix_seconds(NOW)
        )
        for issuer in ("https://one.example", "https://one.example", "https://two.example")
    ]
    assert [caller.principal for caller in names] == ["system:serviceaccount:ns:app"] * 3
    assert all(is_guid(caller.object_id) and is_guid(caller.tenant_id) for caller in names)
    assert names[0] == names[1]
    assert names[0].object_id != names[2].object_id
    assert names[0].tenant_id != names[2].tenant_id


def test_the_claim_that_names_the_principal_can_be_chosen() -> None:
    trust = Trust(name="k", issuer=ISSUER, principal_claim="email", group_claim="teams")
    caller = caller_of(
        changed(email="a@b.example", teams=["x"]), trust, "acme", instant_from_unix_seconds(NOW)
    )
    assert (caller.principal, caller.groups) == ("a@b.example", frozenset({"x"}))
    assert caller_of(CLAIMS, trust, "acme", instant_from_unix_seconds(NOW)).principal == ""
