"""Whole numbers as texts. A client may send any number of digits, and Python refuses to convert thousands of them."""

import re

_FORM = re.compile(r"-?[0-9]+")
_DIGITS_MAX = 30
_BEYOND = 10**_DIGITS_MAX
"""Stands for every number that is larger. No limit is as high."""


def decode(text: str) -> int | None:
    """The number; None when the text is none. One of more than 30 digits is some number beyond every limit."""
    if _FORM.fullmatch(text) is None:
        return None
    if len(text) <= _DIGITS_MAX:
        return int(text)
    digits = text.removeprefix("-").lstrip("0")
    number = int(digits or "0") if len(digits) <= _DIGITS_MAX else _BEYOND
    return -number if text[0] == "-" else number
