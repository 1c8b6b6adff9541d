"""Values that are nearly right, or not at all: numbers at their limits, other types, other alphabets."""

import random
from collections.abc import Callable, Sequence

Chance = random.Random

NUMBERS = [
    "0",
    "1",
    "-1",
    "00",
    "007",
    "+1",
    "1.5",
    "1e3",
    "0x10",
    "15",
    "16",
    "59",
    "60",
    "61",
    "100",
    "255",
    "256",
    "511",
    "512",
    "513",
    "1000",
    "1001",
    "4999",
    "5000",
    "5001",
    "65535",
    "65536",
    "604800",
    "604801",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740991",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "-2147483648",
    "-2147483649",
    "-9223372036854775808",
    "-9223372036854775809",
    "4398046511104",
    "4398046511105",
    "8796093022208",
    "8796093022720",
    "1_000",
    "١٢٣",
    "²",
    "NaN",
    "Infinity",
]
"""As texts."""
LONG_NUMBERS = ("9" * 25, "1" * 400, "7" * 4301, "-" + "3" * 5000, "0" * 4999 + "5")
TEXTS = (
    "",
    " ",
    "  x  ",
    "x" * 64,
    "x" * 65,
    "x" * 255,
    "x" * 256,
    "x" * 1024,
    "x" * 1025,
    "y" * 9000,
    "true",
    "false",
    "TRUE",
    "null",
    "None",
    "*",
    "**",
    "?",
    ",",
    ",,,",
    ";",
    "=",
    "'",
    "''",
    '"',
    '""',
    "`",
    "<",
    "<a>&amp;</a>",
    "]]>",
    "%",
    "%00",
    "%zz",
    "%25",
    "../..",
    ".",
    "..",
    "./",
    "/",
    "//",
    "\\",
    "a\\b",
    "a/b/c",
    "a:b",
    "{}",
    "[]",
    "é",
    "ÿ",
    "\x7f",
    "\t",
    "a\tb",
    "W/",
    'W/""',
    'W/"x"',
    "0x0",
    '"0x8D"',
    "AAAA",
    "AAA",
    "AA==",
    "A===",
    "!!!!",
    "MDAwMDAw",
    "00000000-0000-0000-0000-000000000000",
    "{00000000-0000-0000-0000-000000000000}",
    "00000000-0000-0000-0000-00000000000g",
)
WIDE_TEXTS = (
    "\0",
    "\x01",
    "\x1f",
    "a\nb",
    "a\r\nb: c",
    "\u0085",
    "\u200f",
    "ü",
    "名前",
    "\U0001f600",
    "\ufffe",
    "\uffff",
    "e\u0301",
    "ı",
    "İ",
    "ſ",
    "K",
    "A" + "\u0300" * 300,
)
"""Not for headers, whose characters are octets."""
TIMES = (
    "2026-11-16",
    "2026-11-16T12:00Z",
    "2026-11-16T12:00:00Z",
    "2026-11-16T12:00:00.1234567Z",
    "2026-11-16T12:00:00.12345678Z",
    "2026-11-16T12:00:00+25:00",
    "2026-11-16T12:00:00+01:00",
    "2026-13-16T12:00:00Z",
    "2026-02-30T12:00:00Z",
    "2026-11-16T24:00:00Z",
    "2026-11-16T12:00:60Z",
    "0000-00-00T00:00:00Z",
    "0001-01-01T00:00:00.0000000Z",
    "0001-01-01T00:00:00+14:00",
    "1600-12-31T23:59:59Z",
    "1601-01-01T00:00:00Z",
    "9999-12-31T23:59:59.9999999Z",
    "9999-12-31T23:59:59.9999999-14:00",
    "10000-01-01T00:00:00Z",
    "Mon, 16 Nov 2026 12:00:00 GMT",
    "Sun, 16 Nov 2026 12:00:00 GMT",
    "Monday, 16-Nov-26 12:00:00 GMT",
    "Mon Nov 16 12:00:00 2026",
    "Fri, 31 Dec 9999 23:59:59 GMT",
    "Mon, 01 Jan 0001 00:00:00 GMT",
    "Mon, 00 Jan 0000 00:00:00 GMT",
    "Mon, 31 Feb 2026 12:00:00 GMT",
    "Mon, 16 Nov 2026 12:00:00 +0100",
    "Thu, 01 Jan 1970 00:00:00 GMT",
    "now",
    "preserve",
    "source",
    "inherit",
)
RANGES = (
    "bytes=0-",
    "bytes=0-0",
    "bytes=0-511",
    "bytes=512-1023",
    "bytes=511-0",
    "bytes=-1",
    "bytes=-0",
    "bytes=-99999999999999999999",
    "bytes=0-9223372036854775807",
    "bytes=9223372036854775807-9223372036854775808",
    "bytes=18446744073709551615-18446744073709551616",
    "bytes=0-511,1024-1535",
    "bytes=a-b",
    "bytes",
    "bytes=",
    "bytes=-",
    "items=0-5",
    "bytes=1-" + "9" * 4400,
    "bytes=" + "8" * 4400 + "-",
    "bytes = 0 - 5",
    "Bytes=0-5",
    "bytes=0x1-0x2",
    "bytes=4398046511103-4398046511104",
    "bytes=0-4194303",
    "bytes=0-4194304",
)
ALL: Sequence[Sequence[str]] = (NUMBERS, LONG_NUMBERS, TEXTS, WIDE_TEXTS, TIMES, RANGES)
_WEIGHTS = (6, 1, 5, 3, 3, 2)


def odd(chance: Chance) -> str:
    """Any of them."""
    return chance.choice(chance.choices(ALL, _WEIGHTS)[0])


def _cut(chance: Chance, text: str) -> str:
    return text[: chance.randrange(len(text) + 1)]


def _insert(chance: Chance, text: str) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice((*TEXTS[:12], *TEXTS[20:44], *WIDE_TEXTS)) + text[at:]


def _replace_one(chance: Chance, text: str) -> str:
    if not text:
        return "x"
    at = chance.randrange(len(text))
    return (
        text[:at]
        + chr(chance.choice((0, 9, 32, 34, 39, 47, 48, 57, 65, 97, 127, 233, 0x131)))
        + text[at + 1 :]
    )


def _larger(chance: Chance, text: str) -> str:
    """A number, if it is one, a little or much further on."""
    try:
        return str(int(text[:30]) + chance.choice((1, -1, 511, -511, 1 << 31, 1 << 53, 1 << 63)))
    except ValueError:
        return text + chance.choice(NUMBERS)


NEAR: Sequence[Callable[[Chance, str], str]] = (
    _cut,
    _insert,
    _replace_one,
    _larger,
    lambda _, text: text.swapcase(),
    lambda _, text: f" {text} ",
    lambda _, text: f'"{text}"',
    lambda _, text: text.strip('"'),
    lambda _, text: text[::-1],
    lambda _, text: f"{text},{text}",
    lambda _, text: text * 2,
    lambda chance, text: (text or "x") * chance.choice((50, 300)),
)


def near(chance: Chance, text: str) -> str:
    """Something like the text."""
    return chance.choice(NEAR)(chance, text)[:20_000]


def in_header(text: str) -> str:
    """As a header can have it: octets, without the ends of lines."""
    octets = text.encode("utf-8", "surrogatepass").decode("latin-1")
    return octets.replace("\r", " ").replace("\n", " ").replace("\0", " ").strip(" \t")
