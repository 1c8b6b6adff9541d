"""What the paths of the Table service mean, and the ACL lookup of a table.

/                                       the service
/Tables                                 all tables
/Tables('name')                         a table
/name  /name()                          all entities of a table
/name(PartitionKey='p',RowKey='r')      an entity
/$batch                                 several requests in one

A slash at the end changes nothing. A client whose service address ends in the name of a table writes to
``/name/Tables`` or ``/name/$batch``. Azure treats such a POST or DELETE as one to the entities of that table and
reports the error it then finds; clients recognise the mistake by that error.
"""

import re
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from kyanite.model.tables import table
from kyanite.model.tables.table import TableKey
from kyanite.rules import entities
from kyanite.services.rest.authentication import ContainerAcl
from kyanite.services.rest.context import Location, RequestContext, Resource
from kyanite.wire.http import Request
from kyanite.wire.malformed import Malformed
from kyanite.wire.uri import Target

_BATCH: Final = "$batch"
_TABLES: Final = "tables"
_PATH: Final = re.compile(r"([^()]*)(?:\((.*)\))?", re.DOTALL)
_TABLE: Final = re.compile(r"[A-Za-z][A-Za-z0-9]{2,62}")
_ENTITY: Final = re.compile(
    rf"({_TABLE.pattern})\(PartitionKey='((?:[^']|'')*)',RowKey='((?:[^']|'')*)'\)", re.DOTALL
)
_KEYS: Final = re.compile(r"\s*PartitionKey='((?:[^']|'')*)'\s*,\s*RowKey='((?:[^']|'')*)'\s*", re.DOTALL)
_KEYS_REVERSED: Final = re.compile(
    r"\s*RowKey='((?:[^']|'')*)'\s*,\s*PartitionKey='((?:[^']|'')*)'\s*", re.DOTALL
)
_NAME: Final = re.compile(r"\s*'((?:[^']|'')*)'\s*", re.DOTALL)
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.~-]*")
_ALLOWED_WITH_REST: Final = frozenset(((Resource.ENTITIES, "POST"), (Resource.ENTITIES, "DELETE")))
_TUNNELLED: Final = frozenset(("PUT", "MERGE", "PATCH", "DELETE"))


def locate(request: Request, target: Target, parameters: dict[str, str]) -> Location:
    """The table is the container, and what is in the brackets behind it the object or the keys."""
    if "x-http-method" in request.headers:
        check_tunnel(request.method, request.headers)
    if not target.first:
        return Location(Resource.SERVICE)
    if target.first == _BATCH and not target.rest:
        # A shared access signature for one table names it, and all requests of the batch must be for that table.
        return Location(Resource.BATCH, parameters.get("tn", ""))
    location = read_path(target.first)
    if target.rest and (location.resource, request.method) not in _ALLOWED_WITH_REST:
        raise Malformed("InvalidUri")
    return location


def read_path(path: str) -> Location:
    """What a path names. The path is decoded and without the account.

    That of a table, or of an entity whose keys have no quotes, needs no regular expression: those cost ten times as
    much.
    """
    name, _, rest = path.partition("(PartitionKey='")
    partition_key, _, rest = rest.partition("',RowKey='")
    row_key = rest[:-2]
    if rest.endswith("')") and "'" not in partition_key and "'" not in row_key and _names_table(name):
        return Location(Resource.OBJECT, name, path, (partition_key, row_key))
    if _names_table(path):
        return Location(Resource.ENTITIES, path)
    match = _ENTITY.fullmatch(path)
    if match is not None and match[1].lower() != _TABLES:
        name, partition_key, row_key = match.groups()
        if "''" in path:
            partition_key, row_key = partition_key.replace("''", "'"), row_key.replace("''", "'")
        return Location(Resource.OBJECT, name, path, (partition_key, row_key))
    return _read_unusual_path(path)


@lru_cache(maxsize=1024)
def _names_table(name: str) -> bool:
    return _TABLE.fullmatch(name) is not None and name.lower() != _TABLES


def _read_unusual_path(path: str) -> Location:
    match = _PATH.fullmatch(path)
    if match is None:
        raise Malformed("InvalidUri")
    name, inside = match.groups(default="")
    if name.lower() == _TABLES:
        if not inside:
            return Location(Resource.TABLES)
        name = table_name_of(inside)
        entities.check_table_name(name)
        return Location(Resource.CONTAINER, name, inside)
    entities.check_table_name(name)
    if not inside:
        return Location(Resource.ENTITIES, name)
    return Location(Resource.OBJECT, name, inside, keys_of(inside))


def table_name_of(inside: str) -> str:
    match = _NAME.fullmatch(inside)
    if match is None:
        raise Malformed("InvalidUri")
    return match[1].replace("''", "'")


def keys_of(inside: str) -> tuple[str, str]:
    """The partition key and row key in the brackets of a path."""
    match = _KEYS.fullmatch(inside)
    if match is not None:
        partition_key, row_key = match.groups()
    else:
        match = _KEYS_REVERSED.fullmatch(inside)
        if match is None:
            raise Malformed("InvalidInput", Reason=NO_KEYS)
        row_key, partition_key = match.groups()
    if "''" in inside:
        return partition_key.replace("''", "'"), row_key.replace("''", "'")
    return partition_key, row_key


NO_KEYS: Final = (
    "The number of keys specified in the URI does not match number of key properties for the resource: it must name "
    "PartitionKey and RowKey, in quotes."
)


def entity_path(table_name: str, partition_key: str, row_key: str) -> str:
    """The path of an entity below the service's address, encoded for URLs."""
    return f"{entity_paths(table_name, partition_key)}{quoted_key(row_key)}')"


def entity_paths(table_name: str, partition_key: str) -> str:
    """What the paths of a partition's entities begin with: a row key and the end of the brackets follow."""
    return f"{table_name}(PartitionKey='{quoted_key(partition_key)}',RowKey='"


def quoted_key(key: str) -> str:
    if key.isascii() and key.isalnum():
        return key
    return key if _PLAIN.fullmatch(key) else quote(key.replace("'", "''"), safe="'")


def check_tunnel(method: str, headers: dict[str, str]) -> None:
    """A client that can only POST names the intended method in a header."""
    meant = headers.get("x-http-method")
    if meant is None:
        return
    if method != "POST":
        raise Malformed("XMethodNotUsingPost")
    if "," in meant:
        raise Malformed("XMethodIncorrectCount")
    if meant.upper() not in _TUNNELLED:
        raise Malformed("XMethodIncorrectValue")


def table_key(context: RequestContext) -> TableKey:
    return TableKey(context.account.name, context.container)


async def acl_lookup(context: RequestContext) -> ContainerAcl | None:
    record = await table.find(context.store.engine, table_key(context))
    return None if record is None else ContainerAcl(record.policies)
