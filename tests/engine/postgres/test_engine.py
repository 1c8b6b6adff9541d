"""The PostgreSQL engine keeps the engine's promises."""

from collections.abc import Callable

import pytest

from kyanite.engine.api import Engine
from kyanite.engine.postgres.address import parse
from kyanite.engine.postgres.engine import PostgresEngine
from kyanite.values import Instant
from tests.engine.suite import EngineSuite, Opener
from tests.postgres_server import PostgresServer


@pytest.fixture
def opener(postgres_server: PostgresServer) -> Opener:
    def open_engine(clock: Callable[[], Instant] | None = None) -> Engine:
        return PostgresEngine(parse(postgres_server.new_schema_url()), clock=clock)

    return open_engine


class TestPostgresEngine(EngineSuite):
    async def subscribed(self, engine: Engine) -> None:
        await anext(engine.subscribe(b"any"))
