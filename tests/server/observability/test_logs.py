"""Log lines: their form, and what they never hold."""

import json
import logging

import pytest

from kyanite.model.requests.secrets import cut_query, cut_secrets
from kyanite.server.observability.logs import JsonLines, TextLines


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


def text_of(message: str, *, has_colours: bool = False, **fields: object) -> str:
    record = logging.makeLogRecord(
        {"name": "kyanite.test", "levelname": "WARNING", "msg": message, "created": 1.5, **fields}
    )
    text = TextLines("worker 1", has_colours=has_colours).format(record)
    assert "\n" not in text
    return text


def test_a_line_for_people() -> None:
    text = text_of("it happened", request_id="a-b", why="no reason", nothing="", ms=1.5)
    assert text[12:] == ' warning worker 1   it happened request_id=a-b why="no reason" ms=1.5'
    assert text_of("it happened", has_colours=True).count("\x1b[33mwarning") == 1


def test_a_request_for_people() -> None:
    text = text_of(
        "request",
        method="PUT",
        path="/a/c/b",
        query="comp=block",
        status=201,
        operation="Put Block",
        ms=0.4,
        peer="127.0.0.1",
    )
    assert text.endswith(" PUT /a/c/b?comp=block 201 Put Block 0.4 ms peer=127.0.0.1")


def test_lines_for_people_hold_no_secret_and_no_command_for_the_terminal() -> None:
    try:
        raise ValueError("with a\nline break")
    except ValueError as error:
        text = text_of("\x1b[2J %s", args=("sig=abc",), exc_info=(type(error), error, error.__traceback__))
    text += text_of("request", path="/\r\x9b31m", user_agent="sig=abc\x07\x1b]0;title")
    assert text.isprintable()
    assert "abc" not in text
    assert "with a\\nline break" in text


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
