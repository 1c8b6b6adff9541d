"""Which form of the program runs: the sources, or modules that were compiled from them."""

import os
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import kyanite
from kyanite import values


def form() -> str:
    """``interpreted``, or how many modules are compiled. Python prefers these to the sources beside them."""
    suffix = EXTENSION_SUFFIXES[0]
    folder = Path(kyanite.__file__).parent
    count = sum(name.endswith(suffix) for _, _, files in os.walk(folder) for name in files)
    return f"compiled, {count} modules" if count else "interpreted"


def short_form() -> str:
    """``interpreted`` or ``compiled``, told by one module instead of all folders: a start need not wait for these."""
    return "compiled" if values.__file__.endswith(EXTENSION_SUFFIXES[0]) else "interpreted"
