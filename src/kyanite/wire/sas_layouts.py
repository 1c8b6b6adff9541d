"""The lines of the strings-to-sign of service SAS and user delegation SAS, by service and by the token's version: a row
for each change.

Fields are signed as the text that was sent, decoded from the URL; a missing one is an empty line. File tokens do not
have the lines that blob tokens have since 2018-11-09.
"""

from collections.abc import Mapping

OVERRIDES = ("rscc", "rscd", "rsce", "rscl", "rsct")

# Filled in by the request: neither the resource nor its snapshot or version is repeated in the token. No
# field can be mistaken for one of these marks, since a field with a line break is refused.
_RESOURCE = "\n(resource)\n"
_MOMENT = "\n(snapshot or version)\n"
_FILLED_IN = frozenset((_RESOURCE, _MOMENT))

_TERMS = ("sp", "st", "se", _RESOURCE, "si")

_Rows = tuple[tuple[str, tuple[str, ...]], ...]

_BLOB: _Rows = (
    ("2020-12-06", (*_TERMS, "sip", "spr", "sv", "sr", _MOMENT, "ses", *OVERRIDES)),
    ("2018-11-09", (*_TERMS, "sip", "spr", "sv", "sr", _MOMENT, *OVERRIDES)),
    ("2015-04-05", (*_TERMS, "sip", "spr", "sv", *OVERRIDES)),
    ("2013-08-15", (*_TERMS, "sv", *OVERRIDES)),
    ("2012-02-12", (*_TERMS, "sv")),
    ("", _TERMS),
)
_FILE: _Rows = (
    ("2015-04-05", (*_TERMS, "sip", "spr", "sv", *OVERRIDES)),
    ("", (*_TERMS, "sv", *OVERRIDES)),
)
_QUEUE: _Rows = (
    ("2015-04-05", (*_TERMS, "sip", "spr", "sv")),
    ("2012-02-12", (*_TERMS, "sv")),
    ("", _TERMS),
)
_TABLE: _Rows = (
    ("2015-04-05", (*_TERMS, "sip", "spr", "sv", "spk", "srk", "epk", "erk")),
    ("", (*_TERMS, "sv", "spk", "srk", "epk", "erk")),
)
_LAYOUTS: Mapping[str, _Rows] = {
    "blob": _BLOB,
    "dfs": _BLOB,
    "file": _FILE,
    "queue": _QUEUE,
    "table": _TABLE,
}

_KEY = ("skoid", "sktid", "skt", "ske", "sks", "skv")
_DELEGATED_TERMS = ("sp", "st", "se", _RESOURCE, *_KEY)
_AGENTS = ("saoid", "suoid", "scid")
_USER = ("skdutid", "sduoid")
_ORIGIN = ("sip", "spr", "sv")

_DELEGATED_BLOB: _Rows = (
    (
        "2026-04-06",
        (*_DELEGATED_TERMS, *_AGENTS, *_USER, *_ORIGIN, "sr", _MOMENT, "ses", "srh", "srq", *OVERRIDES),
    ),
    ("2025-07-05", (*_DELEGATED_TERMS, *_AGENTS, *_USER, *_ORIGIN, "sr", _MOMENT, "ses", *OVERRIDES)),
    ("2020-12-06", (*_DELEGATED_TERMS, *_AGENTS, *_ORIGIN, "sr", _MOMENT, "ses", *OVERRIDES)),
    ("2020-02-10", (*_DELEGATED_TERMS, *_AGENTS, *_ORIGIN, "sr", _MOMENT, *OVERRIDES)),
    ("2018-11-09", (*_DELEGATED_TERMS, *_ORIGIN, "sr", _MOMENT, *OVERRIDES)),
)
_DELEGATED: Mapping[str, _Rows] = {
    "blob": _DELEGATED_BLOB,
    "dfs": _DELEGATED_BLOB,
    "file": (("2026-02-06", (*_DELEGATED_TERMS, *_USER, *_ORIGIN, *OVERRIDES)),),
    "queue": (("2026-02-06", (*_DELEGATED_TERMS, *_USER, *_ORIGIN)),),
}
"""Of a user delegation SAS. No client makes one for tables."""

SIGNED_FIELDS = (
    frozenset(
        name
        for layouts in (_LAYOUTS, _DELEGATED)
        for rows in layouts.values()
        for _, names in rows
        for name in names
    )
    - _FILLED_IN
)
_ONLY_DELEGATED = SIGNED_FIELDS.difference(*(names for rows in _LAYOUTS.values() for _, names in rows))
"""What only a user delegation SAS has."""


def signs_overrides(service: str, version: str) -> bool:
    """Whether the signature of such a token covers the headers of the response that it replaces."""
    return OVERRIDES[0] in _signed_names(service, version)


def string_to_sign_parts(service: str, version: str, fields: Mapping[str, str]) -> tuple[str, ...]:
    """The text, cut where the request fills in the resource and, in rows that have it, the moment."""
    names = _signed_names(service, version)
    text = "\n".join(name if name in _FILLED_IN else fields.get(name, "") for name in names)
    before, _, after = text.partition(_RESOURCE)
    between, has_moment, after = after.partition(_MOMENT)
    return (before, between, after) if has_moment else (before, between)


def delegated_lines(service: str, version: str, fields: Mapping[str, str]) -> "DelegatedLines | None":
    """The lines of a user delegation SAS; None if there is none of this version, or not with these fields.

    A field that the signature does not cover anyone could have added or taken away.
    """
    for since, names in _DELEGATED.get(service, ()):
        if version >= since:
            covered = _ONLY_DELEGATED.intersection(fields) <= set(names)
            return DelegatedLines(names, fields) if covered else None
    return None


class DelegatedLines:
    """The lines of a user delegation SAS, of which the request fills in some."""

    __slots__ = ("_fields", "_names")

    def __init__(self, names: tuple[str, ...], fields: Mapping[str, str]) -> None:
        self._names = names
        self._fields = fields

    def text(self, resource: str, moment: str, headers: str, parameters: str) -> str:
        """The string-to-sign. The names of headers and parameters stand in the token, their values in the request."""
        filled = {_RESOURCE: resource, _MOMENT: moment, "srh": headers, "srq": parameters}
        return "\n".join(
            filled[name] if name in filled else self._fields.get(name, "") for name in self._names
        )


def _signed_names(service: str, version: str) -> tuple[str, ...]:
    return next(names for since, names in _LAYOUTS[service] if version >= since)
