"""User delegation: for how long a key may be had, when it is valid, and who may use a token that is signed with it."""

import pytest

from kyanite.rules import user_delegation
from kyanite.rules.authorization import (
    Access,
    AccessedResource,
    RolePrincipal,
    ServiceSasPrincipal,
    UserDelegationPrincipal,
    authorize,
    may_overwrite,
    shared_keys,
    within,
)
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.roles import Caller, Grant, role_of
from kyanite.values import TICKS_PER_SECOND, Instant

NOW = 1_000_000_000
DAY = 24 * 3600
OID = "0e9d8c7b-6a59-4837-9261-5f4e3d2c1b0a"
TENANT = "6f3c1d2e-0f7a-4b86-9d57-1f2a3b4c5d6e"


def at(seconds: int) -> Instant:
    return Instant((NOW + seconds) * TICKS_PER_SECOND)


@pytest.mark.parametrize(
    ("start", "expiry", "is_valid"),
    [
        (0, 3600, True),
        (0, 7 * DAY, True),
        (0, 7 * DAY + 1, False),
        (-DAY, 7 * DAY, True),
        (3600, 3601, True),
        (3600, 3600, False),
        (3600, 1800, False),
        (0, 0, False),
        (-DAY, -1, False),
        (-DAY, 0, False),
        (6 * DAY, 7 * DAY, True),
    ],
)
def test_the_period_of_a_key(start: int, expiry: int, is_valid: bool) -> None:
    assert user_delegation.is_valid_period(at(start), at(expiry), at(0)) is is_valid


@pytest.mark.parametrize(
    ("starts", "expires", "fits", "version", "token_version", "valid"),
    [
        (-1, 1, True, "2020-02-10", "2020-02-10", True),
        (0, 1, True, "2018-11-09", "2026-04-06", True),
        (1, 2, True, "2020-02-10", "2020-02-10", False),
        (-2, 0, True, "2020-02-10", "2020-02-10", False),
        (-2, -1, True, "2020-02-10", "2020-02-10", False),
        (-1, 1, False, "2020-02-10", "2020-02-10", False),
        (-1, 1, True, "2020-12-06", "2020-02-10", False),
    ],
)
def test_when_a_key_is_valid(
    starts: int, expires: int, fits: bool, version: str, token_version: str, valid: bool
) -> None:
    def check() -> None:
        user_delegation.check_key(
            starts_at=at(starts),
            expires_at=at(expires),
            fits_service=fits,
            version=version,
            token_version=token_version,
            now=at(0),
        )

    if valid:
        check()
    else:
        assert refusal_of(check) is Reason.AUTHENTICATION_FAILED


def refusal_of(check: object) -> Reason | None:
    assert callable(check)
    try:
        check()
    except Refused as refusal:
        return refusal.reason
    return None


def delegator(role: str | None, container: str = "") -> RolePrincipal:
    found = None if role is None else role_of(role)
    grants = () if found is None else (Grant(found.actions, container),)
    return RolePrincipal(Caller("test", OID, OID, TENANT), grants, "box", "2025-07-05")


@pytest.mark.parametrize(
    ("authorized", "unauthorized", "role", "reason"),
    [
        ("", "", None, None),
        ("agent", "", "Storage Blob Data Owner", None),
        ("agent", "", "Storage Blob Data Contributor", Reason.PERMISSION_MISMATCH),
        ("", "agent", "Storage Blob Data Owner", Reason.AUTHENTICATION_FAILED),
        ("agent", "agent", "Storage Blob Data Owner", Reason.AUTHENTICATION_FAILED),
    ],
)
def test_agents(authorized: str, unauthorized: str, role: str | None, reason: Reason | None) -> None:
    found = refusal_of(lambda: user_delegation.check_agents(authorized, unauthorized, delegator(role)))
    assert found is reason


@pytest.mark.parametrize(
    ("caller", "allowed"),
    [
        (Caller("test", OID, OID, TENANT), True),
        (Caller("test", OID, OID.upper(), TENANT.upper()), True),
        (Caller("test", OID, TENANT, TENANT), False),
        (Caller("test", OID, OID, OID), False),
        (None, False),
    ],
)
def test_a_token_for_one_user(caller: Caller | None, allowed: bool) -> None:
    found = refusal_of(lambda: user_delegation.check_user(caller, OID, TENANT))
    assert found is (None if allowed else Reason.AUTHENTICATION_FAILED)


READ = Access(account="o r", service="r", role="blobs/read")
PUT = Access(account="o cw", service="cw", writes=True, role="blobs/write|blobs/add")
LIST_CONTAINERS = Access(account="s l", role="containers/read")


@pytest.mark.parametrize(
    ("letters", "role", "container", "access", "reason"),
    [
        ("r", "Storage Blob Data Reader", "", READ, None),
        ("r", "Storage Blob Data Reader", "box", READ, None),
        ("r", "Storage Blob Data Reader", "attic", READ, Reason.PERMISSION_MISMATCH),
        ("r", "Storage Blob Delegator", "", READ, Reason.PERMISSION_MISMATCH),
        ("r", None, "", READ, Reason.PERMISSION_MISMATCH),
        ("w", "Storage Blob Data Owner", "", READ, Reason.PERMISSION_MISMATCH),
        ("rw", "Storage Blob Data Reader", "", PUT, Reason.PERMISSION_MISMATCH),
        ("rw", "Storage Blob Data Contributor", "", PUT, None),
        ("r", "Storage Blob Data Contributor", "", PUT, Reason.PERMISSION_MISMATCH),
        ("racwdxlt", "Storage Blob Data Owner", "", LIST_CONTAINERS, Reason.AUTHORIZATION_FAILURE),
    ],
)
def test_a_token_allows_what_it_and_the_delegator_allow(
    letters: str, role: str | None, container: str, access: Access, reason: Reason | None
) -> None:
    principal = UserDelegationPrincipal(ServiceSasPrincipal("c", letters), delegator(role, container))
    assert refusal_of(lambda: authorize(principal, access, AccessedResource("blob"))) is reason


@pytest.mark.parametrize(
    ("letters", "role", "may"),
    [
        ("cw", "Storage Blob Data Contributor", True),
        ("c", "Storage Blob Data Contributor", False),
        ("cw", "Storage Blob Data Reader", False),
    ],
)
def test_overwriting(letters: str, role: str, may: bool) -> None:
    principal = UserDelegationPrincipal(ServiceSasPrincipal("c", letters), delegator(role))
    assert may_overwrite(principal) is may
    assert shared_keys(principal) is None
    assert within(principal, "other") is principal


def test_a_directory_can_be_listed_and_nothing_else_of_its_container() -> None:
    listing = Access(account="c l", service="l", in_directory=True, role="blobs/read")
    finding = Access(account="c f", service="f", role="blobs/filter")
    token = UserDelegationPrincipal(ServiceSasPrincipal("d", "rlf"), delegator("Storage Blob Data Owner"))
    assert refusal_of(lambda: authorize(token, listing, AccessedResource("blob"))) is None
    assert (
        refusal_of(lambda: authorize(token, finding, AccessedResource("blob")))
        is Reason.AUTHENTICATION_FAILED
    )
