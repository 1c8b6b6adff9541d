"""A look at the beginning of what is stored: text, JSON and CSV as text, pictures as pictures."""

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass

from kyanite.services.console.client import Client, ServiceError, read_body
from kyanite.services.console.downloads import IMAGES

_BYTES = 256 * 1024
_ROWS, _COLUMNS = 200, 50
_TYPES = {
    "csv": "text/csv",
    "json": "application/json",
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
}
_TEXTS = (
    "txt",
    "md",
    "log",
    "xml",
    "html",
    "htm",
    "css",
    "js",
    "py",
    "toml",
    "yaml",
    "yml",
    "ini",
    "svg",
    "sql",
)
_TEXT_TYPES = (
    "application/xml",
    "application/javascript",
    "application/x-yaml",
    "application/toml",
    "image/svg+xml",
)


@dataclass(frozen=True, slots=True)
class Preview:
    kind: str
    """``text``, ``table`` or ``image``."""
    text: str = ""
    rows: tuple[tuple[str, ...], ...] = ()
    image_type: str = ""
    is_cut: bool = False
    """Whether there is more than is shown."""


async def of(
    client: Client,
    service: str,
    path: str,
    query: Mapping[str, str | int],
    name: str,
    content_type: str,
    size: int,
) -> Preview | None:
    """None for what cannot be shown."""
    kind = _kind_of(name, content_type)
    if kind in IMAGES:
        return Preview("image", image_type=kind)
    if not kind or size == 0:
        return None
    is_cut = size > _BYTES
    headers = {"x-ms-range": f"bytes=0-{min(size, _BYTES) - 1}"}
    try:
        data = await read_body(await client.send(service, "GET", path, query, headers), _BYTES)
    except ServiceError:
        return None  # Its bytes cannot be read now: it is archived, or locked.
    text = data.decode("utf-8", "replace")
    if kind == "text/csv":
        return _table(text, is_cut=is_cut)
    if kind == "application/json" and not is_cut:
        text = _pretty(text)
    return Preview("text", text=text, is_cut=is_cut)


def _kind_of(name: str, content_type: str) -> str:
    """By the content type; by the end of the name if that says nothing."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind in ("", "application/octet-stream"):
        ending = name.rpartition(".")[2].lower()
        return _TYPES.get(ending) or ("text/plain" if ending in _TEXTS else "")
    if kind in IMAGES or kind in ("text/csv", "application/json"):
        return kind
    if kind.endswith("+json"):
        return "application/json"
    return "text/plain" if kind.startswith("text/") or kind in _TEXT_TYPES else ""


def _pretty(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _table(text: str, *, is_cut: bool) -> Preview:
    rows: list[tuple[str, ...]] = []
    try:
        for row in csv.reader(text.splitlines()):
            if len(rows) == _ROWS:
                is_cut = True
                break
            rows.append(tuple(row[:_COLUMNS]))
    except csv.Error:
        return Preview("text", text=text, is_cut=is_cut)
    return Preview("table", rows=tuple(rows), is_cut=is_cut)
