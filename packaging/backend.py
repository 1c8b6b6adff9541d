"""The build backend: Hatchling, and what a wheel is compiled with.

``pip install .`` fetches mypy for the build where there is a C compiler to use it. ``pip install --editable .`` runs
the sources, so it fetches nothing more and takes no longer than without compiled modules.
"""

from typing import Any

import hatch_build
from hatchling.build import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
)
from hatchling.build import get_requires_for_build_wheel as _hatchling_requires

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    return [*_hatchling_requires(config_settings), *hatch_build.requirements()]
