"""The shapes of the requests to the Table service."""

from kyanite.services.table.service import DEFINITION
from tests.services.fuzzing.shapes.shape import Shape

OPERATIONS = DEFINITION.operations

_JSON = "accept dataserviceversion"
_FORM = f"{_JSON} maxdataserviceversion"
_WRITE = "content-type=application/json"
_ENTITY = "/{table}({keys})"

SHAPES = {
    "Set Table Service Properties": Shape("/", body="table_properties"),
    "Get Table Service Properties": Shape("/"),
    "Get Table Service Stats": Shape("-secondary/"),
    "Query Tables": Shape(
        "/Tables", may=f"{_FORM} ?$filter:table-filter ?$top ?$format ?NextTableName ?$select"
    ),
    "Create Table": Shape("/Tables", needs=_WRITE, may=f"{_FORM} prefer", body="table", weight=2),
    "Get Table": Shape("/Tables('{table}')", may=_FORM),
    "Delete Table": Shape("/Tables('{spare_table}')", weight=0.3),
    "Get Table ACL": Shape("/{table}"),
    "Set Table ACL": Shape("/{table}", body="table_acl"),
    "Query Entities @entities": Shape(
        "/{table}()",
        needs="accept",
        may=f"{_FORM} ?$filter ?$filter ?$filter ?$top ?$select ?$format ?NextPartitionKey ?NextRowKey",
        weight=5,
    ),
    "Query Entities @object": Shape(_ENTITY, may=f"{_FORM} ?$select ?$format", weight=2),
    "Insert Entity": Shape("/{table}", needs=_WRITE, may=f"{_FORM} prefer", body="entity", weight=5),
    "Delete Entity @entities": Shape("/{table}()", may="if-match:entity-etag", weight=0.3),
    "Delete Entity @object": Shape(_ENTITY, needs="if-match:entity-etag", weight=0.5),
    "Delete Entity [x-http-method: DELETE]": Shape(_ENTITY, needs="if-match:entity-etag", weight=0.2),
    "Update Entity": Shape(_ENTITY, needs=f"{_WRITE} if-match:entity-etag", may=_FORM, body="properties"),
    "Insert Or Replace Entity": Shape(_ENTITY, needs=_WRITE, may=_FORM, body="properties", weight=1.5),
    "Merge Entity": Shape(_ENTITY, needs=f"{_WRITE} if-match:entity-etag", may=_FORM, body="properties"),
    "Insert Or Merge Entity": Shape(_ENTITY, needs=_WRITE, may=_FORM, body="properties", weight=1.5),
    "Entity Group Transaction": Shape("/$batch", may=_FORM, body="entity_batch", weight=4),
}
