"""The lines of a service SAS's string-to-sign, by service and by the token's version: a row for each change.

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

SIGNED_FIELDS = (
    frozenset(name for rows in _LAYOUTS.values() for _, names in rows for name in names) - _FILLED_IN
)


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


def _signed_names(service: str, version: str) -> tuple[str, ...]:
    return next(names for since, names in _LAYOUTS[service] if version >= since)
