"""One server for all tests of a process, and the official client in both its forms.

Each test works in containers of its own, so that nothing a test does is seen by another.
"""

import inspect
from collections.abc import Iterator

import pytest
import uvloop

from tests.sdk.accounts import OTHER_ACCOUNT, OTHER_KEY, SECOND_KEY
from tests.sdk.clients import ASYNC, SYNC, Sdk, resolve_localhost
from tests.server_process import DEVELOPMENT_KEY, ServerProcess


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    accounts = (f"devstoreaccount1:{DEVELOPMENT_KEY}:{SECOND_KEY}", f"{OTHER_ACCOUNT}:{OTHER_KEY}")
    options = [option for account in accounts for option in ("--account", account)]
    with ServerProcess("--workers", "2", *options, location=tmp_path_factory.mktemp("store")) as started:
        yield started
        assert started.is_running(), started.errors
        unexpected = [line for line in started.log if line.get("level") in {"error", "critical"}]
        assert not unexpected


@pytest.fixture(params=[SYNC, ASYNC])
def sdk(request: pytest.FixtureRequest, server: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> Sdk:
    resolve_localhost(monkeypatch)
    return Sdk(request.param, server)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The client reads a body that fits one request into memory and hands it on so, which aiohttp frowns upon."""
    for item in items:
        if "sdk" in getattr(item, "fixturenames", ()):
            item.add_marker(
                pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")
            )


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that uses the client, and close what it opened on the same event loop."""
    sdk = pyfuncitem.funcargs.get("sdk")
    if not isinstance(sdk, Sdk) or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    test = pyfuncitem.obj
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}

    async def run() -> None:
        try:
            await test(**arguments)
        finally:
            await sdk.close()

    uvloop.run(run())
    return True
