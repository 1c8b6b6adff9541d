"""What the paths of the Table service name: the usual form of an entity's path is split, all others are matched."""

import pytest

from kyanite.services.rest.context import Resource
from kyanite.services.table.paths import read_path
from kyanite.wire.malformed import Malformed

ENTITIES = {
    "things(PartitionKey='p',RowKey='r')": ("things", "p", "r"),
    "things(PartitionKey='',RowKey='')": ("things", "", ""),
    "things(PartitionKey='a(b)',RowKey='c,d=e')": ("things", "a(b)", "c,d=e"),
    "things(PartitionKey='it''s',RowKey='''')": ("things", "it's", "'"),
    "things(PartitionKey='p',RowKey='a'',RowKey=''b')": ("things", "p", "a',RowKey='b"),
    "things(PartitionKey='p'',RowKey=''q',RowKey='r')": ("things", "p',RowKey='q", "r"),
    "things(PartitionKey='(PartitionKey=',RowKey='r')": ("things", "(PartitionKey=", "r"),
    "things(PartitionKey='p\n',RowKey='r\n')": ("things", "p\n", "r\n"),
    "things( RowKey='r' , PartitionKey='p' )": ("things", "p", "r"),
    "Table1(PartitionKey='tables',RowKey='Tables')": ("Table1", "tables", "Tables"),
}


@pytest.mark.parametrize(("path", "expected"), ENTITIES.items(), ids=ENTITIES)
def test_the_path_of_an_entity(path: str, expected: tuple[str, str, str]) -> None:
    location = read_path(path)
    assert (location.resource, location.container, *location.keys) == (Resource.OBJECT, *expected)


@pytest.mark.parametrize(
    "path",
    [
        "things(PartitionKey='p',RowKey='r'",
        "things(PartitionKey='p',RowKey='r)",
        "things(PartitionKey='p',RowKey='r') ",
        "things(PartitionKey='p',RowKey='r'')",
        "things(PartitionKey='p'q',RowKey='r')",
        "Tables(PartitionKey='p',RowKey='r')",
    ],
)
def test_other_paths_are_not_those_of_entities(path: str) -> None:
    with pytest.raises(Malformed):
        read_path(path)
