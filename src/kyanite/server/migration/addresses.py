"""What ``--from`` and ``--to`` name: a store, by its folder, the URL of its engine and the URL of its extents."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from kyanite.server.failures import BadUsage
from kyanite.server.store.api import (
    EMBEDDED,
    ENGINE_SCHEMES,
    EXTENTS_SCHEMES,
    LOCAL,
    StoreKind,
    scheme_of,
)


class StoreAddress(NamedTuple):
    kind: StoreKind
    folder: Path

    @property
    def has_folder_of_its_own(self) -> bool:
        """Whether the rows are in the folder, so that whoever locks the folder has the store alone."""
        return self.kind.engine == EMBEDDED

    def __str__(self) -> str:
        """Without passwords: what is between ``//`` and ``@`` is left out."""
        parts = [str(self.folder)]
        parts += [_without_password(url) for url in (self.kind.engine, self.kind.extents) if "://" in url]
        return " ".join(parts)


def parse_address(option: str, texts: Sequence[str]) -> StoreAddress:
    """Each text is a URL of an engine, a URL of extents, or a folder."""
    engine, extents, folder = "", "", ""
    for text in texts:
        if "://" not in text:
            folder = _once(option, "a folder", folder, text)
        elif scheme_of(text) in ENGINE_SCHEMES:
            engine = _once(option, "an engine", engine, text)
        elif scheme_of(text) in EXTENTS_SCHEMES:
            extents = _once(option, "extents", extents, text)
        else:
            raise BadUsage(
                f"{option} names neither an engine nor extents of this version: {scheme_of(text)}."
            )
    if not folder:
        raise BadUsage(f"{option} has to name the folder of the store, as --location of kyanite serve does.")
    return StoreAddress(StoreKind(engine or EMBEDDED, extents or LOCAL), Path(folder))


def _once(option: str, what: str, before: str, text: str) -> str:
    if before:
        raise BadUsage(f"{option} names {what} twice.")
    return text


def _without_password(url: str) -> str:
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path.partition('?')[0]}"
