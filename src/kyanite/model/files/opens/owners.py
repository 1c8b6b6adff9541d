"""Handles of processes that have died. Maintenance closes them, but what needs them closed does not wait for that.

A handle of a dead process must not refuse anything. Whether its process lives is asked only when a handle does refuse
something, or must be waited for: then the handles of all dead processes are closed, and the transaction runs again.
"""

from functools import partial

from kyanite.engine.api import Engine, Snapshot
from kyanite.membership.api import Membership
from kyanite.model import keys
from kyanite.model.files.opens import handles
from kyanite.rules.conflicts import CONFLICTS
from kyanite.rules.refusals import Refused


async def is_outdated(refusal: Refused, engine: Engine, membership: Membership) -> bool:
    """Whether it is worth another try, because handles that may have caused the refusal are closed now."""
    return refusal.reason in CONFLICTS and await close_handles_of_dead(engine, membership)


async def close_handles_of_dead(engine: Engine, membership: Membership) -> bool:
    """Close the handles of all processes that have died; whether there were any."""
    are_closed = False
    for owner in membership.dead_owners():
        if await engine.read(partial(_has_handles, owner=owner)):
            are_closed = True
            while await engine.run(partial(handles.close_handles_of_owner, owner=owner), durable=False):
                pass
    return are_closed


def _has_handles(snap: Snapshot, owner: bytes) -> bool:
    base = keys.handles_of_owner(owner)
    return next(snap.scan(base, keys.after(base), limit=1), None) is not None
