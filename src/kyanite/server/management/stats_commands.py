"""The command that counts what an account stores: a bounded number of rows in each call."""

import asyncio
from collections import Counter
from functools import partial

import msgspec

from kyanite.model import statistics
from kyanite.model.statistics import Cursor
from kyanite.server.management.command import Command, CommandRequest, Management

PAGES_MAX = 50
"""In one call. The caller asks again with the cursor."""


class AccountStats(CommandRequest, frozen=True):
    account: str
    cursor: Cursor = Cursor()


class AccountFigures(msgspec.Struct, frozen=True):
    figures: dict[str, int]
    """Of the rows that this call has read, by ``statistics.NAMES``; what is 0 is left out."""
    cursor: Cursor | None
    """Where the next call goes on; None if all is counted."""


async def account_stats(management: Management, request: AccountStats) -> AccountFigures:
    engine = management.account(request.account).store.engine
    counts: Counter[str] = Counter()
    cursor: Cursor | None = request.cursor
    for _ in range(PAGES_MAX):
        if cursor is None:
            break
        page, cursor = await engine.read(
            partial(statistics.count_page, account=request.account, cursor=cursor)
        )
        counts.update(page)
        await asyncio.sleep(0)  # Reads of the embedded store run on the event loop, and others have requests.
    return AccountFigures(dict(counts), cursor)


COMMANDS = (Command("account stats", AccountStats, account_stats, is_quiet=True),)
