"""The URL of a database: one server or several, of which the engine finds the primary.

    postgresql://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?schema=NAME&sslmode=verify-full&…

``schema`` names the schema of the store (``kyanite`` unless given), so that one database can have several. The other
options are those of libpq.
"""

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit

_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,47}")
_SCHEMA = "kyanite"
SCHEMES = ("postgresql", "postgres")


class BadAddress(ValueError):
    """The text is not the URL of a database; says why, in a sentence without secrets."""


@dataclass(frozen=True, slots=True)
class Address:
    servers: tuple[str, ...]
    """A URL for each server, as the driver takes it. They contain the password."""
    names: str
    """The servers and the database, for messages."""
    schema: str


def parse(url: str) -> Address:
    try:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError as error:
        raise BadAddress("The URL of the database cannot be read.") from error
    if parts.scheme not in SCHEMES:
        raise BadAddress("The URL of a database begins with postgresql://.")
    user, at, hosts = parts.netloc.rpartition("@")
    database = parts.path.strip("/")
    if not database or "/" in database:
        raise BadAddress("The URL of the database names no database: postgresql://HOST/DATABASE.")
    schema = options.pop("schema", _SCHEMA)
    if not _IDENTIFIER.fullmatch(schema):
        raise BadAddress("The schema in the URL of the database is not lower-case letters, digits and _.")
    if options.pop("target_session_attrs", "read-write") not in ("read-write", "primary"):
        raise BadAddress("The engine needs the primary, so target_session_attrs can only be read-write.")
    query = f"?{urlencode(options)}" if options else ""
    each = hosts.split(",")
    servers = tuple(f"postgresql://{user}{at}{host}/{database}{query}" for host in each)
    return Address(servers, f"{database} at {', '.join(each) or options.get('host', 'this machine')}", schema)
