"""Requests of the official clients, as ``tours`` has recorded them: ``corpus.json`` beside this file."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from kyanite.wire.uri import decode_query
from tests.services.fuzzing.request import FuzzRequest, Pairs

_FILE = Path(__file__).with_name("corpus.json")
_BODY_MAX = 20_000


class Recorded(NamedTuple):
    service: str
    method: str
    path: str
    query: str
    headers: Pairs
    body: str
    """Octets as characters. The address of a service is its word in braces, here and in headers."""


def save(found: Sequence[Recorded]) -> None:
    """Requests that differ in their values only are kept once."""
    kept: dict[tuple[object, ...], Recorded] = {}
    for each in found:
        names = tuple(sorted(name for name, _ in each.headers))
        parameters = tuple(name for name, _ in decode_query(each.query).pairs)
        if len(each.body) <= _BODY_MAX:
            kept.setdefault(
                (each.service, each.method, each.path, parameters, names, len(each.body) > 0), each
            )
    _FILE.write_text(json.dumps(list(kept.values()), indent=0, ensure_ascii=True) + "\n")


@cache
def recorded(service: str) -> Sequence[Recorded]:
    return [
        each for each in (Recorded(*row) for row in json.loads(_FILE.read_text())) if each.service == service
    ]


def request_of(each: Recorded, hosts: Mapping[str, str]) -> FuzzRequest:
    """The request again, for services at these addresses."""

    def addressed(text: str) -> str:
        for word, host in hosts.items():
            text = text.replace(f"{{{word}}}", host)
        return text

    return FuzzRequest(
        each.service,
        "(recorded)",
        each.method,
        each.path,
        list(decode_query(each.query).pairs),
        [(name, addressed(value)) for name, value in each.headers],
        addressed(each.body).encode("latin-1"),
    )
