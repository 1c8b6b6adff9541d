"""What goes wrong with the body of a request, by its form, and with a filter."""

import json
import re
from collections.abc import Callable, Sequence

from tests.services.fuzzing.oddities import ALL, LONG_NUMBERS, NUMBERS, near, odd
from tests.services.fuzzing.request import Framing, FuzzRequest
from tests.services.fuzzing.scope import Scope

Mutation = Callable[[Scope, FuzzRequest], None]
Table = Sequence[tuple[Mutation, float]]
_TAG = re.compile(rb"<(/?)([A-Za-z][\w-]*)([^<>]*)>")
_TEXT = re.compile(rb">([^<>]*)<")
_LINE = re.compile(rb"[^\r\n]+")


def _body_bytes(scope: Scope, request: FuzzRequest) -> None:
    chance, body = scope.chance, request.body
    at = chance.randrange(len(body) + 1)
    request.body = chance.choice(
        (
            lambda: body[:at],
            lambda: body[at:],
            lambda: body[:at] + chance.randbytes(chance.choice((1, 3, 20))) + body[at:],
            lambda: body[:at] + bytes((chance.getrandbits(8),)) + body[at + 1 :],
            lambda: body + body,
            lambda: b"",
            lambda: body[:at] + odd(chance).encode() + body[at:],
            lambda: b"\xef\xbb\xbf" + body,
            lambda: body.decode("utf-8", "replace").encode("utf-16"),
            lambda: chance.randbytes(chance.choice((1, 100, 513))),
        )
    )()


def _body_line(scope: Scope, request: FuzzRequest) -> None:
    """A line of a batch: dropped, repeated, changed."""
    lines = [match.span() for match in _LINE.finditer(request.body[:20_000])]
    if not lines:
        return
    start, end = scope.chance.choice(lines)
    line = request.body[start:end].decode("latin-1")
    new = scope.chance.choice(("", f"{line}\r\n{line}", near(scope.chance, line), odd(scope.chance)))
    request.body = request.body[:start] + new.encode() + request.body[end:]


def _xml_text(scope: Scope, request: FuzzRequest) -> None:
    texts = [match.span(1) for match in _TEXT.finditer(request.body[:20_000])]
    if not texts:
        return
    start, end = scope.chance.choice(texts)
    value = odd(scope.chance).encode() if scope.likely(0.8) else b"&#0;&#x1F600;&unknown;&lt;"
    request.body = request.body[:start] + value + request.body[end:]


def _xml_tag(scope: Scope, request: FuzzRequest) -> None:
    tags = [match.span() for match in _TAG.finditer(request.body[:20_000])]
    if not tags:
        return
    start, end = scope.chance.choice(tags)
    tag = request.body[start:end]
    new = scope.chance.choice(
        (
            b"",
            tag + tag,
            tag[:-1] + b"/>",
            tag[:-1] + b" a='b' a='c'>",
            b"<x>" * 300,
            b"<x>" * 20_000,
            b"<!DOCTYPE a [<!ENTITY b 'c'>]>" + tag,
            b"<![CDATA[" + tag + b"]]>",
            b"<!-- -- -->" + tag,
            tag.replace(b"<", b"<n:"),
            tag.swapcase(),
        )
    )
    request.body = request.body[:start] + new + request.body[end:]


