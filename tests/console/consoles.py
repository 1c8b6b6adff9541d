"""A console without a server, over the Blob service of a harness."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

from kyanite.model.requests.refusals import Explanation
from kyanite.model.requests.tail import Completed, Wanted
from kyanite.rules.authorization import ACCOUNT_KEY
from kyanite.services.blob.service import blob_service
from kyanite.services.console.environment import ConsoleEnvironment
from kyanite.services.console.service import Console
from kyanite.services.rest.environment import Identity
from tests.services.harness import Harness


async def explain(_id: str, _account: str | None) -> Explanation | None:
    return None


async def watch(_wanted: Wanted) -> AsyncGenerator[Completed, None]:
    yield Completed([], 0)


def console_of(
    harness: Harness,
    *,
    needs_sign_in: bool = False,
    identity: Identity | None = None,
    well_known_keys: frozenset[bytes] = frozenset(),
) -> Console:
    environment = harness.environment
    own = blob_service(replace(environment, principal=ACCOUNT_KEY))
    return Console(
        ConsoleEnvironment(
            accounts=environment.accounts,
            clock=environment.clock,
            fresh_guid=environment.fresh_guid,
            own={"blob": own},
            public={"blob": harness.service},
            addresses={"blob": ("127.0.0.1", 10000)},
            secret=b"secret",
            needs_sign_in=needs_sign_in,
            hosts=frozenset(("127.0.0.1",)),
            proxied=frozenset(),
            stopping=asyncio.Event(),
            watch=watch,
            explain=explain,
            identity=identity,
            signs_in_by_token=identity is not None,
            well_known_keys=well_known_keys,
        )
    )
