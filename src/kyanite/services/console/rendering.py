"""From templates to pages. Everything that a template shows is escaped, unless the template itself has written it."""

import hashlib
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from pathlib import Path
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from kyanite.services.rest.versions import NEWEST
from kyanite.wire.http import Response

_FOLDER = Path(__file__).parent
_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
"""No script but our own file, nothing inline, nothing from elsewhere."""

SANDBOX = "sandbox; default-src 'none'; frame-ancestors 'none'"
"""For stored bytes: whatever they are, they run nothing and fetch nothing."""

SECURITY_HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "same-origin"),  # With no-referrer browsers hide the origin of forms, too.
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


class Templates:
    """All templates, read and compiled once."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(_FOLDER / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            cache_size=-1,
            auto_reload=False,
        )
        self._environment.filters.update(size=size, when=when, percent=percent)
        self._environment.globals.update(link=link, static=static, version=NEWEST)
        for name in self._environment.list_templates():
            self._environment.get_template(name)

    def render(self, name: str, values: dict[str, object]) -> bytes:
        return self._environment.get_template(name).render(values).encode()


def html(body: bytes, status: int = 200) -> Response:
    return Response(
        status,
        [
            ("Content-Type", "text/html; charset=utf-8"),
            ("Cache-Control", "no-store"),
            ("Content-Security-Policy", POLICY),
            *SECURITY_HEADERS,
        ],
        body,
    )


def static_file(name: str) -> Response | None:
    """A file of the package; None if there is no such file."""
    path = _FOLDER / "static" / name
    if name not in _static_names():
        return None
    headers = [
        ("Content-Type", _TYPES[path.suffix[1:]]),
        ("Cache-Control", "max-age=86400"),
        ("Content-Security-Policy", POLICY),
        *SECURITY_HEADERS,
    ]
    return Response(200, headers, _content(name))


@cache
def _static_names() -> frozenset[str]:
    return frozenset(path.name for path in (_FOLDER / "static").iterdir() if path.suffix[1:] in _TYPES)


@cache
def _content(name: str) -> bytes:
    return (_FOLDER / "static" / name).read_bytes()


@cache
def static(name: str) -> str:
    """The address of a file of the package. It changes with the file, so that browsers may keep it."""
    return f"/static/{name}?v={hashlib.sha256(_content(name)).hexdigest()[:12]}"


def link(page: str, **values: object) -> str:
    """The address of a page; names are in the query, since browsers alter paths such as ``a/../b``."""
    given = {name: value for name, value in values.items() if value not in ("", None, False)}
    return f"{page}?{urlencode(given, quote_via=quote)}" if given else page


def size(count: object) -> str:
    """A number of bytes for people."""
    try:
        value = float(str(count))
    except ValueError:
        return str(count)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError


def percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else ""


def when(text: str) -> str:
    """A date of a header or a list, as ``2024-05-01 12:34:56``, UTC."""
    if not text:
        return ""
    try:
        moment = parsedate_to_datetime(text) if "," in text else datetime.fromisoformat(text[:19] + "+00:00")
    except ValueError:
        return text
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
