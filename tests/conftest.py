"""Tests may be coroutines: each runs on an event loop of its own, of the kind that the server uses.

A fixture with an ``aclose``, or the first of a tuple of several, is closed on that loop too: its tasks end there.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping

import pytest
import uvloop

from kyanite.server.form import form
from tests import profiles

profiles.register()

IS_COMPILED = form() != "interpreted"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Some tests replace functions or count calls, which works on sources only."""
    for item in items:
        if IS_COMPILED and (mark := item.get_closest_marker("interpreted")) is not None:
            item.add_marker(pytest.mark.skip(reason=f"interpreted only: {mark.args[0]}"))


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