def _repeat_element(scope: Scope, request: FuzzRequest) -> None:
    """A whole element, once or very often."""
    match = re.search(rb"<(\w+)>[^<>]*</\1>", request.body[:20_000])
    if match is not None:
        times = scope.chance.choice((2, 6, 1000, 60_000 // max(1, len(match[0])) + 1))
        request.body = request.body[: match.start()] + match[0] * times + request.body[match.end() :]


_JSON_VALUES: Sequence[object] = (
    None, True, 0, -1, 1.5, 1e308, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 2**70, "", "x", "x" * 40_000, "\ud800", "\0",
    [], {}, [1], {"a": 1}, [[[[]]]], "NaN", "2026-99-99T00:00:00Z", "0001-01-01T00:00:00Z", "AAA", "é",
    "12345678901234567890",
)  # fmt: skip
_JSON_NAMES = (
    "PartitionKey", "RowKey", "Timestamp", "odata.etag", "odata.type", "Text@odata.type", "PartitionKey@odata.type",
    "", "a b",
    "x" * 255, "x" * 256, "1a", "é", "@odata.type", "a@b", "xml", "TableName", "permission", "format", "Number",
)  # fmt: skip


def _json(scope: Scope, request: FuzzRequest) -> None:
    try:
        value = json.loads(request.body)
    except (ValueError, RecursionError):
        return
    chance = scope.chance
    if not isinstance(value, dict) or scope.likely(0.1):
        request.body = chance.choice(
            (
                b"[" * 100_000,
                b'{"a":' * 5000,
                b"{",
                b"null",
                b"[]",
                b'"x"',
                b"1e999",
                b"-0",
                b'{"a":1,"a":2}',
                b"NaN",
            )
        )
        return
    for _ in range(chance.choice((1, 1, 2, 5))):
        name = chance.choice([*value, *_JSON_NAMES])
        kind = chance.random()
        if kind < 0.15:
            value.pop(name, None)
        elif kind < 0.25:
            value |= {f"p{number}": number for number in range(chance.choice((10, 252, 253, 2000)))}
        elif kind < 0.45:
            value[f"{name}@odata.type"] = chance.choice(
                (
                    "Edm.Int32",
                    "Edm.Int64",
                    "Edm.Double",
                    "Edm.DateTime",
                    "Edm.Guid",
                    "Edm.Binary",
                    "Edm.Boolean",
                    "Edm.X",
                    1,
                )
            )
        else:
            value[name] = chance.choice((chance.choice(_JSON_VALUES), odd(chance)))
    request.body = json.dumps(value).encode("utf-8", "surrogatepass")


def _number_in_body(scope: Scope, request: FuzzRequest) -> None:
    numbers = [match.span() for match in re.finditer(rb"-?\d+", request.body[:20_000])]
    if numbers:
        start, end = scope.chance.choice(numbers)
        new = scope.chance.choice((*NUMBERS, *LONG_NUMBERS)).encode()
        request.body = request.body[:start] + new + request.body[end:]


def filter_option(scope: Scope, request: FuzzRequest) -> None:
    """Long, deep and broken ones."""
    chance = scope.chance
    old = next((value for name, value in request.query if name == "$filter"), "RowKey eq 'r'")
    count = chance.choice((5, 14, 15, 16, 40, 200))
    new = chance.choice(
        (
            "(" * count + old + ")" * count,
            "not " * count + f"({old})",
            " or ".join(f"RowKey eq '{number}'" for number in range(count)),
            " and ".join([old] * count),
            " or ".join(f"(PartitionKey ge '{number}' and RowKey lt '{number}')" for number in range(count)),
            f"{old} and",
            f"{old} {old}",
            near(chance, old),
            f"Text eq {odd(chance)}",
            f"{odd(chance)} eq 1",
            f"Number eq {chance.choice((*NUMBERS, *LONG_NUMBERS))}",
            f"When eq datetime'{chance.choice(ALL[4])}'",
            f"Id eq guid'{odd(chance)}'",
            f"Data eq X'{odd(chance)}'",
            "substringof('x',Text)",
            "startswith(Text,'x') eq true",
        )
    )
    request.query = [pair for pair in request.query if pair[0] != "$filter"]
    request.query.append(("$filter", new[:7000]))


def chunked(_scope: Scope, request: FuzzRequest) -> None:
    request.framing = Framing.CHUNKED


_BODY_MUTATIONS: Table = ((_body_bytes, 4), (chunked, 1))
_XML_MUTATIONS: Table = (
    (_xml_text, 5),
    (_xml_tag, 4),
    (_repeat_element, 1),
    (_number_in_body, 2),
    (_body_bytes, 2),
)
_JSON_MUTATIONS: Table = ((_json, 6), (_number_in_body, 2), (_body_bytes, 2))
_LINE_MUTATIONS: Table = (
    (_body_line, 6),
    (_number_in_body, 1),
    (_body_bytes, 2),
)


def table_of(request: FuzzRequest) -> Table:
    """What goes wrong with the body, by its form."""
    start = request.body[:1]
    if start == b"<":
        return _XML_MUTATIONS
    if start == b"{":
        return _JSON_MUTATIONS
    if request.body[:2] == b"--":
        return _LINE_MUTATIONS
    return _BODY_MUTATIONS
