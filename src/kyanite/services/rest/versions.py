"""The protocol version of a request.

Every version is accepted, newer ones than we know included: a new client must never be refused for being new. Versions
are dates and compare as texts.
"""

import re
from functools import lru_cache
from typing import Final

from kyanite.wire.malformed import bad_header, bad_parameter

NEWEST: Final = "2026-10-06"
ANONYMOUS: Final = "2009-09-19"
"""The version of a request that names none."""

_FORM: Final = re.compile(r"\d{4}-\d\d-\d\d")


def version_of(headers: dict[str, str], parameters: dict[str, str]) -> str:
    """The header decides; then, with a shared access signature, ``api-version`` and then the token's own version."""
    version = headers.get("x-ms-version")
    if version is not None:
        if not _is_version(version):
            raise bad_header("x-ms-version", version)
        return version
    for name in ("api-version", "sv"):
        version = parameters.get(name)
        if version is not None:
            if not _is_version(version):
                raise bad_parameter(name, version)
            return version
    return ""


@lru_cache(maxsize=64)
def _is_version(text: str) -> bool:
    return _FORM.fullmatch(text) is not None
