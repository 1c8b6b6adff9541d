"""Logs: one JSON object per line on standard error.

Every line has ``time``, ``level``, ``process``, ``logger`` and ``message``; what else belongs to an event is given as
``extra`` and becomes fields of its own. No line ever holds a secret: signatures of shared access signatures, which
travel in URLs, are cut out wherever they appear.
"""

import json
import logging
import re
import sys
from datetime import UTC, datetime
from urllib.parse import unquote

LEVELS = ("debug", "info", "warning", "error")

_SIGNATURE = re.compile(r"(?i)\b(sig=|access_token=|bearer +)[^&\s\"'\\]+")
_SECRETS = ("sig", "access_token")
_PLAIN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def cut_secrets(text: str) -> str:
    """The text with the signature of every shared access signature and every bearer token in it left out."""
    return _SIGNATURE.sub(r"\1...", text)


def cut_query(query: str) -> str:
    """A query as it came, without signatures and tokens: the value of ``sig``, however spelt, wherever else it is."""
    parts = [part.partition("=") for part in query.split("&")]
    signatures = {unquote(value) for name, _, value in parts if unquote(name).lower() in _SECRETS}
    return "&".join(
        ("sig" if unquote(name).lower() == "sig" else name) + equals + "..."
        if equals and value and unquote(value) in signatures
        else name + equals + value
        for name, equals, value in parts
    )


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


def configure(level: str, process: str) -> None:
    """Send everything of the given level and above to standard error, under the name of this process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(process))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    logging.captureWarnings(True)
    logging.raiseExceptions = False
