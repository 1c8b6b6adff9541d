"""How refusals about leases sound, the same for whatever is leased; the codes for using it name the resource."""

from collections.abc import Mapping

from kyanite.rules.refusals import Reason
from kyanite.services.rest.errors import WireError

ACTIONS: Mapping[Reason, WireError] = {
    Reason.LEASE_ALREADY_PRESENT: WireError(409, "LeaseAlreadyPresent", "There is already a lease present."),
    Reason.LEASE_ID_MISMATCH_WITH_LEASE_OPERATION: WireError(
        409,
        "LeaseIdMismatchWithLeaseOperation",
        "The lease ID specified did not match the lease ID for the resource.",
    ),
    Reason.LEASE_IS_BREAKING_AND_CANNOT_BE_ACQUIRED: WireError(
        409,
        "LeaseIsBreakingAndCannotBeAcquired",
        "The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken.",
    ),
    Reason.LEASE_IS_BREAKING_AND_CANNOT_BE_CHANGED: WireError(
        409,
        "LeaseIsBreakingAndCannotBeChanged",
        "The lease ID matched, but the lease is currently in breaking state and cannot be changed.",
    ),
    Reason.LEASE_IS_BROKEN_AND_CANNOT_BE_RENEWED: WireError(
        409,
        "LeaseIsBrokenAndCannotBeRenewed",
        "The lease ID matched, but the lease has been broken explicitly and cannot be renewed.",
    ),
    Reason.LEASE_NOT_PRESENT_WITH_LEASE_OPERATION: WireError(
        409, "LeaseNotPresentWithLeaseOperation", "There is currently no lease on the resource."
    ),
    Reason.INFINITE_LEASE_DURATION_REQUIRED: WireError(
        412,
        "InfiniteLeaseDurationRequired",
        "The lease ID matched, but the lease must be of infinite duration.",
    ),
}
"""What asking for a lease can be answered."""


def uses_of(resource: str, word: str) -> Mapping[Reason, WireError]:
    """What using something leased can be answered."""
    return {
        Reason.LEASE_ID_MISMATCH: WireError(
            412,
            f"LeaseIdMismatchWith{resource}Operation",
            f"The lease ID specified did not match the lease ID for the {word}.",
        ),
        Reason.LEASE_NOT_PRESENT: WireError(
            412,
            f"LeaseNotPresentWith{resource}Operation",
            f"There is currently no lease on the {word}.",
        ),
        Reason.LEASE_ID_MISSING: WireError(
            412,
            "LeaseIdMissing",
            f"There is currently a lease on the {word} and no lease ID was specified in the request.",
        ),
        Reason.LEASE_LOST: WireError(
            412, "LeaseLost", f"A lease ID was specified, but the lease for the {word} has expired."
        ),
    }
