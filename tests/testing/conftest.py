"""The tests of the kit use its own fixtures, as a project of a user does."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def bytecode() -> Iterator[None]:
    """Compiled modules are kept, which halves the time to start a server."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        yield
