"""The operations of the Table service, in the order of the REST reference.

The last column is what the caller needs (``rules/authorization.py``); nothing here is ever public. Among rows that
differ only by a header the first that fits the request counts: If-Match distinguishes an update from an upsert, and
X-HTTP-Method is the verb that a POST stands for.
"""

from dataclasses import replace

from kyanite.rules.authorization import Access
from kyanite.rules.entities import Act
from kyanite.services.rest.context import Resource
from kyanite.services.rest.operations import ANY_TOKEN, Op, query
from kyanite.services.rest.service_properties import properties_operations, stats_operation
from kyanite.services.table import batch, entity, table
from kyanite.services.table.changes import ACCESS
from kyanite.wire.service_properties import TABLE_ELEMENTS

SERVICE, TABLES, TABLE = Resource.SERVICE, Resource.TABLES, Resource.CONTAINER
ENTITIES, ENTITY, BATCH = Resource.ENTITIES, Resource.OBJECT, Resource.BATCH

READ = batch.READ
QUERY_TABLES = Access(account="c l", role="tables/read")
CREATE_TABLE = Access(account="c cw", writes=True, role="tables/write")
DELETE_TABLE = Access(account="c d", writes=True, role="tables/delete")
GET_ACL = Access(role="tables/getAcl", role_since="2026-02-06")
SET_ACL = Access(role="tables/setAcl", role_since="2026-02-06", writes=True)
IF_MATCH = "if-match"


def tunnelled(*rows: Op) -> list[Op]:
    """The same operations for clients that can only POST, one for each of their verbs."""
    return [
        replace(row, methods="POST", when=f"x-http-method: {verb}{f' & {row.when}' if row.when else ''}")
        for row in rows
        for verb in row.methods.split()
    ]


# fmt: off
CHANGES = (
    Op("Update Entity", "PUT", ENTITY, query(), entity.change_entity, ACCESS[Act.UPDATE], when=IF_MATCH),
    Op("Insert Or Replace Entity", "PUT", ENTITY, query(), entity.change_entity, ACCESS[Act.INSERT_OR_REPLACE]),
    Op("Merge Entity", "PATCH MERGE", ENTITY, query(), entity.change_entity, ACCESS[Act.MERGE], when=IF_MATCH),
    Op("Insert Or Merge Entity", "PATCH MERGE", ENTITY, query(), entity.change_entity, ACCESS[Act.INSERT_OR_MERGE]),
    Op("Delete Entity", "DELETE", ENTITY, query(), entity.delete_entity, ACCESS[Act.DELETE]),
)

OPERATIONS = (
    # The service
    *properties_operations("Table", TABLE_ELEMENTS),
    stats_operation("Table"),

    # Tables
    Op("Query Tables", "GET", TABLES, query(), table.query_tables, QUERY_TABLES),
    Op("Create Table", "POST", TABLES, query(), table.create_table, CREATE_TABLE),
    Op("Get Table", "GET", TABLE, query(), table.get_table, QUERY_TABLES),
    Op("Delete Table", "DELETE", TABLE, query(), table.delete_table, DELETE_TABLE),
    Op("Delete Table", "POST", TABLE, query(), table.delete_table, DELETE_TABLE, when="x-http-method: DELETE"),
    Op("Get Table ACL", "GET HEAD", ENTITIES, query(comp="acl"), table.get_table_acl, GET_ACL),
    Op("Set Table ACL", "PUT", ENTITIES, query(comp="acl"), table.set_table_acl, SET_ACL),

    # Entities
    Op("Query Entities", "GET", ENTITIES, query(), entity.query_entities, READ),
    Op("Query Entities", "GET", ENTITY, query(), entity.get_entity, READ),
    Op("Insert Entity", "POST", ENTITIES, query(), entity.insert_entity, ACCESS[Act.INSERT]),
    Op("Delete Entity", "DELETE", ENTITIES, query(), entity.delete_nothing, ACCESS[Act.DELETE]),
    *CHANGES,
    *tunnelled(*CHANGES),
    Op("Entity Group Transaction", "POST", BATCH, query(), batch.entity_group_transaction, ANY_TOKEN),
)
# fmt: on
