"""The lines of a response's headers: those that are known are not made again."""

import pytest

from kyanite.wire.http import HeaderBlock, HeaderError, Response


def test_lines_of_headers_in_their_order() -> None:
    assert Response(200, [("A", "1"), ("B", "")]).lines() == "A: 1\r\nB: \r\n"
    assert Response(204).lines() == ""


def test_known_lines_begin_and_end_a_response() -> None:
    response = HeaderBlock([("A", "1")]).response(200)
    response.headers.append(("B", "2"))
    response.end_with([("Y", "8"), ("Z", "9")], "known\r\n")
    assert response.headers == [("A", "1"), ("B", "2"), ("Y", "8"), ("Z", "9")]
    assert response.lines() == "A: 1\r\nB: 2\r\nknown\r\n"


def test_nothing_between_the_known_lines() -> None:
    response = HeaderBlock([("A", "1")]).response(200)
    response.end_with([("Z", "9")], "known\r\n")
    assert response.lines() == "A: 1\r\nknown\r\n"


def test_a_response_of_nothing_but_its_end() -> None:
    response = Response(200)
    response.end_with([("Z", "9")], "known\r\n")
    assert response.lines() == "known\r\n"


def test_a_header_that_is_added_at_the_very_end_is_not_lost() -> None:
    response = Response(200, [("A", "1")])
    response.end_with([("Z", "9")], "known\r\n")
    response.headers.append(("Retry-After", "1"))
    assert response.lines() == "A: 1\r\nZ: 9\r\nRetry-After: 1\r\n"


@pytest.mark.parametrize("bad", ["a\nb", "a\rb", "a\0b"])
def test_line_breaks_are_found_between_known_lines(bad: str) -> None:
    response = HeaderBlock([("A", "1")]).response(200)
    response.headers.append(("B", bad))
    response.end_with([("Z", "9")], "Z: 9\r\n")
    with pytest.raises(HeaderError):
        response.lines()
