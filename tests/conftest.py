"""Tests may be coroutines: each runs on an event loop of its own, of the kind that the server uses.

A fixture with an ``aclose``, or the first of a tuple of several, is closed on that loop too: its tasks end there.
"""

import inspect
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import pytest
import uvloop

from kyanite.server.form import form
from tests import chosen_store, profiles
from tests.postgres_server import PostgresServer, running_postgres

if TYPE_CHECKING:
    from tests.seaweed_server import SeaweedServer

profiles.register()

IS_COMPILED = form() != "interpreted"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Some tests replace functions or count calls, which works on sources only."""
    for item in items:
        if (store := item.config.getoption(chosen_store.OPTION)) != "embedded" and (
            mark := item.get_closest_marker("embedded")
        ) is not None:
            item.add_marker(pytest.mark.skip(reason=f"not on {store}: {mark.args[0]}"))
        if IS_COMPILED and (mark := item.get_closest_marker("interpreted")) is not None:
            item.add_marker(pytest.mark.skip(reason=f"interpreted only: {mark.args[0]}"))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One PostgreSQL for the tests of this process. Each test takes a schema or a database of its own."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SeaweedServer]":
    """One S3-compatible store, shared by all processes of this test run. Each test takes a prefix of its own."""
    from tests.seaweed_server import shared_server

    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with shared_server(folder / "seaweed") as server:
        yield server


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        chosen_store.OPTION,
        choices=chosen_store.CHOICES,
        default="embedded",
        help="the store of servers under test",
    )
    parser.addoption("--screenshots", action="store_true", help="make the pictures of docs/console.md anew")


@pytest.fixture(scope="session", autouse=True)
def _store(request: pytest.FixtureRequest) -> None:
    choice = request.config.getoption(chosen_store.OPTION)
    if choice in chosen_store.WITH_POSTGRES:
        chosen_store.use(request.getfixturevalue("postgres_server"))
    if choice in chosen_store.WITH_S3:
        chosen_store.use_extents(request.getfixturevalue("seaweed"))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    uvloop.run(_run(pyfuncitem.obj, given))
    return True


async def _run(test: Callable[..., Awaitable[None]], given: Mapping[str, object]) -> None:
    try:
        await test(**given)
    finally:
        for value in given.values():
            first = value[0] if isinstance(value, tuple) and value else value
            if (close := getattr(first, "aclose", None)) is not None:
                await close()
