"""Log lines: their form, and what they never hold."""

import json
import logging

import pytest

from kyanite.server.observability.logs import JsonLines, cut_query, cut_secrets


def line_of(message: str, *arguments: object, **fields: object) -> dict[str, object]:
    record = logging.makeLogRecord(
        {
            "name": "kyanite.test",
            "levelname": "INFO",
            "msg": message,
            "args": arguments,
            "created": 1.5,
            **fields,
        }
    )
    text = JsonLines("worker 1").format(record)
    assert "\n" not in text
    decoded: dict[str, object] = json.loads(text)
    return decoded


def test_a_line() -> None:
    assert line_of("%s happened", "it", request_id="a-b", ms=1.5) == {
        "time": "1970-01-01T00:00:01.500Z",
        "level": "info",
        "process": "worker 1",
        "logger": "kyanite.test",
        "message": "it happened",
        "request_id": "a-b",
        "ms": 1.5,
    }


def test_an_error_has_its_trace_in_one_line() -> None:
    try:
        raise ValueError("with a\nline break")
    except ValueError as error:
        line = line_of("failed", exc_info=(type(error), error, error.__traceback__))
    assert "ValueError: with a\nline break" in str(line["error"])


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("GET http://h/c/b?sv=1&sig=abc%2B%3D&se=2 now", "GET http://h/c/b?sv=1&sig=...&se=2 now"),
        ("?SIG=abc", "?SIG=..."),
        ('copy from "http://h/b?sig=abc"', 'copy from "http://h/b?sig=..."'),
        ("design=abc", "design=abc"),
        ("nothing", "nothing"),
    ],
)
def test_signatures_are_cut_out_of_texts(text: str, cut: str) -> None:
    assert cut_secrets(text) == cut
    assert line_of("%s", text)["message"] == cut
    assert line_of("see", url=text)["url"] == cut


@pytest.mark.parametrize(
    ("query", "cut"),
    [
        ("", ""),
        ("comp=list&sig=abc=&x", "comp=list&sig=...&x"),
        ("%73i%67=abc", "sig=..."),
        ("Sig=abc&sig=def", "sig=...&sig=..."),
        ("signature=abc", "signature=abc"),
        ("comp=a%2Fb&sig=a/b", "comp=...&sig=..."),
        ("comp=&sig=", "comp=&sig="),
    ],
)
def test_signatures_are_cut_out_of_queries(query: str, cut: str) -> None:
    assert cut_query(query) == cut
