"""What the suites of the Python packages share: the server they meet, and checks that are told one line each, as JSON.

Nothing but the standard library is imported here, for it runs in the environment of the packages.
"""

import json
import os
import random
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ACCOUNT = os.environ.get("AZURE_STORAGE_ACCOUNT", "")
KEY = os.environ.get("AZURE_STORAGE_KEY", "")
ENDPOINT = os.environ.get("AZURE_STORAGE_BLOB_ENDPOINT", "")
"""The address of the Blob service, with the account in its path."""
CONTAINER = os.environ.get("CHECKS_CONTAINER", "")
"""A container that nothing else uses."""
TOKEN = os.environ.get("CHECKS_TOKEN", "")
"""A SAS that allows everything in the account."""

WRONG_KEY = "d3Jvbmc="
ODD_NAMES = ("ä ö ü.txt", "日本語 😀.txt", "a+b %20 #&'c=d.txt")
"""Names that have to be encoded somewhere on their way."""

_DETAIL_CHARACTERS = 1500


@contextmanager
def check(name: str) -> Iterator[None]:
    """The block is the check. It fails by raising, and the next one is done all the same."""
    error = None
    try:
        yield
    except Exception:
        error = traceback.format_exc()[-_DETAIL_CHARACTERS:]
    print(json.dumps({"name": name, "error": error}), flush=True)


def expect(found: object, expected: object) -> None:
    if found != expected:
        raise AssertionError(f"{found!r} instead of {expected!r}"[:_DETAIL_CHARACTERS])


def refused(kind: type[Exception], call: Callable[..., object], *arguments: object, saying: str = "") -> None:
    """The call raises this error, whose text holds ``saying``."""
    try:
        call(*arguments)
    except kind as problem:
        if saying not in str(problem):
            raise
    else:
        raise AssertionError(f"it did not raise {kind.__name__}")


def some_bytes(count: int) -> bytes:
    return random.Random(count).randbytes(count)
