"""Logs: one line for each event on standard error, JSON for programs or text for people.

Every line of JSON has ``time``, ``level``, ``process``, ``logger`` and ``message``; what else belongs to an event is
given as ``extra`` and becomes fields of its own. No line ever holds a secret: signatures of shared access signatures,
which travel in URLs, are cut out wherever they appear.
"""

import json
import logging
import os
import sys
from datetime import UTC, datetime
from typing import TextIO

from kyanite.model.requests.secrets import cut_secrets

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("auto", "json", "text")

_PLAIN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, object] = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "process": self._process,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update((name, value) for name, value in record.__dict__.items() if name not in _PLAIN)
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return cut_secrets(json.dumps(line, default=str, ensure_ascii=False))


_COLOURS = {"debug": "2", "info": "32", "warning": "33", "error": "31", "critical": "1;31"}


class TextLines(logging.Formatter):
    """Formats a record for people: time, level, process, what happened, and its fields. Each is one line.

    Clients choose some of the texts, such as paths, so nothing that a terminal would obey gets through.
    """

    def __init__(self, process: str, *, has_colours: bool) -> None:
        super().__init__()
        self._process = process
        self._has_colours = has_colours

    def format(self, record: logging.LogRecord) -> str:
        level = record.levelname.lower()
        fields = {name: value for name, value in record.__dict__.items() if name not in _PLAIN}
        message = record.getMessage()
        if message == "request":
            message = _request(fields)
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        details = " ".join(
            f"{name}={_text(value)}" for name, value in fields.items() if value not in ("", None)
        )
        time = datetime.fromtimestamp(record.created).strftime("%H:%M:%S.%f")[:-3]
        parts = (
            self._coloured("2", time),
            self._coloured(_COLOURS.get(level, "0"), level.ljust(7)),
            self._coloured("2", self._process.ljust(10)),
            cut_secrets(_printable(message)),
            self._coloured("2", cut_secrets(details)),
        )
        return " ".join(part for part in parts if part)

    def _coloured(self, colour: str, text: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._has_colours and text else text


def _request(fields: dict[str, object]) -> str:
    """What a request was and what became of it, as sentences begin: ``PUT /a/c/b 201 Put Blob 1.2 ms``."""
    words = [fields.pop(name, None) for name in ("method", "path", "status", "operation")]
    if (query := fields.pop("query", "")) and words[1]:
        words[1] = f"{words[1]}?{query}"
    if (milliseconds := fields.pop("ms", None)) is not None:
        words.append(f"{milliseconds} ms")
    return " ".join(str(word) for word in words if word not in ("", None)) or "request"


def _text(value: object) -> str:
    text = _printable(value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False))
    return f'"{text}"' if isinstance(value, str) and (" " in text or not text) else text


def _printable(text: str) -> str:
    """The text with escapes for what is no printable character, line breaks among them."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


_chosen = ["json"]


def choose_format(name: str) -> str:
    """Of the lines of this process and those that it will fork; returns it. ``auto`` is text on a terminal."""
    _chosen[0] = ("text" if sys.stderr.isatty() else "json") if name == "auto" else name
    return _chosen[0]


def _formatter(process: str) -> logging.Formatter:
    if _chosen[0] == "json":
        return JsonLines(process)
    return TextLines(process, has_colours=has_colours(sys.stderr))


def has_colours(stream: TextIO) -> bool:
    """Whether to use colours there: on a terminal that has them, unless the user wants none (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def configure(level: str, process: str) -> None:
    """Send everything of the given level and above to standard error, under the name of this process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter(process))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    logging.captureWarnings(True)
    logging.raiseExceptions = False
