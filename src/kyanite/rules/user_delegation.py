"""When a user delegation key may be had, and when a token that is signed with one may be used.

What the token allows is decided by ``authorize``: what it says, as far as the delegator's roles allow it now.
"""

from kyanite.rules import sas_terms
from kyanite.rules.authorization import RoleFacts, RolePrincipal
from kyanite.rules.refusals import AuthenticationProblem, Because, Reason, Refused
from kyanite.rules.roles import Caller, granted_in, same_id, suffices
from kyanite.values import TICKS_PER_SECOND, Instant

KEY_SECONDS_MAX = 7 * 24 * 3600
_AGENT_NEEDS = "blobs/runAsSuperUser"


def is_valid_period(starts_at: Instant, expires_at: Instant, now: Instant) -> bool:
    """Whether a key may be valid from one instant to another: it ends later, and within seven days from now."""
    return max(starts_at, now) < expires_at <= now + KEY_SECONDS_MAX * TICKS_PER_SECOND


def check_key(
    *,
    starts_at: Instant,
    expires_at: Instant,
    fits_service: bool,
    version: str,
    token_version: str,
    now: Instant,
) -> None:
    """Refuse a token whose key is not valid now, is for another service, or is newer than the token."""
    if not fits_service:
        raise _unauthentic(
            "Signature fields not well formed.", "The user delegation key is for another service (sks)."
        )
    if version > token_version:
        raise _unauthentic(
            "Signature fields not well formed.",
            f"The user delegation key is of a later version (skv={version}) than the token (sv={token_version}).",
        )
    sas_terms.check_time(starts_at, expires_at, now, is_of_key=True)


def check_agents(authorized: str, unauthorized: str, delegator: RolePrincipal) -> None:
    """Refuse agents that the delegator may not vouch for, or that need the ACLs of a hierarchical namespace."""
    if unauthorized:
        raise _unauthentic("suoid needs an account with a hierarchical namespace.")
    granted = granted_in(delegator.grants, delegator.container)
    if authorized and not suffices(granted, _AGENT_NEEDS):
        raise Refused(
            Reason.PERMISSION_MISMATCH,
            facts=RoleFacts(delegator.caller, delegator.container, delegator.grants, _AGENT_NEEDS),
        )


def check_user(caller: Caller | None, object_id: str, tenant_id: str) -> None:
    """Refuse a token that one user may use to everyone else. The user proves itself by a bearer token beside it."""
    if caller is None:
        raise _unauthentic("The signature is for one user, whose bearer token is missing.")
    if not same_id(object_id, caller.object_id) or not same_id(tenant_id, caller.tenant_id):
        raise _unauthentic("The signature is for another user.")


def _unauthentic(sentence: str, why: str = "") -> Refused:
    """``why`` is more exact than what the service tells its clients."""
    return Refused(Reason.AUTHENTICATION_FAILED, AuthenticationProblem(sentence), Because(why or sentence))
