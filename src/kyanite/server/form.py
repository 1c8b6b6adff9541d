"""Which form of the program runs: the sources, or modules that were compiled from them."""

import os
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import kyanite


def form() -> str:
    """``interpreted``, or how many modules are compiled. Python prefers these to the sources beside them."""
    suffix = EXTENSION_SUFFIXES[0]
    folder = Path(kyanite.__file__).parent
    count = sum(name.endswith(suffix) for _, _, files in os.walk(folder) for name in files)
    return f"compiled, {count} modules" if count else "interpreted"
