"""When, from where and how a token may be used, and the stored access policy that completes it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from kyanite.rules.refusals import AuthenticationProblem, CallerAddress, Reason, Refused
from kyanite.rules.sas_terms import Agreement, agree, check_address, check_protocol, check_time
from kyanite.values import Instant, instant_from_datetime

NOW_MOMENT = datetime(2024, 5, 1, 12, tzinfo=UTC)
NOW = instant_from_datetime(NOW_MOMENT)
TICK = 1


def shifted(**delta: int) -> Instant:
    return instant_from_datetime(NOW_MOMENT + timedelta(**delta))


@pytest.mark.parametrize(
    ("starts_at", "expires_at", "in_force"),
    [
        (None, shifted(hours=1), True),
        (NOW, shifted(hours=1), True),
        (shifted(hours=-1), Instant(NOW + TICK), True),
        (Instant(NOW + TICK), shifted(hours=1), False),
        (None, NOW, False),
        (None, shifted(days=-1), False),
        (shifted(hours=1), shifted(hours=-1), False),
    ],
)
def test_times(starts_at: Instant | None, expires_at: Instant, in_force: bool) -> None:
    if in_force:
        check_time(starts_at, expires_at, NOW)
        return
    with pytest.raises(Refused) as caught:
        check_time(starts_at, expires_at, NOW)
    assert caught.value.reason is Reason.AUTHENTICATION_FAILED


def test_the_sentence_about_times() -> None:
    with pytest.raises(Refused) as caught:
        check_time(shifted(hours=-2), shifted(hours=-1), NOW)
    assert caught.value.detail == AuthenticationProblem(
        "Signature not valid in the specified time frame: Start [Wed, 01 May 2024 10:00:00 GMT] - "
        "Expiry [Wed, 01 May 2024 11:00:00 GMT] - Current [Wed, 01 May 2024 12:00:00 GMT]"
    )


@pytest.mark.parametrize(
    ("https_only", "secure", "allowed"),
    [(True, True, True), (True, False, False), (False, True, True), (False, False, True)],
)
def test_protocols(https_only: bool, secure: bool, allowed: bool) -> None:
    if allowed:
        check_protocol(https_only=https_only, secure=secure)
        return
    with pytest.raises(Refused) as caught:
        check_protocol(https_only=https_only, secure=secure)
    assert caught.value.reason is Reason.PROTOCOL_MISMATCH


@pytest.mark.parametrize(
    ("addresses", "peer", "allowed"),
    [
        (None, "10.0.0.1", True),
        (None, "anything", True),
        ((0x0A000001, 0x0A000001), "10.0.0.1", True),
        ((0x0A000001, 0x0A000001), "10.0.0.2", False),
        ((0x0A000001, 0x0A000009), "10.0.0.1", True),
        ((0x0A000001, 0x0A000009), "10.0.0.9", True),
        ((0x0A000001, 0x0A000009), "10.0.0.10", False),
        ((0x0A000001, 0x0A000009), "10.0.0.0", False),
        ((0x0A000001, 0x0A000009), "::ffff:10.0.0.5", True),
        ((0x0A000001, 0x0A000009), "::ffff:10.0.0.10", False),
        ((0x0A000001, 0x0A000009), "::1", False),
        ((0x00000000, 0xFFFFFFFF), "", False),
    ],
)
def test_addresses(addresses: tuple[int, int] | None, peer: str, allowed: bool) -> None:
    if allowed:
        check_address(addresses, peer)
        return
    with pytest.raises(Refused) as caught:
        check_address(addresses, peer)
    assert caught.value.reason is Reason.SOURCE_IP_MISMATCH
    assert caught.value.detail == CallerAddress(peer)


# Tokens that name a stored access policy.


@dataclass(frozen=True)
class Policy:
    permissions: str | None = None
    starts_at: Instant | None = None
    expires_at: Instant | None = None


START, END = shifted(hours=-1), shifted(hours=1)


@pytest.mark.parametrize(
    ("policy", "token", "expected"),
    [
        (Policy("r", START, END), Policy(), Agreement("r", START, END)),
        (Policy(), Policy("r", START, END), Agreement("r", START, END)),
        (Policy("r"), Policy(None, None, END), Agreement("r", None, END)),
        (Policy(None, START, END), Policy("w"), Agreement("w", START, END)),
        (Policy(None, None, END), Policy("w", START), Agreement("w", START, END)),
        (None, Policy(), None),
        (None, Policy("r", START, END), None),
        (Policy(), Policy(), None),
        (Policy("r"), Policy(), None),
        (Policy(None, None, END), Policy(), None),
        (Policy("r", None, END), Policy("r"), None),
        (Policy("r", START, END), Policy(None, START), None),
        (Policy("r", None, END), Policy(None, None, END), None),
    ],
)
def test_token_and_policy_together(policy: Policy | None, token: Policy, expected: Agreement | None) -> None:
    def together() -> Agreement:
        return agree(
            policy, permissions=token.permissions, starts_at=token.starts_at, expires_at=token.expires_at
        )

    if expected is not None:
        assert together() == expected
        return
    with pytest.raises(Refused) as caught:
        together()
    assert caught.value.reason is Reason.AUTHENTICATION_FAILED
    assert isinstance(caught.value.detail, AuthenticationProblem)
