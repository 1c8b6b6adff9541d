"""Which accounts a store has anything of, whoever states their keys."""

from kyanite.engine.api import Snapshot, Steps
from kyanite.model import account_rows, keys
from kyanite.model.migration.rows import MOVED, Owner

_ACCOUNTS_PER_STEP = 100


def names(snap: Snapshot) -> Steps[list[str]]:
    """Their names, without those that are being removed."""
    found: set[str] = set()
    prefixes = {moved.prefix for moved in MOVED if moved.owner is Owner.ACCOUNT and moved.rewrite_key is None}
    for prefix in sorted(prefixes | {keys.ACCOUNTS}):
        start = keys.after(keys.REMOVED_ACCOUNTS) if prefix == keys.ACCOUNTS else prefix
        count = 0
        while True:
            row = next(iter(snap.scan(start, keys.after(prefix), limit=1)), None)
            if row is None:
                break
            name = row[0][len(prefix) :].partition(b"\0")[0]
            found.add(name.decode())
            start = prefix + name + b"\1"
            count += 1
            if count % _ACCOUNTS_PER_STEP == 0:
                yield
    removed = []
    for count, account in enumerate(sorted(found), 1):
        record = account_rows.load(snap, account)
        if record is not None and record.is_removed:
            removed.append(account)
        if count % _ACCOUNTS_PER_STEP == 0:
            yield
    return sorted(found.difference(removed))
