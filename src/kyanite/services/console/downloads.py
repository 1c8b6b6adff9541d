"""Stored bytes on their way to a browser: as files to keep, or as images to show. They never become a page."""

from collections.abc import Mapping
from urllib.parse import quote

from kyanite.services.console import rendering
from kyanite.services.console.visit import NotFound, Visit
from kyanite.wire.http import Response

IMAGES = frozenset(
    ("image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp", "image/x-icon")
)
"""What browsers show as pictures and never run."""


async def download(
    visit: Visit, service: str, path: str, query: Mapping[str, str | int], name: str
) -> Response:
    """The whole content, as a file to be saved, whatever it says it is."""
    file_name = quote(name.rpartition("/")[2] or "download", safe="")
    disposition = f"attachment; filename*=UTF-8''{file_name}"
    return await _content(
        visit,
        service,
        path,
        query,
        [("Content-Type", "application/octet-stream"), ("Content-Disposition", disposition)],
    )


async def image(visit: Visit, service: str, path: str, query: Mapping[str, str | int]) -> Response:
    kind = visit.get("type")
    if kind not in IMAGES:
        raise NotFound
    return await _content(visit, service, path, query, [("Content-Type", kind)])


async def _content(
    visit: Visit, service: str, path: str, query: Mapping[str, str | int], headers: list[tuple[str, str]]
) -> Response:
    found = await visit.client.send(service, "GET", path, query)
    return Response(
        200,
        [
            *headers,
            ("Cache-Control", "no-store"),
            ("Content-Security-Policy", rendering.SANDBOX),
            *rendering.SECURITY_HEADERS,
        ],
        found.body,
        found.length,
        release=found.release,
    )
